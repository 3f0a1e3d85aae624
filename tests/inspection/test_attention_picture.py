"""The attention page in a real browser: the numbers are the model's, whoever asks and however the file was opened."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from bertsmith.errors import BertsmithError
from bertsmith.inspection.attention import Attention

HOSTILE = "<img src=x onerror=alert(1)>"
ENDING = "</script><script>alert(2)</script>\"'&\u2028"
PIECES = ("[CLS]", "the", "river", "##side", "bank", HOSTILE, "[SEP]", "its", ENDING, "rates", "[SEP]")
WORDS = (None, 0, 1, 1, 2, 3, None, 4, 5, 6, None)
NAMES = ("the", "riverside", "bank", HOSTILE, "its", ENDING, "rates")
LAYERS, HEADS, TOP, STEP = 3, 4, 26, 22


@pytest.fixture(scope="module")
def made() -> Attention:
    rng = np.random.default_rng(9)
    count = len(PIECES)
    queries, keys = rng.normal(size=(2, LAYERS, HEADS, count, 8)).astype(np.float32) * 2
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    special = tuple(word is None for word in WORDS)
    segments = tuple(int(place > 6) for place in range(count))
    visible = np.ones((LAYERS, count, count), bool)
    return Attention(
        weights=weights.astype(np.float32), pieces=PIECES, words=WORDS, segments=segments, special=special,
        separators=(6, 10), visible=visible, causal=False, windows=(0,) * LAYERS, truncated=7, names=NAMES,
        sources=(f"the riverside bank {HOSTILE}", f"its {ENDING} rates"), queries=queries, keys=keys,
    )  # fmt: skip


@pytest.fixture(scope="module")
def file(made: Attention, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.save(tmp_path_factory.mktemp("attention") / "attention.html")


@pytest.fixture
def opened(open_page: Any, file: Path) -> Callable[..., Any]:
    def opens(**settings: Any) -> Any:
        page = open_page(file, **settings)
        page.wait_for_selector("[data-ready=true]")
        return page

    return opens


def point(page: Any, place: int, *, at_left: bool = True) -> None:
    """The pointer on a word of the head view."""
    box = page.locator(".stage").bounding_box()
    x = 0.28 if at_left else 0.8
    page.mouse.move(box["x"] + box["width"] * x, box["y"] + TOP + (place + 0.5) * STEP)


def read(page: Any, starts: str) -> list[tuple[str, float]]:
    """What the line above the drawing lists, once it starts so."""
    page.wait_for_function(
        "starts => document.querySelector('.readout p').textContent.replaceAll('\\u00a0', ' ').startsWith(starts)",
        arg=starts,
    )
    parts = page.evaluate(
        "() => [...document.querySelector('.readout p').childNodes].map((one) => [one.nodeName, one.textContent])"
    )
    words = [text for name, text in parts if name == "B"][1:]
    numbers = [float(found) for found in re.findall(r"([\d.]+)\u00a0%", "".join(t for n, t in parts if n != "B"))]
    return list(zip(words, numbers, strict=True))


def check(found: list[tuple[str, float]], names: list[str], weights: Any) -> None:
    """The six largest with their words, as near as a byte and one decimal keep them."""
    order = np.argsort(-np.asarray(weights))[: len(found)]
    assert len(found) == min(6, len(names))
    for (_, number), place in zip(found, order, strict=True):
        assert abs(number / 100 - weights[place]) <= 1.2 * np.sqrt(weights[place]) / 255 + 0.0006
    assert found[0][0] == names[order[0]]


def show(text: str) -> str:
    return text.replace("\u2028", "[U+2028]")


LABELS = [show(piece) for piece in PIECES]


def test_a_word_under_the_pointer_shows_the_models_numbers(opened: Any, made: Attention) -> None:
    page = opened()
    assert page.locator("h1").text_content() == show(made.title)
    assert "7 tokens did not fit" in page.locator(".picture").text_content()
    for place in (4, 9):
        point(page, place)
        check(read(page, f"{LABELS[place]} looks at"), LABELS, made.weights[0].mean(axis=0)[place])
    point(page, 4, at_left=False)
    check(read(page, "bank is looked at by"), LABELS, made.weights[0].mean(axis=0)[:, 4])


def test_heads_and_layers_are_chosen(opened: Any, made: Attention) -> None:
    page = opened()
    page.get_by_role("combobox", name="Layer").select_option("2")
    page.get_by_role("button", name="head 1").click()  # the first click means that one alone
    point(page, 1)
    check(read(page, "the looks at"), LABELS, made.weights[2, 1, 1])
    said = page.locator(".readout .quiet").text_content()
    assert f"{made.entropy[2, 1]:.1f} bits" in said and f"{made.distance[2, 1]:.1f} places away" in said
    page.get_by_role("button", name="head 3").click()
    point(page, 2)
    check(read(page, "river looks at"), LABELS, made.weights[2, [1, 3], 2].mean(axis=0))
    pressed = page.locator(".chip[aria-pressed=true]").all_text_contents()
    assert pressed == ["1", "3"]
    page.get_by_role("combobox", name="Layer").select_option("rollout")
    point(page, 4)
    check(read(page, "bank looks at"), LABELS, made.rollout[4])


def test_whole_words_without_specials_between_sentences(opened: Any, made: Attention) -> None:
    page = opened()
    page.get_by_label("whole words").check()
    point(page, 2)
    words = made.by_words()
    check(read(page, "riverside looks at"), [show(piece) for piece in words.pieces], words.weights[0].mean(axis=0)[2])
    page.get_by_label("hide special tokens").check()
    point(page, 1)
    bare = words.without_specials(renormalize=True)
    # Each head's row is made to sum to 1, then they are averaged.
    check(read(page, "riverside looks at"), [show(piece) for piece in bare.pieces], bare.weights[0].mean(axis=0)[1])
    page.get_by_label("whole words").uncheck()
    page.get_by_label("hide special tokens").uncheck()
    page.get_by_label("Sentences").select_option("AB")
    point(page, 4)
    found = read(page, "bank looks at")
    check(found, LABELS[7:], made.between(0, 1)[0].mean(axis=0)[4])
    assert {word for word, _ in found} <= set(LABELS[7:])


def test_every_view_by_keyboard_alone(opened: Any, made: Attention) -> None:
    page = opened()
    page.locator(".tab[aria-selected=true]").focus()
    seen = []
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        seen.append(page.locator(".tab[aria-selected=true]").text_content())
    assert seen == ["All heads", "One word", "Matrix", "Neurons", "Lines"]
    page.keyboard.press("ArrowRight")
    page.locator(".stage").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_function("() => document.querySelector('.readout b')?.textContent === 'Layer 2, head 1'")
    page.keyboard.press("Enter")
    assert page.locator(".tab[aria-selected=true]").text_content() == "Lines"
    page.locator(".stage").focus()
    page.keyboard.press("ArrowDown")
    check(read(page, "[CLS] looks at"), LABELS, made.weights[2, 1, 0])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("ArrowDown")
    check(read(page, "the looks at"), LABELS, made.weights[1, 2, 1])
    page.keyboard.press("Escape")
    read(page, "Point at a word")


def test_matrix_one_word_and_neurons_by_mouse(opened: Any, made: Attention) -> None:
    page = opened()
    page.get_by_role("tab", name="Matrix").click()
    box = page.locator(".stage").bounding_box()
    cells, room = 26, 120
    left = room + (box["width"] - room - cells * len(PIECES) - 12) / 2
    page.mouse.move(box["x"] + left + 7.5 * cells, box["y"] + room + 4.5 * cells)
    ((word, number),) = read(page, "bank → its")
    assert word == "its" and abs(number / 100 - made.weights[0, :, 4, 7].mean()) < 0.003
    page.get_by_role("tab", name="One word").click()
    page.locator(".stage").focus()
    wide = (box["width"] - 150 - 8 - 3 * (LAYERS - 1)) / (LAYERS * HEADS)
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + 150 + 1 * (wide * HEADS + 3) + 2.5 * wide, box["y"] + 34 + 9.5 * 18)
    ((word, number),) = read(page, "bank → rates")
    assert word == "rates" and abs(number / 100 - made.weights[1, 2, 4, 9]) < 0.004
    assert "layer 1, head 2" in page.locator(".readout").text_content()
    page.get_by_role("tab", name="Neurons").click()
    check(read(page, "bank looks at"), LABELS, made.weights[0, 0, 4])
    box = page.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 74 + 9.5 * 20)
    read(page, "bank → rates: weight")
    assert made.queries is not None and made.keys is not None
    score = float(made.queries[0, 0, 4] @ made.keys[0, 0, 9])
    said = page.locator(".readout .quiet").text_content()
    product, scaled = (float(number) for number in re.findall(r"(?:up to|that is) (-?[\d.]+[\d])", said))
    assert abs(product - score) < 0.02 and abs(scaled - score / np.sqrt(8)) < 0.01


def test_texts_are_never_markup(opened: Any) -> None:
    page = opened()
    page.get_by_label("whole words").check()
    point(page, 4)
    read(page, f"{HOSTILE} looks at")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2  # the numbers and what draws them


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_has_nothing_beside_the_screen(opened: Any, dark: bool) -> None:
    page = opened(phone=True, dark=dark)
    for tab in page.get_by_role("tab").all():
        tab.tap()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{tab.text_content()} is {wide} pixels wide"
        page.wait_for_function(INK)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) < 120) is dark
    page.get_by_role("tab", name="Lines").tap()
    page.locator(".stage").scroll_into_view_if_needed()
    box = page.locator(".stage").bounding_box()
    page.touchscreen.tap(box["x"] + 60, box["y"] + TOP + 4.5 * STEP)
    read(page, "bank looks at")


# Whether the canvas shows more than one colour.
INK = """() => {
  const canvas = document.querySelector('canvas');
  const all = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(all).size > 20;
}"""


def test_colours_follow_the_screen(opened: Any) -> None:
    page = opened()
    light = page.evaluate("document.querySelector('canvas').toDataURL()")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("light => document.querySelector('canvas').toDataURL() !== light", arg=light)


def test_a_text_that_is_longer_than_the_screen(open_page: Any, made: Attention, tmp_path: Path) -> None:
    count = 300
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.full(count, 0.1), (1, 2, count)).astype(np.float32)
    pieces = tuple(f"w{place}" for place in range(count))
    long = Attention(
        weights=weights, pieces=pieces, words=tuple(range(count)), segments=(0,) * count, special=(False,) * count,
        separators=(), visible=np.ones((1, count, count), bool), causal=False, windows=(0,), truncated=0, names=pieces,
        sources=(" ".join(pieces),),
    )  # fmt: skip
    page = open_page(long.save(tmp_path / "long.html"))
    page.wait_for_selector("[data-ready=true]")
    page.locator(".stage").focus()
    page.keyboard.press("ArrowUp")  # from none to the last, which is scrolled to
    check(read(page, "w299 looks at"), list(pieces), weights[0].mean(axis=0)[299])
    assert page.evaluate("document.querySelector('.stage').scrollTop") > 1000
    assert page.locator(".stage canvas").bounding_box()["height"] < 900  # one screen of canvas, however long the text


def test_one_head_as_lines_that_stand_still(open_page: Any, made: Attention, tmp_path: Path) -> None:
    root = ElementTree.fromstring(made.at(1, 2).svg())
    space = "{http://www.w3.org/2000/svg}"
    hints = [path.findtext(f"{space}title") for path in root.iter(f"{space}path")]
    assert f"bank → its: {100 * made.weights[1, 2, 4, 7]:.1f} %" in hints
    texts = [one.text for one in root.iter(f"{space}text")]
    assert texts.count("bank") == 2
    assert sum(text.startswith("<img src=x") for text in texts if text) == 2  # cut to its column, and a text
    open_page(made.at(1).save(tmp_path / "layer.svg"))


def test_a_page_opens_where_it_was_asked_to(open_page: Any, made: Attention, tmp_path: Path) -> None:
    page = open_page(made.at(2, 3).save(tmp_path / "there.html"))
    page.wait_for_selector("[data-ready=true]")
    point(page, 4)
    check(read(page, "bank looks at"), LABELS, made.weights[2, 3, 4])


def test_what_one_word_looks_at(open_page: Any, made: Attention, tmp_path: Path) -> None:
    """By its text or its number: lines from it alone, with their shares, and the page opened with it kept."""
    found = made.at(2, 3, "bank")
    place = list(made.pieces).index("bank")
    assert found.title == "What “bank” looks at" and made.at(2, 3, "[CLS]").title == "What “[CLS]” looks at"
    assert found.asking == (place,) == made.at(2, 3, made.words[place]).asking
    root = ElementTree.fromstring(found.svg())
    space = "{http://www.w3.org/2000/svg}"
    hints = [path.findtext(f"{space}title") or "" for path in root.iter(f"{space}path")]
    assert hints and all(hint.startswith("bank → ") for hint in hints)
    row = made.weights[2, 3, place]
    told = [one.text for one in root.iter(f"{space}text") if (one.text or "").endswith(" %")]
    assert told == [f"{100 * share:.0f} %" for share in row if share >= 0.01]
    page = open_page(found.save(tmp_path / "word.html"))
    page.wait_for_selector("[data-ready=true]")
    check(read(page, "bank looks at"), LABELS, row)


def test_a_word_in_pieces_asks_as_a_whole(open_page: Any, made: Attention, tmp_path: Path) -> None:
    name = made.names[made.words[2] or 0]
    found = made.at(2, 3, name)
    assert found.asking == (2, 3)
    whole = made.by_words()
    page = open_page(found.save(tmp_path / "word.html"))
    page.wait_for_selector("[data-ready=true]")
    assert page.get_by_label("whole words").is_checked()
    check(read(page, f"{name} looks at"), [show(piece) for piece in whole.pieces], whole.weights[2, 3, 2])


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ((0, 1, "mountain"), "does not stand in the text"),
        ((3,), "layer is 3"),
        ((0, 4), "head is 4"),
        ((-4,), "0 to 2"),
        ((True,), "whole"),
    ],
)
def test_a_layer_or_word_that_is_not_there(made: Attention, place: tuple[Any, ...], says: str) -> None:
    with pytest.raises(BertsmithError, match=says):
        made.at(*place)
