"""The pictures of senses, lens and masks in a real browser, used as a person would."""

import pytest
from whole import tiny

import bertsmith
from bertsmith.inspection.senses_examples import EXAMPLES

HOSTILE = "<img src=x onerror=alert(1)> The bank 🙂 of the river."


@pytest.fixture(scope="module")
def senses_file(demo_model, one_thread, tmp_path_factory):
    model = bertsmith.load(demo_model, device="cpu")
    sentences = [*EXAMPLES["bank"], {"text": HOSTILE, "label": "<b>river</b>"}]
    picture = bertsmith.inspect.senses(model, "bank", sentences)
    return picture, picture.save(tmp_path_factory.mktemp("page") / "senses.html")


@pytest.fixture(scope="module")
def masked(one_thread, tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked")
    return bertsmith.load(tiny.make_encoder(folder / "model", "ForMaskedLM"), device="cpu"), folder


def test_the_slider_moves_the_map(open_page, senses_file):
    picture, path = senses_file
    page = open_page(path)
    slider = page.get_by_role("slider", name="Layer")
    assert "layer 6" in page.locator("output").inner_text()
    slider.focus()
    page.keyboard.press("Home")
    assert f"layer 0 · mean cosine {picture.likeness()[0]['all']:.2f}" in page.locator("output").inner_text()
    places = page.evaluate("[...document.querySelectorAll('circle.use')].map(one => Number(one.getAttribute('cx')))")
    reach = abs(picture.places).max()
    assert places == pytest.approx([200 + x / reach * 184 for x in picture.places[0][:, 0]], abs=0.1)
    page.keyboard.press("ArrowRight")
    assert "layer 1 ·" in page.locator("output").inner_text()


def test_pointing_at_a_use_shows_its_sentence(open_page, senses_file):
    picture, path = senses_file
    page = open_page(path)
    page.locator("circle.use").nth(3).hover()
    readout = page.locator(".readout")
    assert EXAMPLES["bank"][3]["text"] in readout.inner_text()
    assert readout.locator("mark").first.inner_text() == "bank"
    row = page.locator("ol.uses li", has_text=EXAMPLES["bank"][5]["text"])
    assert row.locator(".n").inner_text() == f"{picture.cosines[-1][3, 5]:.3f}"
    heat = page.locator("canvas")
    heat.focus()
    page.keyboard.press("ArrowRight")
    told = readout.inner_text()
    assert "is the cosine of" in told and told.split()[0] in {f"{x:.3f}" for x in picture.cosines[-1].ravel()}


def test_texts_stay_texts_and_a_phone_has_room(open_page, senses_file):
    _, path = senses_file
    page = open_page(path, phone=True, dark=True)
    assert page.get_by_text("<b>river</b>").count() >= 1
    row = page.locator("ol.uses li", has_text="onerror")
    row.tap()
    assert HOSTILE in page.locator(".readout").inner_text()
    assert page.locator("ol.uses mark").last.inner_text() == "bank"  # its offsets count characters, not UTF-16 units
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_lens_by_keyboard(open_page, masked):
    model, folder = masked
    picture = bertsmith.inspect.lens(model, "the [MASK] is <i>good</i> and the film was very fine")
    page = open_page(picture.save(folder / "lens.html"), phone=True)
    cells = page.locator("table.lens td")
    assert cells.count() == 3 * len(picture.pieces)
    page.locator("table.lens td[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    told = page.locator(".readout").inner_text()
    assert told.startswith("Layer 1 at is")
    assert picture.at(1, 2)[0]["token_str"] in told
    assert f"rank {picture.ranks[1, 2]}" in told
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_masks_side_by_side(open_page, masked):
    model, folder = masked
    picture = bertsmith.inspect.compare_masks(model, ["the [MASK] is good", "the [MASK] <u>is</u> bad"])
    page = open_page(picture.save(folder / "masks.html"))
    assert page.locator(".card").count() == 2
    assert page.get_by_text("<u>is</u> bad").count() == 1
    shown = page.locator(".card").nth(1).locator("tr").first
    assert picture.words[0] in shown.inner_text()
    assert f"{100 * picture.chances[1, 0]:.1f}" in shown.inner_text()
