"""The pages of a step, of the input and of positions in a real browser."""

import pytest
from inspection.subjects import make_subject

from bertsmith.inspection.inputs import input
from bertsmith.inspection.positions import positions
from bertsmith.inspection.step import step

HOSTILE = "the <img src=x onerror=alert(1)> </script><script>alert(2)</script> river"
NEXT = "Next"


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    return make_subject(tmp_path_factory.mktemp("modern"), "modernbert")


@pytest.fixture(scope="module")
def found(subject):
    return step(subject, "The fishing was on the river bank.", layer=1, head=2, word="river", causal=True)


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("phone", [False, True])
def test_a_person_walks_through_the_stages(found, open_page, tmp_path, phone):
    page = open_page(found.save(tmp_path / "step.html"), phone=phone)
    names = [page.locator("h2").inner_text()]
    while page.get_by_role("button", name=NEXT).is_enabled():
        page.get_by_role("button", name=NEXT).click()
        names.append(page.locator("h2").inner_text())
        assert fits(page)
    assert len(names) == 9 and names[0] == "1. The input" and names[-1] == "9. The sum"
    page.get_by_role("button", name="Back").click()
    assert page.locator("h2").inner_text() == names[7]
    page.get_by_role("button", name="stage 6: Softmax").click()
    shown = page.locator("tbody tr").all_inner_texts()
    assert len(shown) == len(found.shown)
    for place, text in zip(found.shown, shown, strict=True):
        assert found.pieces[place] in text
        assert ("masked" in text) == bool(found.masked[place])
        assert f"{found.weights[place]:.4f}" in text


def test_arrow_keys_walk_too(found, open_page, tmp_path):
    page = open_page(found.save(tmp_path / "step.html"), dark=True)
    page.get_by_role("button", name=NEXT).focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    assert page.locator("h2").inner_text() == "9. The sum"
    page.keyboard.press("ArrowLeft")
    assert page.locator("h2").inner_text() == "8. Share times value"


def test_pointing_reads_a_number(found, open_page, tmp_path):
    page = open_page(found.save(tmp_path / "step.html"))
    page.get_by_role("button", name="stage 3: The keys").click()
    strip = page.locator("tbody canvas").nth(found.place)
    box = strip.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 5.5 / found.size, box["y"] + box["height"] / 2)
    told = page.locator(".readout").inner_text()
    assert told.startswith(f"key of {found.pieces[found.place]}, number 5 of {found.size}: ")
    assert float(told.rpartition(" ")[2]) == pytest.approx(float(found.turned_keys[found.place, 5]), rel=1e-5)
    page.get_by_text("All numbers").click()
    assert str(found.data()["result"][0]) in page.locator("dl").inner_text()


def test_texts_are_never_markup(subject, open_page, tmp_path):
    made = step(subject, HOSTILE, layer=0, head=0, word="river")
    page = open_page(made.save(tmp_path / "step.html"))
    page.get_by_role("button", name="stage 9: The sum").click()
    assert page.locator("img").count() == 0
    page = open_page(input(subject, HOSTILE).save(tmp_path / "input.html"))
    page.locator(".input-column canvas").first.wait_for()
    assert page.locator("img").count() == 0 and "<img" in page.locator("h1").inner_text()


@pytest.mark.parametrize("phone", [False, True])
def test_the_input_is_a_column_a_piece(subject, open_page, tmp_path, phone):
    made = input(subject, "The fishing was on the river bank.", pad_to=14)
    page = open_page(made.save(tmp_path / "input.html"), phone=phone)
    page.locator(".input-names").wait_for()
    assert page.locator(".input-column").count() == 1 + 14 and page.locator(".input-padding").count() == made.padding
    assert "no segments" in page.locator(".input-column").nth(1).inner_text() and fits(page)
    page.locator(".input-column canvas").first.hover()
    assert page.locator(".readout").inner_text().startswith("[CLS], token: number ")


def test_positions_are_read_by_pointer_and_keys(open_page, tmp_path):
    made = positions()
    page = open_page(made.save(tmp_path / "positions.html"))
    page.locator(".position-map").nth(1).wait_for()
    first = page.locator("canvas").first
    first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    shown = f"position 2, dimension 1: {made.maps[0].values[2, 1]:.2f}"
    assert page.locator(".readout").inner_text() == shown.replace("-", "−")
    box = first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 40.5 / 64, box["y"] + box["height"] * 20.5 / 128)
    assert page.locator(".readout").inner_text().startswith("position 20, dimension 40: ")
