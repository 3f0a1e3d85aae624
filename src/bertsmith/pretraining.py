"""`bertsmith.pretrain`: a corpus becomes an encoder of one's own.

In: a folder that `bertsmith corpus build` wrote, a recipe, what is changed of it. Out: a model folder that this and
other libraries open, its log, a report; killed and started again it goes on as if nothing had been.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

import bertsmith
from bertsmith.errors import BertsmithError, Stopped
from bertsmith.evaluation.report import RunFacts, read_metrics, write_report
from bertsmith.finetuning import abandon
from bertsmith.loading import find_device, load
from bertsmith.models.adapters import find_encoder
from bertsmith.models.checkpoint import load_checkpoint, save_checkpoint
from bertsmith.models.families import find_family
from bertsmith.models.files import read_settings, take_folder, written_aside
from bertsmith.models.hub import locate, name_of
from bertsmith.objectives.making import GENERATOR, copy_weights
from bertsmith.tasks.texts import take_count
from bertsmith.training import timing
from bertsmith.training.deadline import Deadline
from bertsmith.training.devices import Ranks, cast, choose_precision, joined, shard, whole_weights
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Loop, Outcome, Watcher
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining import HeldOut, PretrainingStudy
from bertsmith.training.pretraining_settings import IDLE, Pretraining
from bertsmith.training.pretraining_start import Start, prepare, tell_plan
from bertsmith.training.recipes import RECIPES, Recipe, find_recipe
from bertsmith.training.timing import PLAN, plan_steps

HELD_OUT = "held-out"
EVALUATIONS = 10  # in a run, unless it is said after how many steps


@dataclass
class PretrainingRun:
    """What `pretrain` gives: where the model is, and how well it does on text it never saw."""

    folder: Path
    metrics: dict[str, float]
    outcome: Outcome | None = None  # None: the run was finished already

    @property
    def model(self) -> Any:
        return load(self.folder)


def pretrain(
    corpus: str | Path,
    out: str | Path,
    recipe: str | None = None,
    *,
    model: str | Path | None = None,
    minutes: float | None = None,
    device: str = "auto",
    threads: int | None = None,
    download: bool = False,
    overwrite: bool = False,
    keep_checkpoints: bool = False,
    plan: bool = False,
    watchers: Sequence[Watcher] = (),
    say: Say | None = None,
    **settings: Any,
) -> PretrainingRun | None:
    """Train an encoder on a corpus, and leave it in `out`.

    It begins with random weights, or with those of `model`, a checkpoint whose tokenizer made the corpus. `recipe` is a
    name in training/recipes.py: by default `smith`, and with a model that of its family. `settings` are those of
    training/pretraining_settings.py, and of `Asking` and `Shape` in training/recipes.py. How long: `minutes` (the first
    passes are timed, and the plan in steps that follows is kept), `max_steps`, or `epochs` (1). `plan` says what would
    be done and gives None.
    """
    say = say or (lambda sentence: None)
    base = None if model is None else locate(model, download=download)
    chosen = find_recipe(recipe or choose_recipe(base), settings)
    check_time(chosen, minutes)
    with joined(find_device(device)) as ranks:
        say = say if ranks.is_first else (lambda sentence: None)
        if threads is not None:
            torch.set_num_threads(take_count("threads", threads))
        start = prepare(corpus, chosen, ranks, base)
        say(start.origin)
        if plan:
            tell_plan(start, minutes, ranks, say)
            return None
        folder = RunFolder(take_folder(out))
        asked = describe(start, minutes, model)
        if ranks.first_says(ranks.is_first and folder.claim(asked, overwrite)):
            say(f"{out} holds this very run, finished; nothing to do (--overwrite starts anew).")
            return read_run(folder.path)
        try:
            outcome = carry_out(start, folder, ranks, minutes, watchers, say)
            with whole_weights(start.checkpoint.network):
                metrics = write_results(start, folder, asked, outcome, say) if ranks.is_first else {}
            if ranks.is_first:
                folder.finish(asked, keep_checkpoints)
        except BertsmithError:
            if ranks.is_first and folder.find_last() is None:
                forget_plan(folder)
                abandon(folder)
            raise
        finally:
            folder.lock.release()
        ranks.wait()
        return PretrainingRun(folder.path, metrics, outcome)


def choose_recipe(base: Path | None) -> str:
    """Ours for a fresh encoder; a trained one goes on as its family is trained."""
    if base is None:
        return "smith"
    family = find_family(read_settings(find_encoder(base)).get("model_type"))
    return family.name if family.name in RECIPES else "bert"


def check_time(recipe: Recipe, minutes: float | None) -> None:
    if minutes is None:
        return
    if recipe.training.max_steps or recipe.training.epochs:
        raise BertsmithError("minutes say how long; leave max_steps and epochs out.")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes < float("inf"):
        raise BertsmithError(f"minutes is {minutes!r}; it must be a number above 0.")


def describe(start: Start, minutes: float | None, model: str | Path | None) -> dict[str, Any]:
    """What a run is known by: another value makes it another run."""
    recipe, splits = start.recipe, start.corpus.header["splits"]
    text = {split: splits[split].get("sha256", splits[split]["tokens"]) for split in splits}
    training = {name: value for name, value in asdict(recipe.training).items() if name not in IDLE}
    return {
        "recipe": recipe.name, "preset": recipe.preset, **recipe.sizes, **recipe.changed, **asdict(recipe.asking),
        **training, "minutes": minutes, "model": None if model is None else str(model),
        "corpus": hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()[:16],
    }  # fmt: skip


def forget_plan(folder: RunFolder) -> None:
    """What belongs to the run that was here before."""
    (folder.path / PLAN).unlink(missing_ok=True)
    shutil.rmtree(folder.path / GENERATOR, ignore_errors=True)


def carry_out(
    start: Start, folder: RunFolder, ranks: Ranks, minutes: float | None, watchers: Sequence[Watcher], say: Say
) -> Outcome:
    """The loop, from the beginning or from the last checkpoint; once more where its plan had to be shortened."""
    begun, training = timing.now(), start.recipe.training
    last = folder.find_last() if ranks.is_first or ranks.count > 1 else None
    if last is not None:
        say(f"going on from {last.name}.")
        copy_weights(load_checkpoint(last).network, start.checkpoint.network)
        start.made.go_on_from(last)
    elif ranks.is_first:
        forget_plan(folder)
    network = start.checkpoint.network.to(ranks.device)
    start.made.to(ranks.device)
    network.recompute = training.recompute
    steps = plan_steps(folder.path, training, minutes, partial(make_study, start), network, ranks, say)
    if training.spread == "fsdp" and ranks.count > 1:
        shard(network, ranks.device)
    held_out = open_held_out(start, training, ranks, say)
    if minutes is None or ranks.count > 1:  # several processes cannot stop at a step that one of them chooses
        return make_loop(start, folder, ranks, steps, held_out, watchers).run()
    deadline = Deadline(folder.path / PLAN, training, start.size, begun)
    loop = make_loop(start, folder, ranks, steps, held_out, [*watchers, deadline])
    while True:
        try:
            return loop.run()
        except Stopped:
            if deadline.shorter is None:
                raise
            for watcher in watchers:
                watcher.finished(Outcome(loop.progress, loop.steps, loop.speed))
            say(deadline.shorten())
            speed = loop.speed
            loop = make_loop(start, folder, ranks, deadline.shorter, held_out, [*watchers, deadline])
            loop.speed = speed


def make_loop(
    start: Start, folder: RunFolder, ranks: Ranks, steps: int, held_out: HeldOut | None, watchers: Sequence[Watcher]
) -> Loop:
    often = start.recipe.training.evaluate_every or (-(-steps // EVALUATIONS) if held_out else steps)
    training = replace(start.recipe.training, max_steps=steps, evaluate_every=often)
    study, write = make_study(start, training, steps), partial(write_folder, start)
    return Loop(start.checkpoint.network, study, training, folder, ranks, write, held_out, watchers)


def make_study(start: Start, training: Pretraining, steps: int) -> PretrainingStudy:
    return PretrainingStudy(start.corpus, start.made.objective, training, steps, start.size, start.made.rows)


def open_held_out(start: Start, training: Pretraining, ranks: Ranks, say: Say) -> HeldOut | None:
    """What scores the text that was held out; None where there is none, or none that rows can be made of."""
    if not len(start.held_out.tokens):
        say("no text was held out, so the encoder is not scored on any (bertsmith corpus build --held-out).")
        return None
    try:
        study = make_study(replace(start, corpus=start.held_out), training, 1)
        study.passes[-1].rows_of(0)
    except BertsmithError as error:
        say(f"the encoder is not scored on held-out text: {error}")
        return None
    precision = partial(cast, choose_precision(training.precision, ranks.device), ranks.device)
    return HeldOut(study, start.checkpoint.network, ranks.device, precision)


def write_folder(start: Start, folder: Path) -> None:
    """A model folder that others open; of codes that no tokenizer made, without a tokenizer."""
    save_checkpoint(start.checkpoint, folder)
    start.made.save(folder)
    tokenizer = start.corpus.tokenizer()
    for each in (folder, folder / GENERATOR):
        if tokenizer is not None and each.exists():
            tokenizer.save(each)


def write_results(
    start: Start, folder: RunFolder, asked: dict[str, Any], outcome: Outcome, say: Say
) -> dict[str, float]:
    """The last state, as it stands at the end of the schedule, with what its last evaluation found."""
    log, speed = folder.read_log(), outcome.speed
    found = [record["metrics"] for record in log if record.get("split") == "dev"]
    metrics: dict[str, float] = found[-1] if found else {}
    rate = speed.tokens / max(speed.seconds, 1e-9)
    # Where a model lay on somebody's disk is nobody's business.
    shown = {name: value for name, value in asked.items() if name not in ("model", "teacher")}
    device = str(start.checkpoint.network.embed.tokens.weight.device)
    facts = RunFacts(
        task="mask" if "mask" in start.checkpoint.heads else "pretrain",
        title=f"Pretraining: {start.recipe.name}",
        base="" if asked["model"] is None else name_of(locate(asked["model"])),
        date=datetime.now(UTC).date().isoformat(),
        version=bertsmith.__version__,
        metrics={HELD_OUT: {name: {"value": one} for name, one in metrics.items()}},
        curves=log,
        settings={**shown, "steps": outcome.steps},
        speed={"tokens_per_second": rate, "seconds": speed.seconds, "device": device},
    )
    with written_aside(folder.path) as aside:
        write_folder(start, aside)
        write_report(aside, facts)
    told = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
    if told:
        say(f"held out: {told}")
    say(f"wrote the encoder and its curve to {folder.path}")
    return metrics


def read_run(folder: Path) -> PretrainingRun:
    known = read_metrics(folder).metrics.get(HELD_OUT, {})
    return PretrainingRun(folder, {name: score["value"] for name, score in known.items()})
