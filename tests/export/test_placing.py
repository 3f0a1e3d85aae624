"""Where a model is written to: whatever goes wrong there, nothing is lost that was there before."""

import json
import os
import shutil
from pathlib import Path

import pytest
from export.made import make_all

import bertsmith
from bertsmith import exporting
from bertsmith.errors import BertsmithError
from bertsmith.models import files


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_thread):
    return make_all(tmp_path_factory.mktemp("made"), "bert")


def test_what_a_model_is_written_from_is_never_overwritten(made, tmp_path, monkeypatch):
    base, mood = (shutil.copytree(made[0], tmp_path / "base"), made[1]["mood"])
    shutil.copytree(mood, base / "adapters" / "mood")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "config.json").write_text("{}")
    inner = shutil.copytree(made[0], tmp_path / "all" / "inner")
    loaded = bertsmith.load(base, adapters={"other": mood})
    for source, out, told in (
        (base / "adapters" / "mood", base, "holds .*, which is written from and would be lost; give another folder"),
        (base / "adapters" / "mood", base / "adapters" / "mood", "is the model itself, which would be lost"),
        (inner, tmp_path / "all", "holds .*inner, which is written from and would be lost"),
        (loaded, mood, "holds .*mood, which is written from and would be lost"),
    ):
        with pytest.raises(BertsmithError, match=told):
            bertsmith.export_model(source, out, overwrite=True)
    assert (base / "adapters" / "mood").is_dir() and (inner / "config.json").exists()


def test_any_empty_place_is_written_to(made, tmp_path, monkeypatch):
    """The folder that one stands in, and the one that a link means: what they are called has no neighbours."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "link").symlink_to("there")
    for out in (".", tmp_path / "link"):
        for _ in range(2):
            made_new = bertsmith.export_model(made[0], out, overwrite=True)
            assert (made_new.folder / "config.json").exists() and made_new.folder == Path(out)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "model.safetensors").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"here", "there", "link"} and not list(Path().glob(".*"))


def test_a_replacement_that_fails_leaves_what_was_there(made, tmp_path, monkeypatch):
    out = bertsmith.export_model(made[0], tmp_path / "out", to="compact").folder
    before = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    move, moved = os.replace, []

    def fail(source, target):
        moved.append(target)
        if len(moved) == 3:
            raise OSError(28, "No space left on device")
        move(source, target)

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(BertsmithError, match="out cannot be written: No space left on device"):
        bertsmith.export_model(made[0], out, overwrite=True)
    assert {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert not list(tmp_path.glob(".*"))


def test_of_two_at_once_the_second_is_refused(made, tmp_path, monkeypatch):
    """Nobody said that it may overwrite what the first one wrote meanwhile."""
    write = exporting.write_plain

    def be_late(*given):
        write(*given)
        monkeypatch.setattr(exporting, "write_plain", write)
        bertsmith.export_model(made[0], tmp_path / "out", store="bf16")

    monkeypatch.setattr(exporting, "write_plain", be_late)
    with pytest.raises(BertsmithError, match="is not empty"):
        bertsmith.export_model(made[0], tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "bfloat16"
    assert not list(tmp_path.glob(".*"))
