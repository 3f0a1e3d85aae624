"""The one error a user's mistake raises: a single sentence that names what is wrong and what to do about it.

The command line prints it and exits with status 1; in Python it is an ordinary `ValueError`.
"""

import signal


class BertsmithError(ValueError):
    """A mistake in a file, a setting or an input; `str(error)` is the whole message, one sentence."""


class Stopped(BertsmithError):
    """A signal ended the work in good order: `number` is the signal's, and the message says how to go on."""

    def __init__(self, sentence: str, number: int = signal.SIGINT) -> None:
        super().__init__(sentence)
        self.number = int(number)
