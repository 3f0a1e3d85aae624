"""The verbs of the program, for the pages that list them."""

from collections.abc import Iterator
from typing import Any

import typer.main


def list_verbs() -> Iterator[tuple[str, Any]]:
    """Each verb with its command; those of a group by both of their words."""
    from bertsmith.cli.app import app

    yield from _walk(typer.main.get_command(app))


def _walk(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _walk(command, f"{name} ")
        else:
            yield before + name, command
