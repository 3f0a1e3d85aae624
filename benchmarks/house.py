"""The house model beside its neighbours: every row of its table, the same way for each model.

    python benchmarks/house.py MODEL… --data DIR --held-out FILE --device cuda --jobs 12 --out FILE
    python benchmarks/house.py house=DIR minilm=DIR --data DIR --only glue5,nli --out FILE
    python benchmarks/house.py MODEL --tiny --data DIR --out FILE        # a few steps each: does it run
    python benchmarks/house.py --merge FILE FILE… --out FILE             # rows of several calls in one file
    python benchmarks/house.py --list                                    # the rows, their grids and their seconds

A model is a folder, or NAME=FOLDER. What the file holds is not measured again, a fine-tuning at a time; one that needs
the weights of another (`glue5-warm` those of `nli`) makes those anew where they are gone. MRPC has accuracy, STS-B
Spearman's correlation. A median has its seeds beside it, and the 95 % interval of the run in their middle.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from house_rows import (
    LARGER,
    MARKS,
    MEASURES,
    TASKS,
    UNTRAINED,
    UNTRAINED_SECONDS,
    Tuned,
    Turn,
    count_runs,
    plan_seconds,
)
from house_summary import summarize
from pretrained import Figures, measure_blimp
from runs import spell_script

sys.path.insert(0, str(Path(__file__).parent.parent / "house"))
from gathering import gather_nli, gather_questions, make_once, shorten
from run_options import add_run_options

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.many import Done, Job, run_job, share_threads
from bertsmith.workers import Lost, Workers


class House:
    """What is known so far, and the folders it is made in."""

    def __init__(self, options: argparse.Namespace, figures: Figures) -> None:
        self.options, self.figures = options, figures
        self.tasks = {name: shrink(task) for name, task in TASKS.items()} if options.tiny else TASKS

    def home(self, turn: Turn) -> Path:
        return Path(self.options.keep, turn.name.replace(" ", "-"))

    def value(self, turn: Turn) -> float | None:
        row = self.figures.rows.get(turn.name, {})
        return row["metrics"][self.tasks[turn.task].metric]["value"] if "metrics" in row else None

    def best_rate(self, model: str, task: str) -> float | None:
        """By the first seed; None while a rate of the grid is not known."""
        found = {rate: self.value(Turn(model, task, rate, 1)) for rate in self.tasks[task].rates}
        return None if None in found.values() else max(found, key=lambda rate: (found[rate], -rate))

    def first(self, model: str, task: str) -> list[Turn]:
        return [Turn(model, task, rate, 1) for rate in self.tasks[task].rates]

    def others(self, model: str, task: str) -> list[Turn]:
        rate = self.best_rate(model, task)
        return [Turn(model, task, rate, seed) for seed in range(2, self.tasks[task].seeds + 1)] if rate else []

    def job(self, turn: Turn, start: str) -> Job:
        task, data = self.tasks[turn.task], self.options.data
        given = {"task": task.kind, "train": str(self.file(task.train)), "dev": str(data / task.dev), "model": start,
                 "device": self.options.device, **task.settings(turn.rate, turn.seed)}  # fmt: skip
        if self.options.tiny:
            short = Path(self.options.keep, "short")
            given |= {"max_steps": 2, **{side: str(shorten(Path(given[side]), short)) for side in ("train", "dev")}}
        kept = any(other.starts_from == turn.task for other in self.tasks.values())
        asked = {name: value for name, value in given.items() if name not in ("train", "dev", "model", "device")}
        return Job(turn.name, self.home(turn), asked, given, (task.metric,), kept, overwrite=True)

    def file(self, train: str) -> Path:
        """A set as it was given out, or one that is gathered from several."""
        made, data = Path(self.options.keep) / train, self.options.data
        if train == "made/nli.jsonl":
            return make_once(made, lambda: gather_nli(data))
        return make_once(made, lambda: gather_questions(data)) if train == "made/squad.json" else data / train

    def start(self, turn: Turn) -> str | None:
        """The model that it starts from; None: that is still to be made."""
        needed = self.tasks[turn.task].starts_from
        if not needed:
            return self.options.folders[turn.model]
        if self.best_rate(turn.model, needed) is None:
            return None
        # One that was made anew may have fallen behind another rate, whose weights are gone.
        kept = [turn for turn in self.first(turn.model, needed) if any(self.home(turn).glob("*.safetensors"))]
        return str(self.home(max(kept, key=lambda turn: self.value(turn) or 0.0))) if kept else None

    def run(self, turns: list[Turn]) -> None:
        """Side by side, the longest first; a row is written as it comes."""
        todo = [turn for turn in turns if self.options.again or self.value(turn) is None]
        todo.sort(key=lambda turn: -self.tasks[turn.task].epochs * self.tasks[turn.task].examples)
        jobs = [self.job(turn, start) for turn in todo if (start := self.start(turn)) is not None]
        todo = [turn for turn in todo if self.start(turn) is not None]
        if not jobs:
            return
        beside = min(self.options.jobs, len(jobs))
        with Workers(beside, share_threads(beside), run_job) as workers:
            for place, said in workers.run(jobs):
                self.keep(todo[place], Done(error=f"{said.why}.") if isinstance(said, Lost) else said)

    def keep(self, turn: Turn, done: Done) -> None:
        task = self.tasks[turn.task]
        about = {"name": turn.name, "model": turn.model, "measure": task.measure, "task": turn.task, "rate": turn.rate,
                 "seed": turn.seed, "seconds": round(done.seconds, 1)}  # fmt: skip
        found = {"error": done.error} if done.error else {"metrics": done.metrics["dev"]}
        self.figures.rows[turn.name] = {**about, **found}
        self.figures.facts["summary"] = summarize(self)
        self.figures.write()
        said = done.error or f"{task.metric} {100 * done.value(task.metric):.2f}"
        print(f"{turn.name}: {said}, {done.seconds:.0f} s", flush=True)


def shrink(task: Tuned) -> Tuned:
    return replace(task, rates=task.rates[:2], seeds=min(2, task.seeds), epochs=1, batch=8)


def measure_tuned(house: House, wanted: list[str]) -> None:
    """The grids of all, then the other seeds of all, so that no machine waits for the last of one task."""
    for is_warm in (False, True):
        names = [name for name, task in house.tasks.items()
                 if task.measure in wanted and bool(task.starts_from) == is_warm]  # fmt: skip
        pairs = [(model, name) for model in house.options.folders for name in names]
        if is_warm and pairs:  # what they start from may be known, and its weights gone
            make_starts(house)
        house.run([turn for pair in pairs for turn in house.first(*pair)])
        house.run([turn for pair in pairs for turn in house.others(*pair)])


def make_starts(house: House) -> None:
    """Of all models side by side: the grid where it is not known, else the best of it where its weights are gone."""
    turns: list[Turn] = []
    for model in house.options.folders:
        rate = house.best_rate(model, "nli")
        if rate is None:
            turns += house.first(model, "nli")
        elif house.start(Turn(model, "rte-warm", 1.0, 1)) is None:
            again = Turn(model, "nli", rate, 1)
            house.figures.rows.pop(again.name)
            turns.append(again)
    house.run(turns)


def measure_untrained(house: House, wanted: list[str]) -> None:
    """BLiMP and words of held-out documents; a model without a mask head says so."""
    for model in house.options.folders:
        for measure, work in {"blimp": judge_sentences, "fill-words": guess_words}.items():
            if measure in wanted:
                house.figures.make(f"{model} {measure}", partial(try_row, model, measure, work, house.options))


def try_row(model: str, measure: str, work: Any, options: argparse.Namespace) -> dict[str, Any]:
    about = {"model": model, "measure": measure}
    try:
        return {**about, **work(options.folders[model], options)}
    except BertsmithError as refused:
        return {**about, "cannot": str(refused).replace(options.folders[model], model)}


def judge_sentences(folder: str, options: argparse.Namespace) -> dict[str, Any]:
    return measure_blimp(Path(folder), options.data / "blimp", options, 3 if options.tiny else None)


def guess_words(folder: str, options: argparse.Namespace) -> dict[str, Any]:
    """What `bertsmith evaluate --benchmark masked` says."""
    start = time.perf_counter()
    model = bertsmith.load(folder, device=options.device)
    found = bertsmith.evaluate_masked(options.held_out, model, samples=20 if options.tiny else 5000)
    kept = ("accuracy", "bands", "perplexity", "skipped", "samples", "documents", "words", "length", "seed")
    return {**{key: found[key] for key in kept}, "seconds": round(time.perf_counter() - start, 1)}


def list_rows(options: argparse.Namespace) -> None:
    """What would be run, and about how long it takes for an encoder of 8 x 640 on an H200."""
    total = 0.0
    for measure in options.only or MEASURES:
        for name, task in TASKS.items():
            if task.measure == measure:
                runs = count_runs(task)
                seconds = plan_seconds(task, runs, options.jobs)
                total += seconds
                grid = "/".join(f"{rate:g}" for rate in task.rates)
                how = f"rates {grid} with seed 1, then to seed {task.seeds} at the best"
                size = f"{task.epochs} epochs, batch {task.batch}"
                print(f"{measure:11} {name:10} {task.metric:9} {runs:2} runs ({how}), {size}: about {seconds:.0f} s")
        if measure in UNTRAINED:
            total += UNTRAINED_SECONDS[measure]
            print(f"{measure:11} nothing is trained: about {UNTRAINED_SECONDS[measure]:.0f} s")
    print(f"{'all':11} about {total:.0f} s a model, {options.jobs} side by side ({total / LARGER:.0f} s for 6 x 384)")
    for measure, marks in MARKS.items():
        print(f"{measure:11} floor {marks[0]}, goal {marks[1]}, moonshot {marks[2]}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a folder, or NAME=FOLDER")
    parser.add_argument("--data", type=Path, help="the folder of the benchmarks")
    parser.add_argument("--held-out", type=Path, help="a text of documents that no model here was trained on")
    parser.add_argument("--keep", default="house-runs", help="the folder of the runs, for as long as they are needed")
    parser.add_argument("--merge", type=Path, nargs="+", help="measure nothing, put the rows of these files together")
    add_run_options(
        parser, 12, only=", ".join(MEASURES), out="the file of figures, written after every run",
        again="measure anew what the file holds", listing="print the rows and run nothing",
    )  # fmt: skip
    options = parser.parse_args()
    if unknown := [name for name in options.only or () if name not in MEASURES]:
        parser.error(f"there is no row {unknown[0]}; the rows are {', '.join(MEASURES)}")
    parts = [model.rpartition("=") for model in options.models]
    if options.merge and not options.out:
        parser.error("--merge needs --out FILE")
    options.folders = {name or Path(folder).name: folder for name, _, folder in parts}
    options.threads = share_threads(1)
    return options


def merge(options: argparse.Namespace) -> None:
    """A later file's row takes the place of an earlier one's; each row names the machine it is from."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in options.merge]
    figures = Figures(argparse.Namespace(out=None), "")
    for held in files:
        figures.rows |= {row["name"]: {"about": held["about"], "commit": held["commit"], **row} for row in held["rows"]}
    facts = {
        "summary": summarize(House(options, figures)),
        "marks": {name: list(marks) for name, marks in MARKS.items()},
    }
    head: dict[str, Any] = {name: files[0][name] for name in ("about", "commit")}
    head["date"] = max(held["date"] for held in files)
    # One that went on from a merged file has its commands, and its own.
    lines = [line for held in files for line in (*held.get("commands", ()), held.get("command"))]
    head["commands"] = list(dict.fromkeys(line for line in lines if line))
    text = json.dumps({**facts, **head, "rows": list(figures.rows.values())}, indent=1) + "\n"
    options.out.write_text(text, encoding="utf-8")
    print(json.dumps(facts["summary"]))


def main() -> None:
    options = parse()
    if options.merge:
        return merge(options)
    if options.list or not options.models or options.data is None:  # `make bench` calls every script
        return list_rows(options)
    figures = Figures(options, spell_script())
    figures.facts["marks"] = {name: list(marks) for name, marks in MARKS.items()}
    house, wanted = House(options, figures), list(options.only or MEASURES)
    if "fill-words" in wanted and options.held_out is None:
        sys.exit("fill-words needs --held-out FILE, or leave it out with --only.")
    measure_untrained(house, wanted)
    measure_tuned(house, wanted)
    figures.finish(summarize(house))


if __name__ == "__main__":
    main()
