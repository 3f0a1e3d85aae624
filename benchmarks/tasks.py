"""Real data of every kind: one row a dataset, one command a row.

    python benchmarks/tasks.py --data DIR --device cuda --jobs 8 --out benchmarks/results/tasks.json
    python benchmarks/tasks.py --data DIR --rows atis,snips
    python benchmarks/tasks.py --list                       # the commands only

A row is data: to add one, add it to ROWS. Where a dataset has one held-out file it is `test`: it chose nothing, as
training sets its own development part aside. SQuAD is the exception, as its rules tune on the file that they score.
"""

import argparse
import shlex
import sys
from dataclasses import dataclass
from typing import Any

from runs import finetune, make_parser, side_by_side


@dataclass(frozen=True)
class Dataset:
    task: str
    train: str
    test: str = ""
    dev: str = ""
    flags: str = ""
    show: tuple[str, ...] = ("f1",)


R52 = ("classify", "topics/reuters_r8_r52/reuters-r52-train.tab", "topics/reuters_r8_r52/reuters-r52-test.tab")
NEWS = ("classify", "20newsgroups/train.jsonl", "20newsgroups/test.jsonl")
CLASSES = ("accuracy", "macro_f1")
LONG = "--rate 1e-4 --epochs 4 --length 256 --truncate"
PAIRS = "--rate 1e-4 --length 256 --epochs"
SHORT = "--rate 2e-4 --epochs 8 --length 128 --truncate"  # few examples of most of the 52 classes

ROWS = {
    "r52-head": Dataset(*R52, flags=f"{SHORT} head", show=CLASSES),
    "r52-head+tail": Dataset(*R52, flags=f"{SHORT} head+tail", show=CLASSES),
    "r52-windows": Dataset(*R52, flags=f"{SHORT} windows", show=CLASSES),
    "20news-head": Dataset(*NEWS, flags=f"{LONG} head", show=CLASSES),
    "20news-head+tail": Dataset(*NEWS, flags=f"{LONG} head+tail", show=CLASSES),
    "20news-windows": Dataset(*NEWS, flags=f"{LONG} windows", show=CLASSES),
    "goemotions": Dataset(
        "classify", "goemotions/train.tsv", "goemotions/dev.tsv",
        flags="--several --rate 1e-4 --epochs 4 --length 128", show=("micro_f1", "macro_f1"),
    ),
    "ud-ewt-pos": Dataset(
        "tag", "ud_ewt/en_ewt-ud-train.rebuilt.conllu", "ud_ewt/en_ewt-ud-dev.conllu",
        flags="--tags upos --rate 2e-4 --epochs 4", show=("accuracy",),
    ),
    "conll2000": Dataset("tag", "conll2000/train.txt", "conll2000/test.txt", flags="--rate 2e-4 --epochs 5"),
    "snips": Dataset("tag", "slots/snips/train", "slots/snips/test", "slots/snips/dev", "--rate 2e-4 --epochs 6"),
    "atis": Dataset("tag", "slots/atis/train", "slots/atis/test", "slots/atis/dev", "--rate 2e-4 --epochs 15"),
    "squad-1.1": Dataset(
        "span", "squad/train-v1.1.subset.json", dev="squad/dev-v1.1.json", flags="--rate 1e-4 --epochs 3",
        show=("f1", "exact"),
    ),
    "squad-2.0": Dataset(
        "span", "squad/train-v2.0.first-10-articles.json", dev="squad/dev-v2.0.rebuilt.json",
        flags="--rate 1e-4 --epochs 4", show=("f1", "exact"),
    ),
    "sts-b": Dataset("regress", "glue/STS-B/train.tsv", "glue/STS-B/dev.tsv", flags=f"{PAIRS} 8",
                     show=("pearson", "spearman")),
    "rte": Dataset("classify", "glue/RTE/train.tsv", "glue/RTE/dev.tsv", flags=f"{PAIRS} 8", show=("accuracy",)),
    "mnli": Dataset("classify", "made/mnli.jsonl", "glue/MNLI/dev_matched.rebuilt.tsv", flags=f"{PAIRS} 3",
                    show=("accuracy",)),
    "qqp": Dataset("classify", "made/qqp.jsonl", "glue/QQP/dev.half20215.tsv", flags=f"{PAIRS} 4",
                   show=("accuracy", "f1")),
    "imdb": Dataset("classify", "imdb/train.jsonl", "imdb/test.jsonl",
                    flags="--rate 1e-4 --epochs 2 --truncate head+tail", show=("accuracy",)),
    "commonsenseqa": Dataset(
        "choose", "choice/commonsenseqa_v1.0/train_rand_split.jsonl", "choice/commonsenseqa_v1.0/dev_rand_split.jsonl",
        flags=f"{PAIRS} 6", show=("accuracy",),
    ),
    "openbookqa": Dataset(
        "choose", "choice/openbookqa/Main/train.tsv", "choice/openbookqa/Main/test.tsv",
        "choice/openbookqa/Main/dev.tsv", f"{PAIRS} 6", ("accuracy",),
    ),
    "swag": Dataset("choose", "choice/swag/train-2choice-from-ni.csv", "choice/swag/val.first500.csv",
                    flags=f"{PAIRS} 6", show=("accuracy",)),
}  # fmt: skip


def command(name: str, data: str) -> list[str]:
    row = ROWS[name]
    words = ["--task", row.task, "--train", f"{data}/{row.train}"]
    for side, file in (("--dev", row.dev), ("--test", row.test)):
        words += [side, f"{data}/{file}"] if file else []
    return [*words, *shlex.split(row.flags)]


def spell(name: str) -> str:
    """What a person types; $DATA is the folder with the datasets."""
    return f"bertsmith finetune {' '.join(command(name, '$DATA'))} --out runs/{name}"


def work(name: str, options: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "command": spell(name), "show": ROWS[name].show}
    found = finetune([*command(name, str(options.data)), "--seed", str(options.seed)], options)
    return {**row, **found, "lengths": cuts(found)} if "lengths" in found else {**row, **found}


def cuts(report: dict[str, Any]) -> dict[str, Any]:
    """What long inputs lost, by split."""
    kept = ("limit", "policy", "examples", "examples_cut", "tokens", "tokens_cut")
    return {side: {key: found[key] for key in kept if key in found} for side, found in report["lengths"].items()}


def tell(row: dict[str, Any]) -> str:
    on = "test" if "test" in row["metrics"] else "dev"
    figures = []
    for metric in ROWS[row["name"]].show:
        found = row["metrics"][on][metric]
        figures.append(f"{metric} {100 * found['value']:.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]")
    size = f"n {found['n']:,}"
    return f"{row['name']:17} {on:4} {', '.join(figures):60} {size:>8} {row['wall_s']:6.0f} s\n    {row['command']}"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS), help=", ".join(ROWS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.list or options.data is None:  # `make bench` calls every script, and the data cannot be shipped
        for name in options.rows:
            print(spell(name))
        return
    _, status = side_by_side(options.rows, lambda name: work(name, options), options, tell, lambda runs: None)
    sys.exit(status)


if __name__ == "__main__":
    main()
