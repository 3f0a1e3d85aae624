"""Every picture opens from disk in a real browser: nothing is asked for, nothing goes wrong, and it fits a phone."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from whole.tiny import make_encoder

import bertsmith
from bertsmith.inspection.picture import Picture

HOSTILE = "the <img src=x onerror=alert(1)> bank </script><script>alert(2)</script> \"is' good \u2028"
MASKED = "the film was [MASK] and <b>not</b> bad"
USES = ["the river was good <img src=x onerror=alert(1)>", "the river is in oslo", "a river runs through paris"]
TAGGED = [
    {"words": ["ann", "lives", "in", "oslo", "<b>"], "tags": ["B-PER", "O", "O", "B-LOC", "O"]},
    {"words": ["bob", "works", "in", "rome"], "tags": ["B-PER", "O", "O", "B-LOC"]},
] * 6

PICTURES: dict[str, Callable[[Any], Picture]] = {
    "attention": lambda m: bertsmith.inspect.attention(m, HOSTILE, MASKED, causal=True, neurons=True),
    "step": lambda m: bertsmith.inspect.step(m, HOSTILE, layer=1, head=0, word="bank"),
    "input": lambda m: bertsmith.inspect.input(m, HOSTILE, MASKED, pad_to=90),
    "positions": lambda m: bertsmith.inspect.positions(m),
    "senses": lambda m: bertsmith.inspect.senses(m, "river", USES),
    "lens": lambda m: bertsmith.inspect.lens(m, MASKED),
    "masks": lambda m: bertsmith.inspect.compare_masks(m, [MASKED, "the plot was [MASK]"]),
    "attribution": lambda m: bertsmith.inspect.attribute(m, "fill", MASKED),
    "heads": lambda m: bertsmith.inspect.ablate_answer(m, "fill", MASKED),
    "probe": lambda m: bertsmith.inspect.probe(m, TAGGED, TAGGED, task="tag"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return bertsmith.load(make_encoder(tmp_path_factory.mktemp("made"), "ForMaskedLM", limit=96))


@pytest.mark.parametrize("name", PICTURES)
def test_it_opens(open_page: Any, model: Any, tmp_path: Path, name: str) -> None:
    picture = PICTURES[name](model)
    page = open_page(picture.save(tmp_path / f"{name}.html"), phone=True, dark=True)
    page.wait_for_function("() => document.querySelector('#picture').childElementCount > 0")
    assert page.locator("main").inner_text().strip()
    assert page.locator("img[src=x]").count() == 0 and page.locator("script").count() == 2
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= page.viewport_size["width"], f"{name} is {wide} pixels wide"
    page = open_page(picture.save(tmp_path / f"{name}.svg"))
    assert page.evaluate("document.documentElement.tagName") == "svg"
    assert page.evaluate("document.querySelectorAll('text').length") > 2


def test_every_kind_is_here() -> None:
    from importlib.resources import files

    scripts = {one.name for one in (files("bertsmith.inspection") / "pictures").iterdir() if one.name.endswith(".js")}
    # A part of a kind has its name and an underscore; the base is no kind.
    kinds = {name.removesuffix(".js") for name in scripts if "_" not in name} - {"base"}
    assert kinds == set(PICTURES)


def test_the_lens_tells_the_rank_of_the_models_answer(open_page: Any, model: Any, tmp_path: Path) -> None:
    """Not of what the last layer says that is shown."""
    found = bertsmith.inspect.lens(model, MASKED, layers=[0])
    place = found.masks[0]
    answer = found.words[int(found.final[place])]
    assert answer != found.at(0, place)[0]["token_str"]
    page = open_page(found.save(tmp_path / "lens.html"))
    told = page.locator(".readout").inner_text()
    assert f"the final answer, “{answer}”, has rank {found.ranks[0, place]} here" in told


@pytest.mark.parametrize("name", PICTURES)
def test_it_has_its_colours_where_names_of_colours_are_not_known(model: Any, name: str) -> None:
    """As in slides and papers: what knows no `var(--c1)` would draw all in black."""
    drawn = PICTURES[name](model).svg()  # type: ignore[attr-defined]
    named = re.findall(r"(.{0,40}?)\b([a-z-]+): var\(--", drawn)
    assert len(named) > 10 and all(re.search(rf"\b{each}: #[0-9a-f]{{6}}; $", before) for before, each in named), named
    assert '="var(' not in drawn
