"""The one error a user's mistake raises: a single sentence that names what is wrong and what to do about it.

The command line prints it and exits with status 1; in Python it is an ordinary `ValueError`.
"""


class BertsmithError(ValueError):
    """A mistake in a file, a setting or an input; `str(error)` is the whole message, one sentence."""
