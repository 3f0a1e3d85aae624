"""A task whose process dies while it trains, as one that the system kills for its memory does."""

import os
import signal

from bertsmith.tasks.classify import Classify


class Killer(Classify):
    @classmethod
    def settle(cls, examples, choices):
        if examples[0].text.startswith("this"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().settle(examples, choices)
