"""Ctrl-C while training: it waits until the step, evaluation or checkpoint at work is whole; a second one does not.

An interrupt in the middle of a step would leave weights of which some have taken it and some have not.
"""

import signal
import threading
from types import FrameType
from typing import Self


class Interrupts:
    """Inside, the first interrupt is kept until `give_way` or the end, where it is raised."""

    def __init__(self, kept: bool) -> None:
        # Only the main thread may set handlers; one that is not Python's own is somebody's wish.
        here = threading.current_thread() is threading.main_thread()
        self.kept = kept and here and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self.is_waiting = False
        self.is_urgent = here and not self.kept  # whether it may have come in the middle of something

    def __enter__(self) -> Self:
        if self.kept:
            signal.signal(signal.SIGINT, self._keep)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.kept:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if kind is None:
            self.give_way()

    def give_way(self) -> None:
        """Raise the interrupt that waits: here nothing is half done."""
        if self.is_waiting:
            raise KeyboardInterrupt

    def _keep(self, number: int, frame: FrameType | None) -> None:
        if self.is_waiting:
            self.is_urgent = True
            raise KeyboardInterrupt
        self.is_waiting = True
