"""The pages of attribution, cut heads and probes in a real browser: the data's numbers, and texts stay texts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertsmith.inspection.ablation import Effect, HeadEffects
from bertsmith.inspection.attribution import Attribution, Part
from bertsmith.inspection.gradients import Found
from bertsmith.inspection.probing import LayerScore, Probes, Score

HOSTILE = "<img src=x onerror=alert(1)>"
ENDING = "</script><script>alert(2)</script>"


def make_found(scale: float, missed: float | None = None) -> Found:
    pieces = scale * np.array([0.0, 0.25, 0.5, 0.125, -0.5, 0.0])
    units = scale * np.array([0.0, 0.75, 0.125, -0.5, 0.0])
    return Found(pieces, units, 32 if missed is not None else 0, missed)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = {"integrated": make_found(1.0, 0.002), "gradient": make_found(-2.0), "occlusion": make_found(0.5)}
    pieces = ["[CLS]", "play", "##ing", HOSTILE, "[U+202E]\u202e", "[SEP]"]
    names = ["[CLS]", "playing", HOSTILE, ENDING, "[SEP]"]
    part = Part("text", pieces, [[0], [1, 2], [3], [4], [5]], names, [None, 0, 0, 0, None], 1.5, 1.125, 3, found)
    made = Attribution("classify", HOSTILE, "the raw score (logit) of 'fun'", "mask", [part])
    return made.save(tmp_path_factory.mktemp("words") / "words.html")


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    effects = {(i, j): Effect((i - j) / 10, -0.2, 0.2, 0.5, i + j) for i in range(3) for j in range(12)}
    made = HeadEffects("accuracy", 0.875, (0.8, 0.95), 200, (3, 12), effects)
    return made.save(tmp_path_factory.mktemp("heads") / "heads.html")


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layers = [LayerScore(0.5 + n / 10, 0.4, 0.9, 0.5, 0.4, 0.6, layer=n, control=0.25) for n in range(4)]
    mix = Score(0.85, 0.8, 0.9, 0.8, 0.7, 0.9)
    made = Probes("tag", ["A", "B"], (100, 50), 0.375, layers, mix, np.array([0.1, 0.2, 0.3, 0.4]), 0)
    return made.save(tmp_path_factory.mktemp("probes") / "probes.html")


def read_words(page: Any) -> list[list[str]]:
    return [shade.inner_text().split("\n") for shade in page.locator(".shade").all()]


def test_words_have_their_numbers_and_methods_change_them(open_page: Any, words: Path) -> None:
    page = open_page(words)
    assert read_words(page)[1] == ["playing", "+0.750"] and read_words(page)[2] == [HOSTILE, "+0.125"]
    assert read_words(page)[3] == [ENDING, "−0.500"] and HOSTILE in page.locator("h1").inner_text()
    assert "1.500 is the score; 1.125" in page.locator(".readout").inner_text()
    assert "3 tokens did not fit" in page.locator(".readout").inner_text()
    page.locator(".shade").nth(1).hover()
    assert page.locator(".readout").inner_text() == "playing +0.750, 200.0 % of the sum"
    assert page.locator(".shade-line.on").inner_text().startswith("playing")
    page.get_by_role("tab", name="gradient × input").click()
    assert read_words(page)[1] == ["playing", "−1.500"]
    page.get_by_label("whole words").uncheck()
    assert [name for name, _ in read_words(page)][1:3] == ["play", "##ing"]
    page.get_by_label("strongest first").check()
    lines = [line.inner_text().split("\n")[-1] for line in page.locator(".shade-line").all()]
    assert lines == ["−1.000", "+1.000", "−0.500", "−0.250"]


def test_words_by_keyboard_in_the_dark_and_on_a_phone(open_page: Any, words: Path) -> None:
    page = open_page(words, dark=True)
    page.locator(".shade").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".readout").inner_text().startswith(f"{HOSTILE} +0.125")
    page.get_by_role("tab", name="integrated").focus()
    page.keyboard.press("ArrowRight")
    assert read_words(page)[1] == ["playing", "−1.500"]
    small = open_page(words, phone=True)
    assert small.evaluate("document.documentElement.scrollWidth") <= 390


def test_cut_heads(open_page: Any, heads: Path) -> None:
    page = open_page(heads)
    cells = page.locator("table.heads td")
    assert cells.count() == 36 and cells.nth(12 + 3).inner_text() == "−0.200" and cells.nth(0).inner_text() == "0"
    assert "chance alone shows 1.8 " in page.locator(".readout").inner_text()
    cells.nth(12 + 3).hover()
    assert page.locator(".readout").inner_text() == (
        "Without head 3 of layer 1: −0.200, between −0.200 and +0.200 (95 %), p 0.500; 4 of 200 answers are others"
    )
    cells.nth(0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.locator(".readout").inner_text().startswith("Without head 1 of layer 1")
    assert open_page(heads, phone=True).evaluate("document.documentElement.scrollWidth") <= 390


def test_probes(open_page: Any, probes: Path) -> None:
    page = open_page(probes)
    rows = page.locator("table.probe tbody tr")
    assert rows.count() == 6 and rows.nth(0).inner_text().startswith("embedding")
    assert "80.0" in rows.nth(3).inner_text() and "55.0" in rows.nth(3).inner_text()  # accuracy, selectivity
    assert "best" in (rows.nth(3).get_attribute("class") or "") and "37.5" in rows.nth(5).inner_text()
    assert open_page(probes, phone=True).evaluate("document.documentElement.scrollWidth") <= 390
