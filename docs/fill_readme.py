"""Fills the tables of README.md from the program and from benchmarks/results, so that none is typed.

    python docs/fill_readme.py            # rewrite
    python docs/fill_readme.py --check    # exit with 1 if the page is out of date
"""

import json
import re
import sys
from pathlib import Path

import typer.main

import bertsmith
from bertsmith.cli.app import app

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def presets() -> str:
    rows = [
        [
            f"`{row['preset']}`",
            *(f"{row[key]:,}" for key in ("depth", "width", "heads", "inner", "vocabulary", "positions")),
            f"{row['parameters'] / 1e6:.1f}M",
        ]
        for row in bertsmith.models_table()
    ]
    return table(["preset", "depth", "width", "heads", "inner", "vocabulary", "positions", "parameters"], rows)


def verbs() -> str:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    rows = []
    for name, command in commands.items():
        first = (command.help or "").strip().splitlines()[0]
        example = re.search(r"^\s*(bertsmith .+)$", command.help or "", re.MULTILINE)
        assert example, name
        rows.append([f"`{name}`", first, f"`{example[1].strip()}`"])
    return table(["verb", "what it does", "example"], rows)


def results() -> str:
    parts = []
    for path in sorted((ROOT / "benchmarks" / "results").glob("inference-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        rows = [
            [
                row["shape"],
                row["contestant"],
                f"{row['bulk_s']:.2f} s",
                f"{row['times_ours']:.2f}",
                f"{row['single_ms']:.2f} ms",
                f"{row['memory_mib']:,} MiB",
            ]
            for row in found["rows"]
        ]
        head = ["shape", "", f"{found['texts']:,} texts", "× ours", "one short text", "peak memory"]
        parts.append(f"{found['about']}: `{found['command']}` ({found['date']})\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def fill(page: str) -> str:
    for name, make in (("presets", presets), ("verbs", verbs), ("results", results)):
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = page.partition(start)
        _, _, after = rest.partition(end)
        page = f"{before}{start}\n{make()}\n{end}{after}"
    return page


def main() -> None:
    page = README.read_text(encoding="utf-8")
    filled = fill(page)
    if "--check" in sys.argv:
        sys.exit("README.md is out of date: run python docs/fill_readme.py" if filled != page else 0)
    README.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
