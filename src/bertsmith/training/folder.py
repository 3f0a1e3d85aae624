"""What a run leaves on disk, so written that a kill loses minutes at most and nothing half-written ever counts.

    run.json                what was asked, and whether it is finished
    log.jsonl               a record every few steps and for each evaluation; no times, so that equal runs are equal
    checkpoints/last-000120 a model folder, plus optimizer.safetensors and state.json, to go on from
    checkpoints/best-000080 a model folder

A checkpoint is written aside, its files are summed up in state.json, and it takes its name when it is whole. It may be
written while training goes on: then a thread does it, and the next one waits for it.
"""

import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import MEMBERS
from bertsmith.models.files import ADAPTER_FILES, TASK_FILE, WEIGHTS, read_json
from bertsmith.training.background import Background
from bertsmith.training.differences import tell_differences
from bertsmith.training.lock import LOCK, FolderLock

STATE, OPTIMIZER, LOG, RUN = "state.json", "optimizer.safetensors", "log.jsonl", "run.json"
# What a finished run leaves beside them; a run that starts anew takes it away.
RESULTS = (
    *(TASK_FILE, "config.json", WEIGHTS, "metrics.json", "report.html", "README.md", "curves.svg"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *ADAPTER_FILES,
)


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.lock = FolderLock(path)
        self._log: Any = None
        self._writer = Background()

    def claim(self, asked: Mapping[str, Any], overwrite: bool) -> bool:
        """Take the folder for this run; true when the very same run is finished there already.

        A folder with another run or with something else in it is refused, and one that another process writes to. Else
        it is held until the lock is released.
        """
        if self.path.exists() and not self.path.is_dir():
            raise BertsmithError(f"{self.path} is a file; give a folder for the model.")
        path = self.path / RUN
        ours = {_aside(path).name, LOCK}
        if self.path.exists() and not path.exists() and any(entry.name not in ours for entry in self.path.iterdir()):
            raise BertsmithError(f"{self.path} is not empty and holds no run of bertsmith; give another folder.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BertsmithError(f"{self.path} cannot be written: {error.strerror}.") from error
        self.lock.take()
        try:
            is_finished = self._settle(path, asked, overwrite)
        except BaseException:
            self.lock.release()
            raise
        if is_finished:
            self.lock.release()
        return is_finished

    def _settle(self, path: Path, asked: Mapping[str, Any], overwrite: bool) -> bool:
        """Start, start anew, go on, or say that nothing is left to do."""
        if not path.exists():
            self._start(asked)
            return False
        self._tidy()
        known = read_json(path)
        differences = tell_differences(known.get("asked", {}), json.loads(json.dumps(asked)))
        # A run that never came to a checkpoint, as its settings were wrong, has nothing to lose.
        is_bare = not known.get("finished") and not self._lasts()
        if overwrite or (differences and is_bare):
            self._clear(known.get("asked", {}))
            self._start(asked)
            return False
        if differences:
            raise BertsmithError(
                f"{self.path} holds a run with other settings ({'; '.join(differences[:4])}); give another folder, "
                f"the same settings to go on with it, or --overwrite to start anew."
            )
        return bool(known.get("finished"))

    def finish(self, asked: Mapping[str, Any], keep: bool) -> None:
        """First say so: a kill behind it leaves checkpoints without use, one before it would have lost the run."""
        _write_json(self.path / RUN, {"asked": asked, "finished": True})
        if not keep:
            shutil.rmtree(self.checkpoints, ignore_errors=True)

    def _start(self, asked: Mapping[str, Any]) -> None:
        try:
            _write_json(self.path / RUN, {"asked": asked, "finished": False})
            self.checkpoints.mkdir(exist_ok=True)
        except OSError as error:
            raise BertsmithError(f"{self.path} cannot be written: {error.strerror}.") from error

    def _clear(self, asked: Mapping[str, Any]) -> None:
        """Remove what a run writes; killed in between, it is the old run still, no longer finished."""
        _write_json(self.path / RUN, {"asked": asked, "finished": False})
        for folder in (self.checkpoints, self.path / MEMBERS):
            shutil.rmtree(folder, ignore_errors=True)
        for name in (LOG, *RESULTS):
            (self.path / name).unlink(missing_ok=True)

    def _tidy(self) -> None:
        """What a kill left half done: a checkpoint that made room for the same step comes back, the rest goes."""
        for old in self.checkpoints.glob(".*.old"):
            path = old.with_name(old.name.removeprefix(".").removesuffix(".old"))
            if path.exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                os.replace(old, path)
        for part in self.checkpoints.glob(".*.part"):
            shutil.rmtree(part, ignore_errors=True)

    def _lasts(self) -> list[Path]:
        """All checkpoints to go on from, the newest first."""
        found = [path for path in self.checkpoints.glob("last-*") if path.name[5:].isdecimal()]
        return sorted(found, key=lambda path: int(path.name[5:]), reverse=True)

    def find_last(self) -> Path | None:
        """The newest checkpoint that is whole, once the one at work is."""
        self.wait()
        return next(filter(_is_whole, self._lasts()), None)

    def best(self, step: int) -> Path:
        return self.checkpoints / f"best-{step:06d}"

    def save_best(self, step: int, write_model: Callable[[Path], None]) -> None:
        """Those before it go with the next checkpoint to go on from: until then a kill takes the run back to them."""
        self._write(self.best(step), write_model, {})

    def save_last(
        self, step: int, write_model: Callable[[Path], None], optimizer: Mapping[str, Tensor], state: Mapping[str, Any],
        is_later: bool = False,
    ) -> None:  # fmt: skip
        """With `is_later` it is written while the caller goes on; what is given must stay as it is until then."""
        path = self.checkpoints / f"last-{step:06d}"
        if self._log is not None:  # the log must be as safe as the checkpoint that knows its length
            os.fsync(self._log.fileno())
        known = {**state, "step": step, "log_bytes": self.log_bytes()}
        kept = {path.name, self.best(state.get("best_step", 0)).name}

        def write(folder: Path) -> None:
            write_model(folder)
            save_file(dict(optimizer), folder / OPTIMIZER)

        def save() -> None:
            self._write(path, write, known)
            for old in [*self.checkpoints.glob("last-*"), *self.checkpoints.glob("best-*")]:
                if old.name not in kept:
                    shutil.rmtree(old, ignore_errors=True)

        if is_later:
            self._writer.start(save)
        else:
            self.wait()
            save()

    def wait(self) -> None:
        """Until the last checkpoint is whole; what went wrong with one that was to be written later comes up here."""
        self._writer.wait()

    def _write(self, path: Path, write: Callable[[Path], None], state: Mapping[str, Any]) -> None:
        aside = _aside(path)
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            write(aside)
            _write_json(aside / STATE, {**state, "files": _sums(aside)})
            old = path.with_name(f".{path.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            if path.exists():  # the same step again, after a kill or an interrupt
                os.replace(path, old)
            os.replace(aside, path)
            shutil.rmtree(old, ignore_errors=True)
        except Exception as error:
            shutil.rmtree(aside, ignore_errors=True)  # a full disk needs the room
            if isinstance(error, OSError):
                raise BertsmithError(f"{path} cannot be written: {error.strerror or error}.") from error
            if isinstance(error, SafetensorError):  # a full disk, too
                raise BertsmithError(f"{path} cannot be written: {str(error).rstrip('.')}.") from error
            raise

    def read_last(self, path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return read_json(path / STATE), load_file(path / OPTIMIZER)

    def open_log(self, size: int) -> None:
        """Go on with the log behind its first `size` bytes, or what is left of them, in whole lines."""
        path = self.path / LOG
        known = path.read_bytes()[:size] if path.exists() else b""
        self._log = path.open("ab")
        self._log.truncate(known.rfind(b"\n") + 1)

    def close_log(self) -> None:
        """The end of training: nothing is at work behind it."""
        try:
            self.wait()
        finally:
            if self._log is not None:
                self._log.close()
                self._log = None

    def log_bytes(self) -> int:
        return 0 if self._log is None else os.fstat(self._log.fileno()).st_size

    def log(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        if self._log is None:  # behind the loop
            with (self.path / LOG).open("ab") as file:
                file.write(line)
            return
        self._log.write(line)
        self._log.flush()

    def read_log(self) -> list[dict[str, Any]]:
        path = self.path / LOG
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    aside = _aside(path)
    with aside.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def _sums(folder: Path) -> dict[str, list[int]]:
    """The size and the checksum of each file, which is on the disk for good by then."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            total = 0
            while block := file.read(1 << 22):
                total = zlib.crc32(block, total)
        found[str(path.relative_to(folder))] = [path.stat().st_size, total]
    return found


def _is_whole(folder: Path) -> bool:
    try:
        known = read_json(folder / STATE)["files"]
        sums = {name: found for name, found in _sums(folder).items() if name != STATE}
    except (BertsmithError, OSError, KeyError):
        return False
    return bool(sums == known)


def refuse_source(out: Path, *sources: str | Path | None) -> None:
    """A run clears its folder, and a model that it learns from would be lost with it."""
    for source in sources:
        if source is not None and Path(source).resolve().is_relative_to(out.resolve()):
            raise BertsmithError(f"{out} holds the model {source}, from which this run learns; give another folder.")
