"""The command line. In: the words after `bertsmith`. Out: answers on standard output, all else on standard error.

Exit status: 0 done, 1 a mistake in a file, a setting or an input (one sentence says which), 2 a mistake in the command
itself, 130 stopped by Ctrl-C, 143 stopped by SIGTERM while training or writing a model, 141 the reader of the pipe has
left.
"""

import os
import sys


def main() -> None:
    """Runs one command and ends the process with its status."""
    try:
        _run()
    except SystemExit as end:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            from bertsmith.training.devices import leave

            leave(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


def _run() -> None:
    from bertsmith.cli.output import write_note
    from bertsmith.errors import BertsmithError, Stopped

    try:
        from bertsmith.cli.app import app

        app(prog_name="bertsmith")
    except Stopped as error:
        write_note(str(error))
        sys.exit(128 + error.number)  # as shells do
    except BertsmithError as error:
        write_note(f"error: {error}")
        sys.exit(1)
    except PermissionError as error:
        write_note(f"error: {error.filename} cannot be read: {error.strerror}.")
        sys.exit(1)
    except KeyboardInterrupt:  # typer turns one inside a verb into the same status
        sys.exit(130)
