"""What every table of README.md is made with: files of benchmarks/results in, Markdown out."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def read_results(pattern: str) -> list[dict[str, Any]]:
    paths = sorted((ROOT / "benchmarks" / "results").glob(pattern))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def heading(found: dict[str, Any]) -> str:
    return f"{found['about']}: `{found['command']}` ({found['date']})"
