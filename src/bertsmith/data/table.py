"""Records with a memory of where they stood: what every reader of a file gives, and every message names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """`records[i]` stood in row `rows[i]` of what `name` names; every record has all of `columns` as its keys."""

    name: str  # the file as the user gave it, or what the data is for: "train"
    columns: tuple[str, ...]
    records: Sequence[dict[str, Any]]
    rows: Sequence[int]  # counted from 1 as an editor or a spreadsheet shows them
    unit: str = "row"  # what a number in `rows` counts: "row", "line", "record", "question"
    kind: str = "records"  # csv, tsv, jsonl, json, parquet, conll, squad, slots, lines, records

    def where(self, index: int, column: str = "") -> str:
        """As in `reviews.csv, row 12, column "label"`."""
        place = f"{self.name}, {self.unit} {self.rows[index]:,}"
        return f'{place}, column "{column}"' if column else place
