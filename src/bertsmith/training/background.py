"""Work that goes on beside the training, such as writing a checkpoint: one piece at a time, in one thread.

In: a function. Out: nothing until it is waited for; then its error, if it had one.
"""

import threading
from collections.abc import Callable


class Background:
    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin as soon as the piece before is done."""
        self.wait()
        # A process that must end at once takes the thread with it: what it wrote has no name yet, so nobody reads it.
        self._thread = threading.Thread(target=self._do, args=(work,), name="checkpoint", daemon=True)
        self._thread.start()

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # it belongs to whoever waits
            self._error = error

    def wait(self) -> None:
        """Until nothing is at work; raises what went wrong, once."""
        if self._thread is None or self._thread is threading.current_thread():
            return
        self._thread.join()
        self._thread, error, self._error = None, self._error, None
        if error is not None:
            raise error
