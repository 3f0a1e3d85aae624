"""`bertsmith.finetune`: a pretrained encoder and a file of examples become a model that works, with its score.

In: a task, data, a model, a folder for the result. Out: a `Run`; in the folder a model that predicts, its metrics with
intervals, a report, and while it trains what is needed to go on after a kill. The same call again resumes.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from bertsmith.arguments import checked
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.report import read_metrics
from bertsmith.evaluation.results import write_folder, write_results
from bertsmith.evaluation.scoring import Scored, score_examples
from bertsmith.loading import find_device, load
from bertsmith.models.adapter_folders import digest_weights, find_encoder
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.files import take_folder
from bertsmith.models.hub import find_default, locate, name_asked
from bertsmith.tasks.catalog import HOMES, find_task
from bertsmith.tasks.predicting import BUDGETS, Predictor
from bertsmith.tasks.result import NotFinite
from bertsmith.tasks.task import Row
from bertsmith.tasks.texts import take_threads
from bertsmith.tasks.trained import TrainedTask
from bertsmith.training.advice import advise_half
from bertsmith.training.choices import as_asked, refuse_unused, sort_choices
from bertsmith.training.devices import Ranks, choose_precision, joined, shard
from bertsmith.training.features import Features
from bertsmith.training.folder import LOG, RUN, RunFolder, refuse_source
from bertsmith.training.loop import Loop, Outcome, Watcher
from bertsmith.training.preparing import (
    Preparation,
    Say,
    check_metric,
    fingerprint,
    prepare,
    read_data,
    refuse_idle_share,
)
from bertsmith.training.settings import Training
from bertsmith.training.study import TaskStudy
from bertsmith.training.ways import Way, choose_way


@dataclass
class Run:
    """What `finetune` gives: where the model is, how well it does, and the object that predicts with it."""

    folder: Path
    metrics: dict[str, dict[str, dict[str, float]]]  # split -> metric -> value, low, high, n
    outcome: Outcome | None = None  # None: the run was finished already

    @property
    def model(self) -> Any:
        return load(self.folder)


@checked("device", "out")
def finetune(
    task: str,
    train: Any,
    dev: Any = None,
    *,
    out: str | Path,
    test: Any = None,
    model: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    format: str | None = None,
    download: bool = False,
    check: bool = True,
    overwrite: bool = False,
    keep_checkpoints: bool = False,
    dry_run: bool = False,
    watchers: Sequence[Watcher] = (),
    say: Say | None = None,
    **settings: Any,
) -> Run | None:
    """Fine-tune `model` on `train` and leave in `out` a folder that predicts.

    `settings` are those of training/choices.py. `task` is classify, tag, span, regress, choose, embed or rerank, or
    module:Class for your own. Data is a file, a folder, a list of dicts or a DataFrame; without `dev` a part of train
    is set apart. `dry_run` says what would be done and gives None.
    """
    choices, training, columns = sort_choices(settings)
    say = say or _no_one
    with joined(find_device(device), training.deterministic) as ranks:
        say = say if ranks.is_first else _no_one
        if threads is not None:
            torch.set_num_threads(take_threads(threads))
        choose_precision(training.precision, ranks.device)  # refused before anything is read
        kind = find_task(task)
        refuse_unused(task, choices)
        data = read_data(kind, train, dev, test, choices, columns, format, training.seed)
        refuse_idle_share(data, choices)
        source = locate(find_default() if model is None else model, download=download)
        refuse_source(take_folder(out), source, find_encoder(source))
        check = check and task in HOMES
        preparation = prepare(kind, source, data, choices, training, say, check)
        if check:
            preparation.examine(say)
        preparation.refuse_unfit()
        rows = preparation.lay_out(say)
        if dry_run:
            preparation.plan(training, ranks, say)
            return None
        folder = RunFolder(take_folder(out))
        known_by = {"task": task, "model": name_asked(model), "weights": digest_weights(source)}
        asked = {**known_by, "data": fingerprint(data), **as_asked(choices, training)}
        finished = ranks.first_says(ranks.is_first and folder.claim(asked, overwrite))
        if finished:
            say(f"{out} holds this very run, finished; nothing to do (--overwrite starts anew).")
            return read_run(folder.path)
        try:
            run = carry_out(preparation, rows, folder, ranks, watchers, say)
            if ranks.is_first:
                folder.finish(asked, keep_checkpoints)
        except BertsmithError:
            if ranks.is_first and folder.find_last() is None:
                abandon(folder)
            raise
        finally:
            folder.lock.release()
        ranks.wait()
        return run


def abandon(folder: RunFolder) -> None:
    """Leave nothing of a run that ended before it had anything to keep."""
    shutil.rmtree(folder.checkpoints, ignore_errors=True)
    for name in (LOG, RUN):
        (folder.path / name).unlink(missing_ok=True)
    folder.lock.release()
    if folder.path.exists() and not any(folder.path.iterdir()):
        folder.path.rmdir()


def carry_out(
    preparation: Preparation, rows: list[list[Row]], folder: RunFolder, ranks: Ranks, watchers: Sequence[Watcher],
    say: Say,
) -> Run:  # fmt: skip
    """Train, choose, tune, score, and write what people get."""
    outcome = train_network(preparation, rows, folder, ranks, watchers, say)
    metrics = write_results(preparation, folder, ranks.device, outcome, say) if ranks.is_first else {}
    return Run(folder.path, metrics, outcome)


def train_network(
    preparation: Preparation, rows: list[list[Row]], folder: RunFolder, ranks: Ranks, watchers: Sequence[Watcher],
    say: Say,
) -> Outcome:  # fmt: skip
    """The loop, from a fresh head or from the last checkpoint; its network and its optimizer go when it is done."""
    task, data, training = preparation.task, preparation.data, preparation.training
    last = folder.find_last() if ranks.is_first or ranks.count > 1 else None
    way = choose_way(preparation.source, task, training)
    checkpoint = load_start(way, last, say)
    network = checkpoint.network.to(ranks.device)
    network.recompute = training.recompute
    if training.spread == "fsdp" and ranks.count > 1:
        shard(network, ranks.device)
    features = Features(network, task, training, folder, ranks, say) if training.features != "none" else None
    study = TaskStudy(task, rows, training) if features is None else features.study(rows)
    predictor = Predictor(network, ranks.device, training.batch_tokens or BUDGETS[ranks.device.type], keeps_grads=True)
    evaluate = Evaluation(predictor, task, data.dev, asdict(preparation.choices), training)
    if features is not None:
        # A BiLSTM needs the lengths on the host, which a recorded pass does not have.
        training = replace(training, graphs=training.graphs and not training.recurrent)
        evaluate.predictor = features.predictor(evaluate.rows) if data.dev else predictor
    write_model = partial(write_folder, way, checkpoint, preparation.tokenizer, task)
    scorer = evaluate if data.dev else None
    opening = {"truncated": preparation.cuts} if preparation.cuts else {}
    loop = Loop(network, study, training, folder, ranks, write_model, scorer, watchers, opening=opening)
    if training.metric and data.dev:
        evaluate()  # an unknown metric must not cost an epoch
    if last is None and (advice := advise_half(loop)):
        say(advice)
    outcome = loop.run()
    if features is not None:
        features.forget()
    return outcome


def load_start(way: Way, last: Path | None, say: Say) -> Checkpoint:
    """The base model with a head for the task, or the last checkpoint of this run."""
    checkpoint, where = way.start(last)
    say(f"{where[:1].upper()}{where[1:]}" if last is None else f"going on from {last.name}.")
    return checkpoint


@dataclass
class Evaluation:
    """Scores the development examples as the model stands: what is tuned on them is tuned anew each time."""

    predictor: Predictor
    task: TrainedTask[Any, Any]
    examples: Sequence[Any]
    choices: dict[str, Any]
    training: Training

    def __call__(self) -> dict[str, float]:
        try:
            found = {name: measure.point for name, measure in self.scored().measures.items()}
        except NotFinite:
            raise BertsmithError(
                f"the model in training gives scores that are not numbers: the rate {self.training.peak:g} may be too "
                f"high, or the weights that it began with are damaged."
            ) from None
        metric = self.training.metric or self.task.main_metric(None, found)
        check_metric(metric, self.task.name, found)
        return {metric: found.pop(metric), **found}

    def scored(self) -> Scored:
        precision = self.training.precision
        return score_examples(self.predictor, self.task, self.examples, self.choices, precision, self.rows)

    @cached_property
    def rows(self) -> list[list[Row]]:
        return self.task.rows(self.examples)


def read_run(folder: Path) -> Run:
    metrics: Any = read_metrics(folder).metrics
    return Run(folder, metrics)


def _no_one(sentence: str) -> None:
    """What is said to nobody."""
