"""Ctrl-C and SIGTERM while training: they wait until the step, evaluation or checkpoint at work is whole; a second
one does not.

An interrupt in the middle of a step would leave weights of which some have taken it and some have not.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from bertsmith.errors import Stopped

USUAL: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Inside, the first interrupt is kept until `give_way` or the end, where it is raised."""

    def __init__(self, kept: bool) -> None:
        # Only the main thread may set handlers; one that is not Python's own is somebody's wish.
        here = threading.current_thread() is threading.main_thread()
        usual = [number for number, handler in USUAL.items() if signal.getsignal(number) is handler]
        self.kept = usual if kept and here else []
        self.number: int = signal.SIGINT  # of the one that came
        self.is_waiting = False
        # Whether it may have come in the middle of something.
        self.is_urgent = here and signal.SIGINT not in self.kept

    def __enter__(self) -> Self:
        for number in self.kept:
            signal.signal(number, self._keep)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number in self.kept:
            signal.signal(number, USUAL[number])
        if kind is None:
            self.give_way()

    def give_way(self) -> None:
        """Raise the interrupt that waits: here nothing is half done."""
        if self.is_waiting:
            raise KeyboardInterrupt

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self.number, self.is_urgent = number, self.is_waiting
        if self.is_waiting:
            raise KeyboardInterrupt
        self.is_waiting = True


@contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM is an interrupt, so that all is left in good order."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped("stopped.", number)

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
