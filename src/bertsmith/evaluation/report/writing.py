"""What a run leaves for people: `report.html` to look at, `README.md` to share, `metrics.json` to compare.

A pretraining leaves its curves as a picture, too, which the card shows.
"""

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from bertsmith.evaluation.report.card import PICTURE, make_card
from bertsmith.evaluation.report.confused import keep_most
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.numbers import is_number
from bertsmith.evaluation.report.page import make_page
from bertsmith.evaluation.report.pretraining_curves import draw_picture
from bertsmith.models.files import read_json

# The log has the curves, and the texts of the errors belong to the report alone: metrics.json may be shared.
ELSEWHERE = ("curves", "tokens", "errors")


def write_report(folder: Path, facts: RunFacts) -> None:
    """A few files in the folder, each whole or not there at all."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in asdict(facts).items() if name not in ELSEWHERE}
    kept["confusion"] = keep_most(facts.confusion)
    numbers = json.dumps(_finite(kept), ensure_ascii=True, indent=2, allow_nan=False) + "\n"
    texts = {"metrics.json": numbers, "README.md": make_card(facts), "report.html": make_page(facts)}
    if picture := draw_picture(facts):
        texts[PICTURE] = picture
    for name, text in texts.items():
        aside = folder / f".{name}.part"
        aside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(aside, folder / name)


def read_metrics(folder: Path) -> RunFacts:
    """The facts that `metrics.json` holds: all but the curves and the errors, and what is unknown here."""
    found = {"task": "", **read_json(folder / "metrics.json")}
    return RunFacts(**{field.name: found[field.name] for field in fields(RunFacts) if field.name in found})


def _finite(value: Any) -> Any:
    """As JSON has it: no NaN and no infinity, but null."""
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value if not isinstance(value, float) or is_number(value) else None
