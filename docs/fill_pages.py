"""Fills the tables of README.md, docs/results.md, docs/presets.md and house/CARD.md from the program and from
benchmarks/results, so that none is typed.

python docs/fill_pages.py            # rewrite
python docs/fill_pages.py --check    # exit with 1 if a page is out of date
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import bertsmith

sys.path.insert(0, str(Path(__file__).parent))  # where this is run as a file by another program
from headlines import headlines
from house_tables import HOUSE, MISSING, house
from pretraining_tables import PRETRAINING
from serving_tables import SERVING
from tables import ROOT, fill_tables, heading, read_results, table
from verbs import list_verbs


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
    rows = []
    for name, command in list_verbs():
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


def graphs() -> str:
    parts = []
    for found in read_results("graphs-*.json"):
        rows = [
            [row["contestant"], f"{row['file_mib']:.1f} MiB", f"{row['bulk_s']:.2f} s", f"{row['single_ms']:.2f} ms",
             f"{row['memory_mib']:,} MiB", f"{100 * row['accuracy']:.2f}", f"{row['changed']:,}"]
            for row in found["rows"]
        ]  # fmt: skip
        head = ["", "file", f"{found['texts']:,} texts", "one text", "peak memory", "accuracy", "answers changed"]
        parts.append(f"{heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def speeds() -> str:
    parts = []
    for found in read_results("finetune-speed-*.json"):
        rows = [
            [
                row["task"],
                row["contestant"],
                f"{row['examples_per_second']:,.0f}",
                f"{row['times']:.2f}",
                f"{row['memory_mib']:,} MiB",
            ]
            for row in found["table"]
        ]
        head = ["data", "", "examples/s", "ours / its", "peak memory"]
        parts.append(f"{heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def scores() -> str:
    def cell(side: dict[str, Any]) -> str:
        return f"{100 * side['median']:.2f} ± {100 * side['sd']:.2f} (n = {side['n']})"

    parts = []
    for found in read_results("finetune-score-*.json"):
        rows = [[row["task"], row["metric"], cell(row["bertsmith"]), cell(row["trainer"])] for row in found["table"]]
        parts.append(f"{heading(found)}\n\n{table(['data', 'metric', 'bertsmith', 'Trainer'], rows)}")
    return "\n\n".join(parts)


def datasets() -> str:
    parts = []
    for found in read_results("tasks-*.json"):
        rows = []
        for row in found["runs"]:
            split = "test" if "test" in row["metrics"] else "dev"
            figures = [
                f"{metric} **{100 * one['value']:.1f}** ({100 * one['low']:.1f} to {100 * one['high']:.1f})"
                for metric, one in ((metric, row["metrics"][split][metric]) for metric in row["show"])
            ]
            seconds = row["speed"]["seconds"]
            rows.append([row["name"], split, "; ".join(figures), f"`{row['command']}`", f"{seconds:.0f} s"])
        parts.append(f"{heading(found)}\n\n{table(['', 'on', 'score', 'command', 'training'], rows)}")
    return "\n\n".join(parts)


def glue() -> str:
    """One table a file: medians over seeds, and the mean."""
    parts = []
    for found in read_results("glue-*.json"):
        rows = [
            [task["title"], metric, f"{100 * one['median']:.2f}", f"{100 * one['low']:.2f} – {100 * one['high']:.2f}",
             f"{100 * one['sd']:.2f}"]
            for task in found["tasks"] for metric, one in task["metrics"].items()
        ]  # fmt: skip
        (mean,) = found["means"]
        rows.append([f"mean of {len(mean['tasks'])}", "", f"**{100 * mean['value']:.2f}**", "", ""])
        head = ["task", "metric", f"median of {len(found['seeds'])} seeds", "worst – best", "sd"]
        parts.append(f"{heading(found)}, {found['seconds']:.0f} s for all\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def adapters() -> str:
    parts = []
    for found in read_results("adapters-*.json"):
        rows = [
            [row["task"], row["metric"], *(f"{row[way]['median']:.2f} ({len(row[way]['scores'])} seeds)"
                                           for way in ("full", "adapter")), f"{row['adapter']['mb']:.2f} MB"]
            for row in found["table"]
        ]  # fmt: skip
        parts.append(f"{heading(found)}\n\n{table(['data', 'metric', 'all learns', 'adapter', 'its size'], rows)}")
    return "\n\n".join(parts)


def features() -> str:
    told = {"full": "all of it learns", "last": "last layer", "sum4": "sum of the last four",
            "concat4": "last four side by side", "mix": "learned mix of all"}  # fmt: skip
    parts = []
    for found in read_results("features-*.json"):
        scores: dict[str, dict[str, str]] = {}
        for row in found["table"]:
            layers, _, head = row["name"].partition("-")
            scores.setdefault(layers, {})[head or "linear"] = f"{100 * row['median']:.2f} ({row['seeds']})"
        rows = [[told[layers], found_.get("linear", ""), found_.get("bilstm", "")] for layers, found_ in scores.items()]
        head = ["what the head reads", "linear head, dev F1 (seeds)", "two-layer BiLSTM, dev F1 (seeds)"]
        parts.append(f"{heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def several() -> str:
    parts = []
    for found in read_results("several-*.json"):
        for mix in dict.fromkeys(row["mix"] for row in found["table"]):
            mine = [row for row in found["table"] if row["mix"] == mix]
            ways = [key for key in mine[0] if key not in ("mix", "member", "metric")]
            rows = [
                [row["member"], row["metric"], *(f"{100 * row[way]['mean']:.1f} ± {100 * row[way]['spread']:.1f} "
                                                 f"({row[way]['seeds']})" for way in ways)]
                for row in mine
            ]  # fmt: skip
            parts.append(table([mix, "metric", *(f"{way} (seeds)" for way in ways)], rows))
        parts.append(heading(found))
    return "\n\n".join(parts)


def search() -> str:
    parts = []
    for found in read_results("search-gpu*.json"):
        rows = [
            [name, *(f"{100 * one['metrics'][metric][0]:.1f}" for metric in ("mrr@10", "recall@1", "recall@10")),
             f"{one['queries_per_second']:,.0f}"]
            for name, one in found["ways"].items()
        ]  # fmt: skip
        parts.append(f"{heading(found)}\n\n{table(['', 'MRR@10', 'recall@1', 'recall@10', 'queries/s'], rows)}")
    return "\n\n".join(parts)


PAGES = {
    "README.md": ({"house": house, "headlines": headlines, "verbs": verbs}, ""),
    "docs/presets.md": ({"presets": presets}, ""),
    "docs/results.md": (
        {
            **PRETRAINING,
            **SERVING,
            "glue": glue,
            "adapters": adapters,
            "features": features,
            "several": several,
            "search": search,
            "results": results,
            "graphs": graphs,
            "speeds": speeds,
            "scores": scores,
            "datasets": datasets,
        },
        "",
    ),
    "house/CARD.md": (HOUSE, MISSING),
}  # the tables of each, and what stands in the place of one without figures


def main() -> None:
    stale = [name for name, (tables, missing) in PAGES.items() if not refresh(ROOT / name, tables, missing)]
    if "--check" in sys.argv and stale:
        sys.exit(f"{', '.join(stale)}: out of date; run python docs/fill_pages.py")


def refresh(path: Path, tables: Mapping[str, Callable[[], str]], missing: str) -> bool:
    """Whether the page was as it should be; without --check it is so afterwards."""
    page = path.read_text(encoding="utf-8")
    filled = fill_tables(page, tables, missing)
    if "--check" not in sys.argv:
        path.write_text(filled, encoding="utf-8")
    return filled == page


if __name__ == "__main__":
    main()
