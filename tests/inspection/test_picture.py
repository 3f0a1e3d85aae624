"""A picture as a file: what is written, what is said when it cannot be, and numbers that come back in a browser."""

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError
from bertsmith.inspection import picture as pictures
from bertsmith.inspection.packing import LEVELS, pack, unpack
from bertsmith.inspection.picture import Picture

HOSTILE = "</script><script>alert(1)</script><!--script--> \"'&\u2028\udc80 <img src=x onerror=alert(2)>"


class Numbers(Picture):
    """A picture whose script is a line: it writes the numbers that came out of the packing."""

    kind = "numbers"
    title = HOSTILE

    def __init__(self, **packed: Any) -> None:
        self.packed = packed

    def data(self) -> dict[str, Any]:
        return {"title": self.title, "packed": self.packed}


class Still(Numbers):
    def svg(self) -> str:
        return '<svg xmlns="http://www.w3.org/2000/svg"></svg>\n'


SCRIPT = """bertsmith.pictures.numbers = async (host, data) => {
  const found = {};
  for (const [name, packed] of Object.entries(data.packed)) found[name] = Array.from(await bertsmith.unpack(packed));
  host.append(bertsmith.make("pre", { id: "found" }, JSON.stringify({ title: data.title, found })));
};"""


@pytest.fixture
def with_script(monkeypatch: pytest.MonkeyPatch) -> None:
    read = pictures.read_part
    monkeypatch.setattr(pictures, "read_part", lambda name: SCRIPT if name == "numbers.js" else read(name))


@given(st.integers(0, 2**32 - 1), st.integers(1, LEVELS))
def test_weights_come_back_within_a_step_of_their_root(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(7, 0.3), (2, 3))
    back = unpack(pack(weights, levels=levels))
    assert back.shape == weights.shape
    assert (np.abs(np.sqrt(back) - np.sqrt(weights)) <= 0.5 / levels + 1e-6).all()


def test_small_weights_stay_visible() -> None:
    weights = np.array([0, 1e-5, 1 / 512, 1])
    back = unpack(pack(weights))
    assert back[0] == 0 and back[3] == 1 and back[1] > 0
    assert abs(back[2] * 512 - 1) < 0.05


def test_floats_come_back() -> None:
    numbers = np.random.default_rng(0).normal(size=(3, 4, 5)) * 100
    assert np.array_equal(unpack(pack(numbers, encoding="float32")), numbers.astype(np.float32))
    assert np.array_equal(unpack(pack(numbers, encoding="float16")), numbers.astype(np.float16).astype(np.float32))
    assert unpack(pack(np.array([1e9]), encoding="float16"))[0] == 65504


@pytest.mark.parametrize("numbers", [[0.5, np.nan], [1.5], [-0.1]])
def test_what_are_no_weights_is_refused(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match=r"finite|from 0 to 1"):
        pack(np.array(numbers))


def test_a_browser_unpacks_the_same_numbers(open_page: Any, tmp_path: Path, with_script: None) -> None:
    rng = np.random.default_rng(3)
    sizes = 10.0 ** rng.integers(-6, 4, (2, 9))  # down to halves that are not normal
    packed = {
        "weights": pack(rng.dirichlet(np.ones(5), (3, 2))),
        "halves": pack(rng.normal(size=(2, 9)) * sizes, encoding="float16"),
        "floats": pack(rng.normal(size=(4, 3)), encoding="float32"),
    }
    page = open_page(Numbers(**packed).save(tmp_path / "n.html"))
    shown = json.loads(page.locator("#found").text_content())
    assert shown["title"] == HOSTILE  # whatever is in a text, it stays a text
    for name, one in packed.items():
        assert np.allclose(np.array(shown["found"][name]), unpack(one).reshape(-1), rtol=1e-6, atol=0)


def test_save_writes_what_the_ending_says(tmp_path: Path, with_script: None) -> None:
    picture = Still(weights=pack(np.array([0.25])))
    assert picture.save(tmp_path / "a.JSON").read_text(encoding="utf-8").startswith("{")
    assert json.loads((tmp_path / "a.JSON").read_text(encoding="utf-8")) == picture.data()
    assert picture.save(str(tmp_path / "a.svg")).read_text(encoding="utf-8") == picture.svg()
    picture.save(tmp_path / "a.html")
    picture.save(tmp_path / "a.html")  # again: replaced, as a plot is
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.JSON", "a.html", "a.svg"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a.png", "'a.png' ends in .png; a picture is saved as .html, .svg or .json"),
        ("a", "'a' has no ending; a picture is saved as"),
        ("nowhere/a.html", "nowhere does not exist"),
        ("folder.html", "folder.html is a folder"),
        ("a.svg", "moves, so that it is no .svg"),
    ],
)
def test_what_cannot_be_saved_is_said(tmp_path: Path, with_script: None, name: str, says: str) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(BertsmithError, match=says.replace("(", r"\(")):
        Numbers().save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


def test_a_full_disk_leaves_the_old_picture(tmp_path: Path, with_script: None, monkeypatch: pytest.MonkeyPatch) -> None:
    Numbers().save(tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pictures.os, "replace", fail)
    with pytest.raises(BertsmithError, match=r"a\.json: the disk is full"):
        Numbers(weights=pack(np.array([0.5]))).save(tmp_path / "a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_bytes() == before


def test_a_notebook_shows_it_in_a_frame(open_page: Any, tmp_path: Path, with_script: None) -> None:
    picture = Numbers(weights=pack(np.array([0.25, 1.0])))
    (tmp_path / "notebook.html").write_text(
        "<!doctype html><title>notebook</title>" + picture._repr_html_(), encoding="utf-8", errors="replace"
    )
    page = open_page(tmp_path / "notebook.html")
    assert json.loads(page.frame_locator("iframe").locator("#found").text_content())["found"]["weights"][1] == 1
