"""A sweep's runs, and what they came to: the combinations ranked, the best with the command that repeats it.

In: what all runs share, and the combinations that were tried. Out: jobs; plain JSON.
"""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from bertsmith.data.table import Table
from bertsmith.evaluation.spreading import middle_run, spread_of
from bertsmith.evaluation.tables import show_value
from bertsmith.many import Done, Job, as_record

Combination = dict[str, Any]
Tried = list[tuple[Combination, list[Job], list[Done]]]


@dataclass(frozen=True)
class Setting:
    """What all runs of a sweep share."""

    task: str
    tables: Mapping[str, Table]
    sources: Mapping[str, str]  # side -> the path, where it is one
    format: str | None  # of the files, where it was said
    model: Path
    named: str | None  # the model as somebody named it
    device: str
    place: Path
    seeds: Sequence[int]
    fixed: Mapping[str, Any]
    digests: Mapping[str, str]  # side -> what its records are known by
    weights: str  # what those of the model are known by
    keep_models: bool
    overwrite: bool

    def jobs(self, combination: Combination) -> list[Job]:
        known = {"task": self.task, "model": str(self.model), "weights": self.weights, **self.digests}
        known |= {**self.fixed, **combination}
        given = {"task": self.task, **self.tables, "model": self.model, "device": self.device}
        name = name_folder(combination)
        told = ", ".join(f"{name} {show_value(value)}" for name, value in combination.items())
        return [
            Job(f"{told}, seed {seed}", self.place / f"{name}-seed{seed}", {**known, "seed": seed},
                {**given, **self.fixed, **combination, "seed": seed}, (), self.keep_models, self.overwrite)
            for seed in self.seeds
        ]  # fmt: skip


def gather(setting: Setting, tried: Tried, seconds: float) -> dict[str, Any]:
    """All that is known at the end, plain JSON, the best combination first."""
    found = [tell_combination(setting, *each) for each in tried]
    order = sorted(
        range(len(found)), key=lambda i: (-found[i]["score"]["median"], i) if found[i]["score"] else (inf, i)
    )
    ranked = [found[place] for place in order]
    metric = next((done.metric for _, _, some in tried for done in some if done.metric), None)
    best = None
    if ranked and ranked[0]["score"]:
        best = tell_best(setting, *tried[order[0]], ranked[0])
    return {
        "task": setting.task,
        "model": str(setting.model),
        "metric": metric,
        "seeds": list(setting.seeds),
        "settings": dict(setting.fixed),
        "combinations": ranked,
        "best": best,
        "runs": sum(len(one["runs"]) for one in found),
        "failed": sum(run["error"] is not None for one in found for run in one["runs"]),
        "seconds": seconds,
    }


def tell_combination(
    setting: Setting, combination: Combination, jobs: Sequence[Job], done: Sequence[Done]
) -> dict[str, Any]:  # fmt: skip
    score = spread_of([each.value(each.metric) for each in done if each.error is None])
    runs = [as_record(seed, job.folder, each) for seed, job, each in zip(setting.seeds, jobs, done, strict=True)]
    return {"settings": combination, "score": None if score is None else score.as_json(), "runs": runs}


def tell_best(
    setting: Setting, combination: Combination, jobs: Sequence[Job], done: Sequence[Done], told: Mapping[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """The combination, its run in the middle, that run's scores on test, and the command that repeats it."""
    good = [(seed, each) for seed, each in zip(setting.seeds, done, strict=True) if each.error is None]
    seed, run = good[middle_run([each.value(each.metric) for _, each in good])]
    again = command(setting, combination, seed)
    found = {"settings": combination, "score": told["score"], "seed": seed, "command": again}
    return {**found, "test": run.metrics["test"]} if "test" in run.metrics else found


def command(setting: Setting, combination: Combination, seed: int) -> str | None:
    """None where the data is in no file."""
    if not set(setting.tables) <= {*setting.sources, "dev"} or "-" in setting.sources.values():
        return None
    words = ["bertsmith", "finetune", "--task", setting.task]
    for side, source in setting.sources.items():
        words += [f"--{side}", source]
    given = {"format": setting.format, "model": setting.named, **setting.fixed, **combination, "seed": seed}
    for name, value in given.items():
        if value is None:
            continue
        flag = name.replace("_", "-")
        words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", exact_value(value)]
    return shlex.join([*words, "--out", "my-model"])


def exact_value(value: Any) -> str:
    """As one would type it, and no digit lost."""
    short = show_value(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


def name_folder(combination: Combination) -> str:
    """What its runs' folders begin with: readable, and never too long for a file system."""
    told = "-".join(f"{name}{show_value(value)}" for name, value in combination.items())
    name = re.sub(r"[^\w.+-]", "_", told)
    digest = hashlib.sha256(repr(sorted(combination.items())).encode()).hexdigest()[:8]
    is_exact = (
        name == told
        and len(name) <= 100
        and all(exact_value(value) == show_value(value) for value in combination.values())
    )
    return name if is_exact else f"{name[:90]}-{digest}"
