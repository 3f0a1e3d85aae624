"""What a fine-tuning leaves when it is done: the best model, tuned and scored, in a folder that predicts; a report.

In: a preparation and the outcome of the loop. Out: files, and the metrics with their intervals.
"""

import shlex
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import bertsmith
from bertsmith.evaluation.report import RunFacts, add_diagnosis, write_report
from bertsmith.evaluation.report.caveats import tell_baseline
from bertsmith.evaluation.scoring import Scored, score_examples
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.files import TASK_FILE, write_json, written_aside
from bertsmith.models.hub import name_of
from bertsmith.tasks.catalog import HOMES
from bertsmith.tasks.predicting import BUDGETS, Predictor
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.devices import peak_memory
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Outcome
from bertsmith.training.preparing import Preparation, Say, fingerprint
from bertsmith.training.settings_read import tell_choices, tell_training
from bertsmith.training.ways import Way, choose_way


def write_folder(
    way: Way, checkpoint: Checkpoint, tokenizer: Tokenizer, task: TrainedTask[Any, Any], folder: Path
) -> None:
    """A model folder that this and other libraries open, with what the task needs to predict."""
    way.write(checkpoint, tokenizer, folder)
    task.dress(folder)
    write_json(folder / TASK_FILE, {"task": task.name, "settings": task.settings})


def write_results(
    preparation: Preparation, folder: RunFolder, device: torch.device, outcome: Outcome, say: Say
) -> dict[str, Any]:
    """Tune and score the best checkpoint in the precision in which it will predict, and write everything."""
    way = choose_way(preparation.source, preparation.task, preparation.training)
    checkpoint = way.open(folder.best(outcome.progress.best_step))
    checkpoint.network.requires_grad_(False)
    task = preparation.task.tuned(preparation.task.fold(checkpoint.network))
    checkpoint.network.to(device)
    checkpoint.network.pack()  # as `load` does, so that the folder scores to the last digit what is written here
    predictor = Predictor(checkpoint.network, device, BUDGETS[device.type])
    data = preparation.data
    scored: dict[str, Scored] = {}
    if data.dev:
        scored["dev"] = score_examples(predictor, task, data.dev, asdict(preparation.choices))
        task = scored["dev"].task
    if data.test:
        scored["test"] = score_examples(predictor, task, data.test, None)
    metrics = {split: found.metrics() for split, found in scored.items()}
    facts = gather_facts(preparation, folder, device, outcome, scored, metrics)
    with written_aside(folder.path) as aside:
        checkpoint.network.cpu()
        write_folder(way, checkpoint, preparation.tokenizer, task, aside)
        write_json(
            aside / TASK_FILE, {"task": task.name, "settings": task.settings, "run": _about(preparation, metrics)}
        )
        write_report(aside, facts)
    for split, found in metrics.items():
        name = task.main_metric(preparation.training.metric, found)
        main = found[name]
        say(f"{split}: {name} {main['value']:.4f} ({main['low']:.4f} to {main['high']:.4f}, n = {main['n']:,})")
    nothing = tell_baseline(facts)
    if nothing:
        say(f"warning: {nothing}")
    say(f"wrote the model, its card and report.html to {folder.path}")
    return metrics


def _about(preparation: Preparation, metrics: dict[str, Any]) -> dict[str, Any]:
    """What the model's file says of its origin."""
    training, task = preparation.training, preparation.task
    chosen_by = training.metric or (task.main_metric(None, metrics["dev"]) if "dev" in metrics else task.metric)
    return {
        "version": bertsmith.__version__,
        "base": name_of(preparation.source),
        "data": fingerprint(preparation.data),
        "seed": training.seed,
        "metric": chosen_by,
        "metrics": metrics,
        "truncated": preparation.cuts,
    }


def gather_facts(
    preparation: Preparation, folder: RunFolder, device: torch.device, outcome: Outcome, scored: dict[str, Scored],
    metrics: dict[str, Any],
) -> RunFacts:  # fmt: skip
    """All that the report shows."""
    data, task = preparation.data, preparation.task
    read = tell_choices(preparation.choices, task.name, "dev" in data.tables)
    shown = scored.get("test") or scored.get("dev")
    seen: dict[str, Any] = shown.task.report(shown.answers, shown.examples) if shown else {}
    facts = RunFacts(
        task=task.name,
        title="" if task.name in HOMES else f"A task of its own: {task.name}",
        base=name_of(preparation.source),
        date=datetime.now(UTC).date().isoformat(),
        version=bertsmith.__version__,
        metrics=metrics,
        curves=folder.read_log(),
        best_step=outcome.progress.best_step,
        settings={**read, **tell_training(preparation.training, task)},
        speed=tell_speed(outcome, device),
        command=tell_command(),
        **{"labels": task.labels, **seen},
    )
    facts.data["files"] = {side: Path(table.name).name for side, table in data.tables.items()}
    facts.data["counts"] = {"train": len(data.train), "dev": len(data.dev)} | (
        {"test": len(data.test)} if data.test else {}
    )
    if data.diagnosis.facts:
        add_diagnosis(facts, data.diagnosis, task.truncate)
    for side, lengths in facts.lengths.items():
        lengths["tokens_cut"] = preparation.cuts[side]["tokens"]
    facts.data["facts"] = {**facts.data.get("facts", {}), "truncated": preparation.cuts}
    return facts


def tell_speed(outcome: Outcome, device: torch.device) -> Any:
    """Memory is the process's peak on a CPU, and what torch took at most on a GPU."""
    speed, seconds = outcome.speed, max(outcome.speed.seconds, 1e-9)
    found = {
        "examples_per_second": speed.examples / seconds,
        "tokens_per_second": speed.tokens / seconds,
        "seconds": speed.seconds,
        "since": speed.began,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }
    memory = peak_memory(device)
    return found if memory is None else {**found, "peak_memory": memory}


def tell_command() -> str:
    """The command that ran, where it was one of ours."""
    if Path(sys.argv[0]).name not in ("bertsmith", "__main__.py"):
        return ""
    return shlex.join(["bertsmith", *sys.argv[1:]])
