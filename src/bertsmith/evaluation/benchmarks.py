"""The benchmarks: a table of rows each, a row a task. Another benchmark is another table in `BENCHMARKS`.

In: a folder with the tasks' files as their makers gave them out. Out: which task has which files.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith.errors import BertsmithError

ENDINGS = ("tsv", "csv", "jsonl", "parquet")


def usual_names(*stems: str) -> tuple[str, ...]:
    """As globs, the whole file first: `train.tsv`, …, the Hub's `train-00000-of-00001.parquet`, then parts of it."""
    whole = [f"{stem}.{ending}" for stem in stems for ending in ENDINGS]
    return (*whole, *(f"{stem}-*.parquet" for stem in stems), *(f"{stem}.*.tsv" for stem in stems))


@dataclass(frozen=True)
class BenchmarkTask:
    name: str  # what --tasks calls it
    title: str  # what its makers call it, and its folder (case, - and _ aside)
    kind: str  # the task to fine-tune
    sizes: tuple[int, int]  # examples of the whole train and dev: fewer are reported as a subset
    metrics: tuple[str, ...]  # to show; their mean is the task's score
    settings: Mapping[str, Any]  # of the fine-tuning
    train: tuple[str, ...] = usual_names("train")
    dev: tuple[str, ...] = usual_names("dev", "validation")
    in_mean: bool = True
    both_ways: bool = False  # pairs whose order means nothing, so that they can be learnt both ways round
    columns: Mapping[str, str] = field(default_factory=dict)  # role -> column, where its name does not tell

    def settle(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What it is fine-tuned with: the row's settings, what was asked for over them; `swap` where it has a meaning.

        Its rate is for the whole network: an adapter, or a head on frozen features, has its own.
        """
        swap = {"swap": True} if self.both_ways and given.get("swap") else {}
        in_part = given.get("lora") or given.get("features", "none") != "none"
        usual = {name: value for name, value in self.settings.items() if not (in_part and name == "rate")}
        chosen = {name: value for name, value in given.items() if name != "swap"}
        return {"metric": self.metrics[0], **usual, **chosen, **swap}


ACCURACY, BOTH, ALIKE = ("accuracy",), ("accuracy", "f1"), ("pearson", "spearman")

# Wang et al. 2019, with the metrics of its table 1. Rates and epochs are for small encoders (20 to 60 million weights).
# WNLI's dev set is made so that what is learnt from its train set misleads (the makers' FAQ): it is left out of the
# mean, as in the BERT paper.
GLUE = (
    BenchmarkTask("cola", "CoLA", "classify", (8_551, 1_043), ("matthews",), {"rate": 1e-4, "epochs": 6, "batch": 32}),
    BenchmarkTask("sst2", "SST-2", "classify", (67_349, 872), ACCURACY, {"rate": 1e-4, "epochs": 3, "batch": 64}),
    BenchmarkTask("mrpc", "MRPC", "classify", (3_668, 408), BOTH, {"rate": 1e-4, "epochs": 6, "batch": 32},
                  both_ways=True),
    BenchmarkTask("stsb", "STS-B", "regress", (5_749, 1_500), ALIKE, {"rate": 1e-4, "epochs": 6, "batch": 32},
                  both_ways=True),
    BenchmarkTask("qqp", "QQP", "classify", (363_846, 40_430), BOTH, {"rate": 1e-4, "epochs": 3, "batch": 64},
                  both_ways=True),
    BenchmarkTask("mnli", "MNLI", "classify", (392_702, 9_815), ACCURACY, {"rate": 1e-4, "epochs": 3, "batch": 64},
                  dev=usual_names("dev_matched", "validation_matched")),
    BenchmarkTask("qnli", "QNLI", "classify", (104_743, 5_463), ACCURACY, {"rate": 1e-4, "epochs": 3, "batch": 64}),
    BenchmarkTask("rte", "RTE", "classify", (2_490, 277), ACCURACY, {"rate": 1e-4, "epochs": 8, "batch": 32}),
    BenchmarkTask("wnli", "WNLI", "classify", (635, 71), ACCURACY, {"rate": 5e-5, "epochs": 5, "batch": 32},
                  in_mean=False),
)  # fmt: skip

BENCHMARKS: dict[str, Sequence[BenchmarkTask]] = {"glue": GLUE}
UNTRAINED = {  # nothing is fine-tuned: functions of their own
    "blimp": "evaluate_blimp", "masked": "evaluate_masked", "perplexity": "evaluate_perplexity",
}  # fmt: skip


@dataclass(frozen=True)
class TaskFiles:
    task: BenchmarkTask
    train: Path
    dev: Path


def find_benchmark(name: str) -> Sequence[BenchmarkTask]:
    if name in UNTRAINED:
        raise BertsmithError(f"{name} needs no fine-tuning; call bertsmith.{UNTRAINED[name]}.")
    if name not in BENCHMARKS:
        known = {**BENCHMARKS, **UNTRAINED}
        raise BertsmithError(f"{name!r} is not a benchmark (there is {', '.join(known)}){_suggest(str(name), known)}")
    return BENCHMARKS[name]


def choose_tasks(benchmark: str, names: Sequence[str] | None) -> Sequence[BenchmarkTask]:
    """Those that were named, in the table's order; all of them where none was."""
    rows = find_benchmark(benchmark)
    if names is None:
        return rows
    known = {plain(row.name): row for row in rows}
    wanted = [plain(str(name)) for name in names]
    for name, asked in zip(wanted, names, strict=True):
        if name not in known:
            raise BertsmithError(
                f"{benchmark} has no task {asked!r} (its tasks are {', '.join(known)}){_suggest(name, known)}"
            )
        if wanted.count(name) > 1:
            raise BertsmithError(f"{asked} is named twice; name each task once.")
    if not wanted:
        raise BertsmithError(f"no task is named; name some of {', '.join(known)}, or leave tasks out for all.")
    return [row for row in rows if plain(row.name) in wanted]


def find_tasks(benchmark: str, folder: Path, names: Sequence[str] | None = None) -> tuple[list[TaskFiles], list[str]]:
    """The tasks that the folder holds, and a sentence for each that it holds in part; a named one must be whole."""
    rows = choose_tasks(benchmark, names)
    if not folder.is_dir():
        raise BertsmithError(f"{folder} is not a folder; give the one that holds the tasks of {benchmark}.")
    folders = {plain(path.name): path for path in sorted(folder.iterdir()) if path.is_dir()}
    found: list[TaskFiles] = []
    notes: list[str] = []
    for row in rows:
        home = folders.get(plain(row.title))
        try:
            if home is None:
                raise BertsmithError(f"{folder} has no folder {row.title}, where {row.name} should be.")
            found.append(TaskFiles(row, find_file(home, row.train, "train"), find_file(home, row.dev, "dev")))
        except BertsmithError as error:
            if names is not None:
                raise
            if home is not None:
                notes.append(f"{row.title} is left out: {error}")
    if not found:
        lacking = f" ({notes[0].rstrip('.')})" if notes else ""
        titles = ", ".join(row.title for row in rows)
        raise BertsmithError(f"{folder} holds no task of {benchmark}; looked for the folders {titles}{lacking}.")
    return found, notes


def find_file(folder: Path, patterns: Sequence[str], side: str) -> Path:
    """The first of the globs that a file answers to decides."""
    for pattern in patterns:
        files = sorted(folder.glob(pattern))
        if len(files) > 1:
            named = ", ".join(path.name for path in files[:5])
            raise BertsmithError(f"{folder} has several files that may be its {side}: {named}; leave one of them.")
        if files:
            return files[0]
    raise BertsmithError(f"{folder} has no {side} file; looked for {', '.join(patterns)}.")


def plain(name: str) -> str:
    """As names are compared: SST-2, sst_2 and sst2 are one."""
    return name.strip().lower().replace("-", "").replace("_", "")


def _suggest(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name.lower(), known, 1)
    return f"; did you mean {near[0]}?" if near else "."
