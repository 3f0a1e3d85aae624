"""A pretraining whose process dies, as by kill -9, while its second checkpoint is being written beside the training.

python killed_save.py CORPUS OUT MOMENT    MOMENT: model, optimizer, state or name, what is half done then
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pretraining_made import SHORT, pretrain

from bertsmith.training import folder


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def half_write(tensors: dict[str, Any], path: Path) -> None:
    path.write_bytes(b"\0" * 1000)
    die()


def lay_trap(moment: str) -> None:
    """From the second checkpoint on."""
    write, written = folder.RunFolder._write, []

    def trapped(self: folder.RunFolder, path: Path, write_files: Any, state: Any) -> None:
        written.append(path)
        if len(written) == 1:
            return write(self, path, write_files, state)
        if moment == "model":
            return write(self, path, lambda to: half_write({}, to / "model.safetensors"), state)
        if moment == "optimizer":
            folder.save_file = half_write
        if moment == "state":
            folder._sums = die
        if moment == "name":
            os.replace = die
        return write(self, path, write_files, state)

    folder.RunFolder._write = trapped  # type: ignore[method-assign]


if __name__ == "__main__":
    lay_trap(sys.argv[3])
    pretrain(Path(sys.argv[1]), Path(sys.argv[2]), "electra", **SHORT)
