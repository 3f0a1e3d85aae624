"""What other ways of fine-tuning give small data: the same tasks, seeds and encoders, one change at a time.

    python benchmarks/ways.py --model DIR --nli DIR --data DIR --device cuda --jobs 14 --out FILE
    python benchmarks/ways.py --model DIR --data DIR --tasks cola --ways plain,first --seeds 1,2,3 --out FILE
    python benchmarks/ways.py --model DIR --nli DIR --data DIR --tiny --out FILE   # a few steps each
    python benchmarks/ways.py --list                                               # tasks and ways

`plain` is how the rows of the house model are made (benchmarks/house.py): same files, epochs and batches; each task has
the one rate that was chosen there. Tasks that end in -warm start from --nli, a model of entailment. The weights of the
last step are scored. --data is the folder that holds glue.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from house_rows import TASKS
from pretrained import Figures
from runs import spell_script

from bertsmith.many import Done, Job, run_job, share_threads
from bertsmith.workers import Lost, Workers


@dataclass(frozen=True)
class Way:
    about: str
    settings: dict[str, Any] = field(default_factory=dict)
    rate: float = 1.0  # times the task's own
    epochs: float = 1.0  # likewise
    reads: str = ""  # in place of what the model's config says: cls or mean


WAYS = {
    "plain": Way("as the house model's rows are made"),
    "first": Way("the head reads [CLS], not the mean of all", reads="cls"),
    "decay": Way("layers below the head learn slower, each 0.9 of the one above", {"layer_decay": 0.9}, rate=1.5),
    "longer": Way("twice the epochs", epochs=2.0),
    "slower": Way("twice the epochs at half the rate", epochs=2.0, rate=0.5),
    "small": Way("batches of 16", {"batch": 16}),
    "smooth": Way("a tenth of a label's weight goes to all", {"smoothing": 0.1}),
    **{f"muon-{times:g}": Way("Muon in place of AdamW, as in pretraining", {"optimizer": "muon"}, rate=times)
       for times in (0.5, 1, 2, 4)},
    "swap": Way("pairs the other way round too", {"swap": True}),
    **{f"reach-{reach:g}": Way("adversarial steps (SMART)", {"adversarial": 1.0, "adversarial_reach": reach})
       for reach in (0.003, 0.01, 0.03)},
}  # fmt: skip
RATES = {"cola": 6e-5, "mrpc": 6e-5, "rte": 6e-5, "stsb": 1.2e-4, "mrpc-warm": 1.2e-4, "rte-warm": 3e-5,
         "stsb-warm": 1.2e-4}  # fmt: skip


@dataclass(frozen=True)
class Turn:
    way: str
    task: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.way} {self.task} seed {self.seed}"


def read_otherwise(folder: Path, reads: str, keep: Path) -> Path:
    """The same model, whose heads will read other vectors of the text."""
    changed = keep / f"{folder.name}-{reads}"
    if not changed.exists():
        shutil.copytree(folder, changed)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (changed / "config.json").write_text(json.dumps({**config, "classifier_pooling": reads}), encoding="utf-8")
    return changed


def make_job(turn: Turn, options: argparse.Namespace) -> Job:
    task, way = TASKS[turn.task], WAYS[turn.way]
    model = options.nli if task.starts_from else options.model
    if way.reads:
        model = read_otherwise(model, way.reads, options.keep)
    given = {"task": task.kind, "train": str(options.data / task.train), "dev": str(options.data / task.dev),
             "model": str(model), "device": options.device, **task.settings(RATES[turn.task] * way.rate, turn.seed),
             "epochs": task.epochs * way.epochs, **way.settings}  # fmt: skip
    if options.tiny:
        given |= {"max_steps": 2, "batch": 4}
    asked = {name: value for name, value in given.items() if name not in ("train", "dev", "model", "device")}
    return Job(turn.name, options.keep / turn.name.replace(" ", "-"), asked, given, (task.metric,), overwrite=True)


def run(turns: Sequence[Turn], figures: Figures, options: argparse.Namespace) -> None:
    """Side by side in this order; a row is written as it comes."""
    todo = [turn for turn in turns if not figures.has(turn.name)]
    if not todo:
        return
    beside = min(options.jobs, len(todo))
    with Workers(beside, share_threads(beside), run_job) as workers:
        for place, said in workers.run([make_job(turn, options) for turn in todo]):
            keep(todo[place], Done(error=f"{said.why}.") if isinstance(said, Lost) else said, figures)


def keep(turn: Turn, done: Done, figures: Figures) -> None:
    metric = TASKS[turn.task].metric
    found = {"error": done.error} if done.error else {"metric": metric, **done.metrics["dev"][metric]}
    row = {"name": turn.name, "way": turn.way, "task": turn.task, "seed": turn.seed, "seconds": round(done.seconds, 1)}
    figures.rows[turn.name] = {**row, **found}
    figures.facts["summary"] = summarize(figures)
    figures.write()
    print(f"{turn.name}: {done.error or format(100 * found['value'], '.2f')}, {done.seconds:.0f} s", flush=True)


def summarize(figures: Figures) -> dict[str, Any]:
    """Task -> way -> the median and each seed, in percent."""
    found: dict[str, Any] = {}
    for row in sorted(figures.rows.values(), key=lambda row: row["seed"]):
        if "value" in row:
            found.setdefault(row["task"], {}).setdefault(row["way"], []).append(100 * row["value"])
    return {task: {way: {"value": median(some), "scores": [round(one, 2) for one in some]}
                   for way, some in ways.items()} for task, ways in found.items()}  # fmt: skip


def names(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="the encoder")
    parser.add_argument("--nli", type=Path, help="a model of entailment of the same form")
    parser.add_argument("--data", type=Path, help="the folder of the benchmarks")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "ways-runs"))
    parser.add_argument("--tasks", type=names, default=list(RATES), help="some of them, with commas between")
    parser.add_argument("--ways", type=names, default=list(WAYS), help="likewise")
    parser.add_argument("--seeds", type=names, default=[*"12345"], help="likewise")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--jobs", type=int, default=1, help="fine-tunings side by side")
    parser.add_argument("--out", type=Path, help="the file of figures, written after every run")
    parser.add_argument("--again", action="store_true", help="measure anew what the file holds")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument("--tiny", action="store_true", help="a few steps each: does it run")
    parser.add_argument("--list", action="store_true", help="print tasks and ways, and run nothing")
    options = parser.parse_args()
    for given, known in ((options.tasks, RATES), (options.ways, WAYS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"there is no {unknown[0]}; there are {', '.join(known)}")
    tasks = [task for task in options.tasks if options.nli or not TASKS[task].starts_from]
    if options.list or None in (options.model, options.data):  # `make bench` calls every script
        for task in options.tasks:
            print(f"{task:10} rate {RATES[task]:g}, {TASKS[task].epochs} epochs")
        for name in options.ways:
            print(f"{name:12} {WAYS[name].about}")
        return
    options.threads = share_threads(1)
    figures = Figures(options, spell_script())
    turns = [Turn(way, task, int(seed)) for seed in options.seeds for task in tasks for way in options.ways]
    run(turns, figures, options)
    figures.finish(summarize(figures))


if __name__ == "__main__":
    main()
