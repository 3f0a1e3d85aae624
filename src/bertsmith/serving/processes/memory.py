"""What bounds the memory of a process with models: how many kernels are kept, and what is free given back.

oneDNN keeps a kernel for each number of rows that a product has met: half a MiB and more each, 1,024 of them, so that
a server would grow for hours until the last rare size had come. Rows are rounded (layers/linear.py), so that those of
one model are some hundred, and here oneDNN keeps as many; one that comes back after long is made anew in less than a
millisecond. Kernels that come and go among the numbers of batches would leave holes all over the heap; the system gets
their pages back.
"""

import ctypes
import os
import threading
from collections.abc import Callable

# How much is kept, by the variable of the environment that says so; each is read at the first product. The second is
# torch's own cache in front of oneDNN's, one in each thread: it saves next to nothing while oneDNN has the kernel.
KEPT = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "512", "LRU_CACHE_CAPACITY": "16"}
OLD_NAME = "DNNL_PRIMITIVE_CACHE_CAPACITY"  # of the first, which is read, too
EVERY = 10.0  # seconds between two times that free memory is given back, which takes some milliseconds


def bound_caches() -> None:
    """To be called before torch computes anything in this process; what somebody has set stays as it is."""
    for name, value in KEPT.items():
        if name == "LRU_CACHE_CAPACITY" or OLD_NAME not in os.environ:
            os.environ.setdefault(name, value)


def find_trim() -> Callable[[int], int] | None:
    """What gives free memory back to the system; None where the C library is another than glibc."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


class Returning(threading.Thread):
    """Gives free memory back every few seconds in which `done`, which counts the work, has changed."""

    def __init__(self, done: Callable[[], int], every: float = EVERY, trim: Callable[[int], int] | None = None) -> None:
        super().__init__(name="memory", daemon=True)
        self.done, self.every = done, every
        self.trim = trim or find_trim()
        self.ended = threading.Event()

    def run(self) -> None:
        before = self.done()
        while self.trim is not None and not self.ended.wait(self.every):
            now = self.done()
            if now != before:
                self.trim(0)
            before = now
