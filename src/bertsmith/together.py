"""`bertsmith.finetune_together`: several tasks, one encoder: each member has a head, and what one learns serves all.

In: members (a task, its data and its weight each), a model, a folder for the result. Out: a `Run`; in the folder an
encoder, and in its `adapters` the head of each member; one report. The same call again resumes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bertsmith.arguments import checked
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.mixed import MixEvaluation, write_mix, write_mix_results
from bertsmith.finetuning import Evaluation, Run, abandon, read_run
from bertsmith.loading import find_device
from bertsmith.models.adapter_folders import digest_weights, find_encoder
from bertsmith.models.adapters import open_checkpoint, read_members
from bertsmith.models.checkpoint import Checkpoint
from bertsmith.models.files import take_folder
from bertsmith.models.hub import find_default, locate, name_asked
from bertsmith.models.members import fit_members, open_members
from bertsmith.tasks.predicting import BUDGETS, Predictor
from bertsmith.tasks.texts import take_threads
from bertsmith.training.advice import advise_half
from bertsmith.training.choices import TaskChoices, sort_choices
from bertsmith.training.devices import Ranks, choose_precision, joined
from bertsmith.training.folder import RunFolder, refuse_source
from bertsmith.training.gathering import Mix, gather_mix, refuse_settings
from bertsmith.training.loop import Loop, Outcome, Watcher
from bertsmith.training.members import sort_members
from bertsmith.training.preparing import Say


@checked("device", "out")
def finetune_together(
    members: Mapping[str, Mapping[str, Any]],
    *,
    out: str | Path,
    mixing: str | None = None,
    temperature: float | None = None,
    model: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    download: bool = False,
    check: bool = True,
    overwrite: bool = False,
    keep_checkpoints: bool = False,
    dry_run: bool = False,
    watchers: Sequence[Watcher] = (),
    say: Say | None = None,
    **settings: Any,
) -> Run | None:
    """Fine-tune `model` on several tasks at once and leave in `out` an encoder with a head for each.

    A member is a dict: `task` (classify, tag, span, regress, choose, module:Class, or mask for masked tokens of the
    texts that the others train on), `train`, `dev`, `test`, `weight` (its loss is multiplied by it), columns, and any
    choice about its task. `mixing`: together (each step holds a batch of every member), or one member a step:
    proportional to its examples, by a temperature (their number to the power of 1/temperature), or round-robin.
    `settings` are those of training/choices.py for all members; `metric` is a member's name or NAME/METRIC.
    """
    choices, training, columns = sort_choices(settings)
    if columns:
        raise BertsmithError(f"{next(iter(columns))} is a column of one member; give it there.")
    refuse_settings(training, mixing, temperature)
    sorted_members = sort_members(members, _chosen(choices), training)
    say = say or _no_one
    with joined(find_device(device), training.deterministic) as ranks:
        say = say if ranks.is_first else _no_one
        if threads is not None:
            torch.set_num_threads(take_threads(threads))
        choose_precision(training.precision, ranks.device)  # refused before anything is read
        source = locate(find_default() if model is None else model, download=download)
        refuse_source(take_folder(out), source, find_encoder(source))
        mix = gather_mix(sorted_members, source, training, mixing, temperature, check, say)
        if dry_run:
            mix.plan(ranks, say)
            return None
        folder = RunFolder(take_folder(out))
        return _claim_and_run(mix, folder, ranks, name_asked(model), overwrite, keep_checkpoints, watchers, say)


def _chosen(choices: TaskChoices) -> dict[str, Any]:
    """What was chosen for all members, and is not as it would be anyway."""
    return {name: value for name, value in asdict(choices).items() if value != getattr(TaskChoices(), name)}


def _claim_and_run(
    mix: Mix, folder: RunFolder, ranks: Ranks, model: str, overwrite: bool, keep: bool, watchers: Sequence[Watcher],
    say: Say,
) -> Run:  # fmt: skip
    asked = what_was_asked(mix, model)
    if ranks.first_says(ranks.is_first and folder.claim(asked, overwrite)):
        say(f"{folder.path} holds this very run, finished; nothing to do (--overwrite starts anew).")
        return read_run(folder.path)
    try:
        outcome = train_mix(mix, folder, ranks, watchers, say)
        metrics = write_mix_results(mix, folder, ranks.device, outcome, say) if ranks.is_first else {}
        if ranks.is_first:
            folder.finish(asked, keep)
    except BertsmithError:
        if ranks.is_first and folder.find_last() is None:
            abandon(folder)
        raise
    finally:
        folder.lock.release()
    ranks.wait()
    return Run(folder.path, metrics, outcome)


def what_was_asked(mix: Mix, model: str) -> dict[str, Any]:
    """What the run is known by: another value makes it another run."""
    asked: dict[str, Any] = {"task": "several", "members": list(mix.members), "model": model, "mixing": mix.mixing}
    asked |= {"weights": digest_weights(mix.source),
              "temperature": mix.temperature if mix.mixing == "temperature" else None, **asdict(mix.training),
              "rate": mix.training.peak}  # fmt: skip
    for name, member in mix.members.items():
        asked |= {**member.asked(), f"{name}.data": mix.fingerprint(name)}
    return asked


def train_mix(mix: Mix, folder: RunFolder, ranks: Ranks, watchers: Sequence[Watcher], say: Say) -> Outcome:
    """The loop, from fresh heads or from the last checkpoint; its network and its optimizer go when it is done."""
    training = mix.training
    last = folder.find_last() if ranks.is_first or ranks.count > 1 else None
    checkpoint = load_start(mix, last, say)
    network = checkpoint.network.to(ranks.device)
    network.recompute = training.recompute
    predictor = Predictor(network, ranks.device, training.batch_tokens or BUDGETS[ranks.device.type], keeps_grads=True)
    scorers = {
        name: Evaluation(predictor, one.task, one.data.dev, asdict(one.choices), one.training)
        for name, one in mix.tasks.items()
    }
    evaluate = MixEvaluation(scorers, training.metric)
    write_model = partial(write_mix, mix, checkpoint, {name: one.task for name, one in mix.tasks.items()})
    opening = {"truncated": {name: one.cuts for name, one in mix.tasks.items()}}
    loop = Loop(network, mix.study, training, folder, ranks, write_model, evaluate, watchers, opening=opening)
    if training.metric:
        evaluate()  # an unknown metric must not cost an epoch
    if last is None and (advice := advise_half(loop)):
        say(advice)
    return loop.run()


def load_start(mix: Mix, last: Path | None, say: Say) -> Checkpoint:
    """The base model with a head for each member, or the last checkpoint of this run."""
    if last is not None:
        say(f"going on from {last.name}.")
        return open_members(last, list(mix.members), mix.training.dropout)
    base = open_checkpoint(mix.source)
    learnt = read_members(mix.source, base)
    fitted, heads = fit_members(base, mix.wanted(), learnt, seed=mix.training.seed, dropout=mix.training.dropout)
    say(heads.tell())
    for name, one in mix.tasks.items():
        if name in heads.kept:
            one.task.unfold(fitted.network)
    return fitted


def _no_one(sentence: str) -> None:
    """What is said to nobody."""
