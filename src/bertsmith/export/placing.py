"""Where a model is written to: a folder that is new or empty, or one whose model it replaces.

In: a folder. Out: one beside it to write into, whose files come to the folder when all are there.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import MEMBERS, is_adapter
from bertsmith.models.files import MARKS, written_aside

if TYPE_CHECKING:
    from bertsmith.model import Model

# What models are written as, here and elsewhere; whoever overwrites one means to lose no more.
OF_A_MODEL = (
    "*.json", "*.jinja", "*.safetensors", "*.bin", "*.onnx", "*.model", "vocab.txt", "merges.txt", "README.md",
    ".gitattributes", ".DS_Store", MEMBERS, "onnx", "[0-9]_*",
)  # fmt: skip


def refuse_sources(model: "Model", folder: Path) -> None:
    """What a model is written from is not to be lost, though it is to be overwritten."""
    target, every = folder.resolve(), [model, *([model.base] if model.base else ()), *model.adapters.values()]
    for source in dict.fromkeys(one.folder for one in every):
        if source.resolve() == target and source == model.folder:
            raise BertsmithError(f"{folder} is the model itself, which would be lost; give another folder to write to.")
        if target in (source.resolve(), *source.resolve().parents):
            raise BertsmithError(
                f"{folder} holds {source}, which is written from and would be lost; give another folder to write to."
            )


@contextmanager
def written_new(given: Path, overwrite: bool) -> Iterator[Path]:
    """As `written_aside`, and nothing of what was there before stays; where that fails, it is there as before."""
    folder = given.resolve()  # what is `.` or a link has its neighbours elsewhere
    _check_free(given, overwrite)
    old: Path | None = None
    try:
        with written_aside(folder) as aside:
            yield aside
            _check_free(given, overwrite)  # another process may have been quicker
            if _is_full(folder):
                old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
                _move_all(folder, old, marks_first=True)
    except BaseException:
        if old is not None:
            for path in folder.iterdir():  # a part of the new one
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            _move_all(old, folder, marks_first=False)
            old.rmdir()
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _is_full(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _check_free(folder: Path, overwrite: bool) -> None:
    if not _is_full(folder):
        return
    if not overwrite:
        raise BertsmithError(f"{folder} is not empty; give another folder, or overwrite it (--overwrite).")
    if not ((folder / "config.json").exists() or is_adapter(folder)):
        raise BertsmithError(f"{folder} holds no model, so it is not overwritten; give another folder.")
    foreign = sorted(path.name for path in folder.iterdir() if not any(path.match(form) for form in OF_A_MODEL))
    if foreign:
        told = f"{folder} holds {', '.join(foreign[:3])}{' …' * (len(foreign) > 3)} beside a model"
        raise BertsmithError(f"{told}, which would be lost; give another folder.")


def _move_all(folder: Path, place: Path, marks_first: bool) -> None:
    """What makes a folder a model's goes first and comes last."""
    for path in sorted(folder.iterdir(), key=lambda path: (path.name in MARKS) != marks_first):
        path.rename(place / path.name)
