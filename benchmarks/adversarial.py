"""What `--adversarial` gives small data: the same fine-tunings with and without it, from the same encoders.

    python benchmarks/adversarial.py --model DIR --nli DIR --data DIR --device cuda --jobs 14 --out FILE
    python benchmarks/adversarial.py --model DIR --nli DIR --data DIR --tiny --out FILE   # a few steps each
    python benchmarks/adversarial.py --list                                               # the rows

CoLA, MRPC, RTE and STS-B straight from the encoder, and the last three from --nli, a model of entailment, as the rows
of the house model have them (benchmarks/house.py): same files, epochs and batches; each task has one rate. First every
reach is tried on three tasks with two seeds; the best mean chooses the one that all tasks get, with five seeds, beside
runs without. The weights of the last step are scored. --data is the folder that holds glue.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from house_rows import TASKS
from pretrained import Figures
from runs import spell_script

sys.path.insert(0, str(Path(__file__).parent.parent / "house"))
from gathering import shorten
from run_options import add_run_options

from bertsmith.many import Done, Job, run_job, share_threads
from bertsmith.workers import Lost, Workers

PLAIN = "without"
WAYS: dict[str, dict[str, Any]] = {PLAIN: {}} | {
    f"reach {reach:g}": {"adversarial": 1.0, "adversarial_reach": reach} for reach in (0.003, 0.01, 0.03)
}
RATES = {"cola": 6e-5, "mrpc": 6e-5, "rte": 6e-5, "stsb": 1.2e-4, "mrpc-warm": 6e-5, "rte-warm": 6e-5,
         "stsb-warm": 6e-5}  # fmt: skip
TRIED, SEEDS = ("cola", "rte-warm", "mrpc-warm"), (1, 2)  # by these a reach is chosen
ORDER = ("rte-warm", "cola", "mrpc-warm", "stsb-warm", "rte", "mrpc", "stsb")  # what is worth most first
ALL = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Turn:
    way: str
    task: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.way} {self.task} seed {self.seed}"


def make_job(turn: Turn, options: argparse.Namespace) -> Job:
    task = TASKS[turn.task]
    given = {"task": task.kind, "train": str(options.data / task.train), "dev": str(options.data / task.dev),
             "model": str(options.nli if task.starts_from else options.model), "device": options.device,
             **task.settings(RATES[turn.task], turn.seed), **WAYS[turn.way]}  # fmt: skip
    if options.tiny:
        short = options.keep / "short"
        given |= {"max_steps": 2, "batch": 4, **{side: str(shorten(Path(given[side]), short))
                                                 for side in ("train", "dev")}}  # fmt: skip
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
    row = {"name": turn.name, "way": turn.way, "task": turn.task, "seed": turn.seed, "rate": RATES[turn.task],
           "epochs": TASKS[turn.task].epochs, "seconds": round(done.seconds, 1)}  # fmt: skip
    figures.rows[turn.name] = {**row, **found}
    figures.facts["summary"] = summarize(figures)
    figures.write()
    print(f"{turn.name}: {done.error or format(100 * found['value'], '.2f')}, {done.seconds:.0f} s", flush=True)


def scores(figures: Figures, way: str, task: str) -> list[float]:
    rows = (figures.rows.get(Turn(way, task, seed).name, {}) for seed in ALL)
    return [100 * row["value"] for row in rows if "value" in row]


def summarize(figures: Figures) -> dict[str, Any]:
    """Way -> task -> the median and each seed, in percent."""
    found: dict[str, Any] = {}
    for way in WAYS:
        known = {task: some for task in ORDER if (some := scores(figures, way, task))}
        found[way] = {task: {"value": median(some), "scores": [round(one, 2) for one in some]}
                      for task, some in known.items()}  # fmt: skip
    return found


def choose(figures: Figures) -> str:
    """The way whose mean over what was tried is best."""
    means = {way: fmean(one for task in TRIED for one in scores(figures, way, task)[: len(SEEDS)])
             for way in WAYS if way != PLAIN and all(scores(figures, way, task) for task in TRIED)}  # fmt: skip
    if not means:
        sys.exit("nothing that was tried has a score; the rows tell why.")
    print(json.dumps({"means": means}), flush=True)
    return max(means, key=lambda way: means[way])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="the encoder")
    parser.add_argument("--nli", type=Path, help="a model of entailment of the same form")
    parser.add_argument("--data", type=Path, help="the folder of the benchmarks")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "adversarial-runs"))
    add_run_options(
        parser, 12, only="tasks", out="the file of figures, written after every run",
        again="measure anew what the file holds", listing="print the rows and run nothing",
    )  # fmt: skip
    options = parser.parse_args()
    options.threads = share_threads(1)
    if options.list or None in (options.model, options.nli, options.data):  # `make bench` calls every script
        for task in ORDER:
            print(f"{task:10} rate {RATES[task]:g}, {TASKS[task].epochs} epochs; {', '.join(WAYS)}")
        return
    figures = Figures(options, spell_script())
    tried = [Turn(way, task, seed) for seed in SEEDS for way in WAYS if way != PLAIN for task in TRIED]
    run(tried, figures, options)
    best = choose(figures)
    figures.facts["chosen"] = best
    tasks = [task for task in ORDER if not options.only or task in options.only]
    run([Turn(way, task, seed) for task in tasks for way in (best, PLAIN) for seed in ALL], figures, options)
    figures.finish(summarize(figures))


if __name__ == "__main__":
    main()
