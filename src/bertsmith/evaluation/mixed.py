"""What a fine-tuning of several tasks leaves: the best encoder with a head each, tuned and scored; one report.

In: a `Mix` and the outcome of the loop. Out: files, and the metrics of each member as `NAME/METRIC` with intervals.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import bertsmith
from bertsmith.evaluation.report import RunFacts, write_report
from bertsmith.evaluation.report.caveats import tell_baseline
from bertsmith.evaluation.report.facts import Member
from bertsmith.evaluation.results import tell_command, tell_speed
from bertsmith.evaluation.scoring import Scored, score_examples
from bertsmith.models.adapter_folders import MEMBERS
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.files import TASK_FILE, write_json, written_aside
from bertsmith.models.hub import name_of
from bertsmith.models.members import open_members, write_members
from bertsmith.tasks.predicting import BUDGETS, Predictor
from bertsmith.tasks.trained import TrainedTask
from bertsmith.training.folder import RunFolder
from bertsmith.training.gathering import Mix
from bertsmith.training.loop import Outcome
from bertsmith.training.members import MASK
from bertsmith.training.preparing import Say
from bertsmith.training.settings_read import tell_training

Tasks = Mapping[str, TrainedTask[Any, Any]]
Points = dict[str, float]
MEAN = "mean"  # of the members' main metrics


@dataclass
class MixEvaluation:
    """Scores every member as the model stands, the metric that chooses first."""

    members: Mapping[str, Callable[[], Points]]  # each gives its main metric first
    metric: str | None  # NAME, NAME/METRIC; None: the mean of the main ones

    def __call__(self) -> Points:
        by_member = {name: evaluate() for name, evaluate in self.members.items()}
        mains = {name: next(iter(points)) for name, points in by_member.items()}
        found = {f"{name}/{metric}": value for name, points in by_member.items() for metric, value in points.items()}
        if self.metric is None:
            return {MEAN: mean_of([by_member[name][main] for name, main in mains.items()]), **found}
        chosen = self.metric if "/" in self.metric else f"{self.metric}/{mains[self.metric]}"
        return {chosen: found.pop(chosen), **found}


def mean_of(values: list[float]) -> float:
    """A metric that is not defined yet, as a correlation with one and the same answer, is worth nothing."""
    return sum(value if math.isfinite(value) else 0.0 for value in values) / len(values)


def write_mix(mix: Mix, checkpoint: Checkpoint, tasks: Tasks, folder: Path) -> None:
    """An encoder that this and other libraries open, and in `adapters` a head a member with what it needs."""
    write_members(checkpoint, folder)
    mix.tokenizer.save(folder)
    for name, wanted in mix.wanted().items():
        place, task = folder / MEMBERS / name, tasks.get(name)
        known = {"task": MASK, "settings": {}} if task is None else {"task": task.name, "settings": task.settings}
        if task is not None:
            task.dress(place)
        write_json(place / TASK_FILE, {**known, "head": wanted.kind})


def write_mix_results(mix: Mix, folder: RunFolder, device: torch.device, outcome: Outcome, say: Say) -> dict[str, Any]:
    """Tune and score the best checkpoint in the precision in which it will predict, and write everything."""
    checkpoint = open_members(folder.best(outcome.progress.best_step), list(mix.members))
    network = checkpoint.network.requires_grad_(False).eval()
    tasks = {name: one.task.tuned(one.task.fold(network)) for name, one in mix.tasks.items()}
    network.to(device)
    network.pack()  # as `load` does, so that the folder scores to the last digit what is written here
    scored = score_members(mix, tasks, Predictor(network, device, BUDGETS[device.type]))
    tasks = {name: sides["dev"].task if "dev" in sides else tasks[name] for name, sides in scored.items()}
    metrics = tell_metrics(mix, scored)
    facts = gather_mix_facts(mix, folder, device, outcome, metrics)
    nothing = find_baselines(scored)
    facts.data["findings"] += [{"level": "warning", "sentence": sentence} for sentence in nothing]
    with written_aside(folder.path) as aside:
        network.cpu()
        write_mix(mix, checkpoint, tasks, aside)
        about = {"version": bertsmith.__version__, "base": facts.base, "seed": mix.training.seed, "metrics": metrics,
                 "data": {name: mix.fingerprint(name) for name in mix.members}}  # fmt: skip
        members = {name: member.task for name, member in mix.members.items()}
        write_json(aside / TASK_FILE, {"members": members, "mixing": mix.mixing, "run": about})
        write_report(aside, facts)
    for row in facts.members:
        if row.get("metric"):
            told = f"({row['low']:.4f} to {row['high']:.4f}, n = {row['n']:,})"
            say(f"{row['name']}, {row['split']}: {row['metric']} {row['value']:.4f} {told}")
    for sentence in nothing:
        say(f"warning: {sentence}")
    say(f"wrote the encoder, its members, its card and report.html to {folder.path}")
    return metrics


def score_members(mix: Mix, tasks: Tasks, predictor: Predictor) -> dict[str, dict[str, Scored]]:
    """Member -> split -> scores; what may be tuned is tuned on dev first."""
    found: dict[str, dict[str, Scored]] = {}
    for name, one in mix.tasks.items():
        sides = found[name] = {}
        task = tasks[name]
        if one.data.dev:
            sides["dev"] = score_examples(predictor, task, one.data.dev, asdict(one.choices))
            task = sides["dev"].task
        if one.data.test:
            sides["test"] = score_examples(predictor, task, one.data.test, None)
    return found


def tell_metrics(mix: Mix, scored: Mapping[str, Mapping[str, Scored]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Split -> NAME/METRIC -> value, low, high, n; first the mean of the main ones, where all have the split."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for split in ("dev", "test"):
        by_member = {name: sides[split].metrics() for name, sides in scored.items() if split in sides}
        if not by_member:
            continue
        mains = [metrics[find_main(mix, name, metrics)]["value"] for name, metrics in by_member.items()]
        whole = {MEAN: {"value": mean_of(mains)}} if len(by_member) == len(scored) else {}
        flat = {f"{name}/{metric}": one for name, metrics in by_member.items() for metric, one in metrics.items()}
        found[split] = {**whole, **flat}
    return found


def find_baselines(scored: Mapping[str, Mapping[str, Scored]]) -> list[str]:
    """A sentence for each member that does no better than one that reads nothing."""
    found = []
    for name, sides in scored.items():
        split = "test" if "test" in sides else "dev"
        one = sides[split]
        seen: dict[str, Any] = {"labels": one.task.labels, **one.task.report(one.answers, one.examples)}
        told = tell_baseline(RunFacts(task=one.task.name, metrics={split: {"": {}}}, **seen))
        found += [f"{name}: {told}"] if told else []
    return found


def find_main(mix: Mix, name: str, metrics: Mapping[str, Any]) -> str:
    one = mix.tasks[name]
    return one.task.main_metric(one.training.metric, metrics)


def gather_mix_facts(
    mix: Mix, folder: RunFolder, device: torch.device, outcome: Outcome, metrics: dict[str, Any]
) -> RunFacts:
    own = {name: {"weight": member.weight, "task": member.task} for name, member in mix.members.items()}
    mixed = {"mixing": mix.mixing} | ({"temperature": mix.temperature} if mix.mixing == "temperature" else {})
    facts = RunFacts(
        task="several",
        base=name_of(mix.source),
        mask=mix.tokenizer.mask_token or RunFacts.mask,
        date=datetime.now(UTC).date().isoformat(),
        version=bertsmith.__version__,
        metrics=metrics,
        curves=folder.read_log(),
        best_step=outcome.progress.best_step,
        settings={**mixed, "members": own, **tell_training(mix.training, *(one.task for one in mix.tasks.values()))},
        speed=tell_speed(outcome, device),
        command=tell_command(),
        members=list_members(mix, metrics),
    )
    tables = {name: one.data.tables for name, one in mix.tasks.items()}
    facts.data["files"] = {f"{name}, {side}": Path(table.name).name
                           for name, sides in tables.items() for side, table in sides.items()}  # fmt: skip
    facts.data["findings"] = [
        {"level": finding.level, "sentence": f"{name}: {finding.sentence}"}
        for name, one in mix.tasks.items()
        for finding in one.data.diagnosis.findings
    ]
    facts.data["counts"] = {
        f"{name}, {side}": count
        for name in mix.members
        for side, count in zip(("train", "dev", "test"), mix.examples(name), strict=True)
        if count
    }
    cuts = {f"{name}, {side}": cut for name, one in mix.tasks.items() for side, cut in one.cuts.items()}
    facts.data["facts"] = {"truncated": {side: cut for side, cut in cuts.items() if cut["inputs"]} or "nothing"}
    return facts


def list_members(mix: Mix, metrics: Mapping[str, Any]) -> list[Member]:
    """A row each: what it is, how much it had, and its main score on the split that speaks for it."""
    shares = mix.study.shares()
    rows: list[Any] = []
    for name, member in mix.members.items():
        train, dev, test = mix.examples(name)
        row: dict[str, Any] = {"name": name, "task": member.task, "weight": member.weight, "share": shares[name]}
        row |= {"train": train, "dev": dev, "test": test}
        split = "test" if test else "dev"
        if name in mix.tasks:
            start = f"{name}/"
            own = {key.removeprefix(start): one for key, one in metrics[split].items() if key.startswith(start)}
            main = find_main(mix, name, own)
            pairs = any(getattr(example, "pair", None) is not None for example in mix.tasks[name].data.train)
            row |= {"pairs": pairs, "split": split, "metric": main, **own[main]}
        rows.append(row)
    return rows
