"""An adapter beside full fine-tuning: the same data and seeds, the score of each, and how large it is on disk.

    python benchmarks/adapters.py --data DIR --device cuda --jobs 8 --out benchmarks/results/adapters-gpu-h200.json
    python benchmarks/adapters.py                              # the commands only

The development file chooses the best epoch on both sides alike. MB are those of the adapter's own files.
"""

import argparse
import shlex
import statistics
import sys
from itertools import product
from pathlib import Path
from typing import Any

from runs import finetune, make_parser, side_by_side

# Task -> files and settings that both sides share, the metric, what full fine-tuning and what the adapter have.
ROWS = {
    "sst-2": ("--task classify --train {}/glue/SST-2/train.tsv --dev {}/glue/SST-2/dev.tsv", "accuracy",
              "--rate 1e-4 --epochs 3", "--lora 8 --rate 1e-3 --epochs 3"),
    "sts-b": ("--task regress --train {}/glue/STS-B/train.tsv --dev {}/glue/STS-B/dev.tsv", "pearson",
              "--rate 1e-4 --epochs 8", "--lora 8 --rate 1e-3 --epochs 8"),
    "conll2003": ("--task tag --train {}/conll2003/eng.train --dev {}/conll2003/eng.testa", "f1",
                  "--rate 1e-4 --epochs 5", "--lora 8 --rate 2e-3 --epochs 8"),
    "mrpc": ("--task classify --train {}/glue/MRPC/train.tsv --dev {}/glue/MRPC/dev.tsv", "accuracy",
             "--rate 1e-4 --epochs 5", "--lora 8 --rate 1e-3 --epochs 8"),
}  # fmt: skip
WAYS = ("full", "adapter")


def command(task: str, way: str, seed: int, data: str) -> list[str]:
    files, metric, *flags = ROWS[task]
    chosen = ["--metric", metric] if metric != "pearson" else []
    return [*shlex.split(files.replace("{}", data)), *shlex.split(flags[WAYS.index(way)]), *chosen, "--seed", str(seed)]


def spell(task: str, way: str, seed: int) -> str:
    return "bertsmith finetune " + " ".join(command(task, way, seed, "$DATA")) + f" --out runs/{task}-{way}-{seed}"


def weigh(folder: Path) -> float:
    """MB of the files that another machine would need beside the base."""
    files = [*folder.glob("adapter*"), folder / "bertsmith.json"] if (folder / "adapter_config.json").exists() else []
    return sum(path.stat().st_size for path in files or [folder / "model.safetensors"]) / 1e6


def work(turn: tuple[int, str, str], options: argparse.Namespace) -> dict[str, Any]:
    seed, task, way = turn
    row = {"task": task, "way": way, "seed": seed, "command": spell(task, way, seed)}
    return {**row, **finetune([*command(task, way, seed, str(options.data)), "--no-check"], options, weigh)}


def tabulate(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for task, (_, metric, *_) in ROWS.items():
        line: dict[str, Any] = {"task": task, "metric": metric}
        for way in WAYS:
            mine = [one for one in runs if (one["task"], one["way"]) == (task, way) and "error" not in one]
            scores = [100 * one["metrics"]["dev"][metric]["value"] for one in mine]
            if mine:
                line[way] = {"median": statistics.median(scores), "scores": scores, "mb": round(mine[0]["seen"], 2)}
        table += [line] if len(line) > 2 else []
    return table


def show(table: list[dict[str, Any]]) -> None:
    print(f"\n{'task':10} {'metric':9} {'full':>7} {'adapter':>8} {'MB':>6}")
    for line in table:
        full, adapter = (line.get(way, {"median": float("nan"), "mb": 0}) for way in WAYS)
        figures = f"{full['median']:>7.2f} {adapter['median']:>8.2f} {adapter['mb']:>6.2f}"
        print(f"{line['task']:10} {line['metric']:9} {figures}")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS), help=", ".join(ROWS))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    turns = list(product(range(1, options.seeds + 1), options.rows, WAYS))
    if options.list or options.data is None:  # `make bench` calls every script, and the data cannot be shipped
        for seed, task, way in turns[: 2 * len(options.rows)]:
            print(spell(task, way, seed))
        return

    def tell(one: dict[str, Any]) -> str:
        score = 100 * one["metrics"]["dev"][ROWS[one["task"]][1]]["value"]
        told = f"{score:.2f}, {one['seen']:.2f} MB, {one['wall_s']} s"
        return f"{one['task']:10} {one['way']:8} seed {one['seed']}: {told}"

    runs, status = side_by_side(turns, lambda turn: work(turn, options), options, tell, tabulate)
    show(tabulate(runs))
    sys.exit(status)


if __name__ == "__main__":
    main()
