"""What a run on a GPU is about to import, read from the disk beforehand, many files at a time.

Importing torch and its compiler opens some thousand small files and one of half a gigabyte, each when the one before
it has run. On a machine that has just started every one of them waits for the disk; here threads read them into the
system's memory meanwhile. Nothing in this module imports torch. What cannot be read is left to whoever imports it.
"""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

PACKAGES = ("torch", "triton", "sympy", "mpmath", "networkx")
LIBRARY = "_C/libtriton.so"  # of triton: the large file that its import goes through here and there
READERS = 8
PIECE = 1 << 22
DEVICES = ("/dev/nvidiactl", "/dev/dxg")  # of Linux, and of Linux within Windows


def read_ahead(device: str | None) -> list[Thread]:
    """Begin, if the run will be on a GPU, and say who is at it. Of several processes on a machine one does."""
    if device in (None, "auto"):
        device = "cuda" if any(Path(each).exists() for each in DEVICES) else "cpu"
    if not str(device).startswith("cuda") or os.environ.get("LOCAL_RANK", "0") != "0" or "torch" in sys.modules:
        return []
    waiting: SimpleQueue[Path | None] = SimpleQueue()
    threads = [Thread(target=_read, args=(waiting,), daemon=True) for _ in range(READERS)]
    threads.append(Thread(target=_list, args=(waiting,), daemon=True))
    for thread in threads:
        thread.start()
    return threads


def list_files() -> Iterator[Path]:
    """Compiled modules of this Python, a package after the other, and Triton's library."""
    mark = f".{sys.implementation.cache_tag}.pyc"
    for name in PACKAGES:
        spec = find_spec(name)
        for home in (spec.submodule_search_locations or ()) if spec else ():
            if (library := Path(home, LIBRARY)).exists():
                yield library
            for folder, _, files in os.walk(home):
                yield from (Path(folder, file) for file in files if file.endswith(mark))


def _list(waiting: "SimpleQueue[Path | None]") -> None:
    for path in list_files():
        waiting.put(path)
    for _ in range(READERS):
        waiting.put(None)


def _read(waiting: "SimpleQueue[Path | None]") -> None:
    while (path := waiting.get()) is not None:
        try:
            with path.open("rb", buffering=0) as file:
                while file.read(PIECE):
                    pass
        except OSError:  # whoever imports it will say so
            continue
