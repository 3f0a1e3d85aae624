"""What the tables of results are made with: files of benchmarks/results in, Markdown out."""

import json
import sys
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def read_results(pattern: str) -> list[dict[str, Any]]:
    paths = sorted((ROOT / "benchmarks" / "results").glob(pattern))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def fill_tables(page: str, tables: Mapping[str, Callable[[], str]], missing: str = "") -> str:
    """The page with each table between its marks; one that has figures and no place on the page is an error."""
    for name, make in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        made = make() or missing
        if start in page and end in page:
            before, _, rest = page.partition(start)
            page = f"{before}{start}\n{made}\n{end}{rest.partition(end)[2]}"
        elif made and made != missing:
            sys.exit(f"there are figures for the table {name!r} and no place for it: put {start} and {end} on the page")
    return page


MANY = 4  # commands are no longer worth reading one by one


def heading(found: dict[str, Any]) -> str:
    """The machine, and the command; of a file that was merged from many calls, what they share."""
    commands = found.get("commands") or [found["command"]]
    if len(commands) < MANY:
        return f"{found['about']}: `{'`, `'.join(commands)}` ({found['date']})"
    return f"{found['about']}: `{share_words(commands)}` in {len(commands)} calls ({found['date']})"


def share_words(commands: list[str]) -> str:
    """The words that all of these begin with; the rest is in the file."""
    places = zip(*(line.split() for line in commands), strict=False)
    return " ".join([*(words[0] for words in takewhile(lambda words: len(set(words)) == 1, places)), "…"])
