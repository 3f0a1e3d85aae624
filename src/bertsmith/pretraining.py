"""`bertsmith.pretrain`: a corpus becomes an encoder of one's own.

In: a folder that `bertsmith corpus build` wrote, a recipe, what is changed of it. Out: a model folder that this and
other libraries open, its log, a report; killed and started again it goes on as if nothing had been.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bertsmith.arguments import checked
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.pseudo_perplexity import SAMPLE
from bertsmith.evaluation.report import read_metrics
from bertsmith.finetuning import abandon
from bertsmith.loading import find_device, load
from bertsmith.models.adapter_folders import digest_weights, find_encoder
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.models.families import find_family
from bertsmith.models.files import read_any_settings, read_json, take_folder
from bertsmith.models.hub import locate
from bertsmith.objectives.making import ASIDE, GENERATOR, copy_weights
from bertsmith.pretraining_results import HELD_OUT, describe_run, find_surprise, write_folder, write_results
from bertsmith.tasks.texts import take_threads
from bertsmith.training import timing
from bertsmith.training.advice import advise_half
from bertsmith.training.deadline import Deadline
from bertsmith.training.devices import Ranks, choose_precision, joined, shard, whole_weights
from bertsmith.training.flops import count_flops
from bertsmith.training.folder import RUN, RunFolder, refuse_source
from bertsmith.training.loop import Loop, Outcome, OutOfTime, Watcher
from bertsmith.training.planning import tell_plan
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining import HeldOut
from bertsmith.training.pretraining_settings import IDLE
from bertsmith.training.pretraining_start import Start, make_study, open_held_out, prepare
from bertsmith.training.purposes import refuse_unread
from bertsmith.training.recipes import RECIPES, Recipe, find_recipe, fit_to_cpu, fit_to_trained
from bertsmith.training.snapshot import Snapshot
from bertsmith.training.timing import PLAN, Scoring, plan_steps, read_plan, read_scoring
from bertsmith.training.utilization import Utilization, find_utilization
from bertsmith.training.watching import ProgressBar

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


@checked("device", "out")
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
    passes are timed, and the plan in steps that follows is kept; on a CPU with a tiny encoder, unless sizes are given),
    `max_steps`, or `epochs` (1). `plan` says what would be done and gives None.
    """
    say = say or (lambda sentence: None)
    base = None if model is None else locate(model, download=download)
    where, recipe = find_device(device), recipe or choose_recipe(base)
    gentle = {} if base is None else fit_to_trained(recipe, settings, find_limit(base))
    given = {**settings, **gentle}
    free = given if settings.get("tokens") else {name: value for name, value in given.items() if name != "tokens"}
    fitted = fit_to_cpu(recipe, free, base is None) if minutes is not None and where.type == "cpu" else {}
    chosen = find_recipe(recipe, {**given, **fitted})
    refuse_unread(settings, chosen, model)
    check_time(chosen, minutes)
    refuse_source(take_folder(out), base, chosen.asking.teacher)
    with joined(where, chosen.training.deterministic) as ranks:
        say = say if ranks.is_first else (lambda sentence: None)
        if fitted:
            say(tell_fitted(fitted))
        if threads is not None:
            torch.set_num_threads(take_threads(threads))
        start = prepare(corpus, chosen, ranks, base, download)
        say(start.origin)
        if "lengths" in gentle:
            say(f"Rows have at most {chosen.training.longest} tokens, as {base} reads no more.")
        if "rate" in gentle:
            say(f"The rate is {gentle['rate']:g}, for weights that have learned before; --rate says otherwise.")
        if "tokens" in gentle and "tokens" not in fitted:
            say(f"A step takes {gentle['tokens']:,} tokens: the recipe's are for more text; --tokens says otherwise.")
        if plan:
            held_out = open_held_out(start, chosen.training, ranks, say)
            tell_plan(start, minutes, ranks, say, count_read(start, held_out))
            return None
        folder = RunFolder(take_folder(out))
        asked = describe(start, minutes, model, base)
        if ranks.first_says(ranks.is_first and folder.claim(asked, overwrite)):
            say(f"{out} holds this very run, finished; nothing to do (--overwrite starts anew).")
            return read_run(folder.path)
        try:
            speedometer = open_speedometer(start, ranks, watchers)
            outcome = carry_out(start, folder, ranks, minutes, watchers, say)
            surprise = find_surprise(start, folder, ranks)
            with whole_weights(start.checkpoint.network):
                facts = describe_run(start, folder, asked, outcome, surprise, speedometer) if ranks.is_first else None
                metrics = write_results(start, folder, facts, say) if facts is not None else {}
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
    """Ours for a fresh encoder; a trained one goes on as it was trained here, else as its family is."""
    if base is None:
        return "smith"
    asked = read_json(base / RUN).get("asked") if (base / RUN).exists() else None
    if isinstance(asked, dict) and asked.get("recipe") in RECIPES:
        return str(asked["recipe"])
    family = find_family(read_any_settings(find_encoder(base)).get("model_type"))
    return family.name if family.name in RECIPES else "bert"


def find_limit(base: Path) -> int:
    """The longest row that a trained model reads."""
    settings = read_any_settings(find_encoder(base))
    return find_family(settings.get("model_type")).config(settings).limit


def tell_fitted(fitted: Mapping[str, int]) -> str:
    """What a run on a CPU has of its own, and how to have it otherwise."""
    step = f"steps of {fitted['tokens']:,} tokens" if "tokens" in fitted else ""
    tiny = f"a tiny encoder, {fitted['depth']} layers of {fitted['width']}" if "width" in fitted else ""
    flags = [f"--{name}" for name in fitted]
    told = f"{', '.join(flags[:-1])} and {flags[-1]} say" if len(flags) > 1 else f"{flags[0]} says"
    return f"On a CPU minutes are for {' and '.join(filter(None, (tiny, step)))}; {told} otherwise."


def check_time(recipe: Recipe, minutes: float | None) -> None:
    if minutes is None:
        return
    if recipe.training.max_steps or recipe.training.epochs:
        raise BertsmithError("minutes say how long; leave max_steps and epochs out.")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes < float("inf"):
        raise BertsmithError(f"minutes is {minutes!r}; it must be a number above 0.")


def describe(start: Start, minutes: float | None, model: str | Path | None, base: Path | None) -> dict[str, Any]:
    """What a run is known by: another value makes it another run, and so do other weights in the model's folder."""
    recipe, splits = start.recipe, start.corpus.header["splits"]
    text = {split: splits[split].get("sha256", splits[split]["tokens"]) for split in splits}
    training = {name: value for name, value in asdict(recipe.training).items() if name not in IDLE}
    return {
        "recipe": recipe.name, "preset": recipe.preset, **recipe.sizes, **recipe.changed, **asdict(recipe.asking),
        **training, "minutes": minutes, "model": None if model is None else str(model),
        "corpus": hashlib.sha256(json.dumps(text, sort_keys=True).encode()).hexdigest()[:16],
        **({} if base is None else {"weights": digest_weights(base)}),
    }  # fmt: skip


def forget_plan(folder: RunFolder) -> None:
    """What belongs to the run that was here before."""
    (folder.path / PLAN).unlink(missing_ok=True)
    for beside in (GENERATOR, ASIDE):
        shutil.rmtree(folder.path / beside, ignore_errors=True)


def carry_out(
    start: Start, folder: RunFolder, ranks: Ranks, minutes: float | None, watchers: Sequence[Watcher], say: Say
) -> Outcome:
    """The loop, from the beginning or from the last checkpoint; once more where its plan had to be shortened."""
    begun, training = timing.now(), start.recipe.training
    last = folder.find_last() if ranks.is_first or ranks.count > 1 else None
    if last is not None:
        say(f"going on from {last.name}.")
        copy_weights(load_checkpoint(last).network, start.checkpoint.network)
        start.made.go_on_from(last, start.checkpoint.network)
    elif ranks.is_first:
        forget_plan(folder)
    network = start.checkpoint.network.to(ranks.device)
    start.made.to(ranks.device)
    network.recompute = training.recompute
    frozen = Frozen(start)
    held_out = open_held_out(start, training, ranks, say)
    most = count_read(start, held_out)
    steps = plan_steps(folder.path, training, minutes, partial(make_study, start), network, ranks, say, most)
    scoring = read_scoring(folder.path, most)
    if held_out is not None and scoring.passes:
        held_out.most = scoring.passes
    if training.spread == "fsdp" and ranks.count > 1:
        shard(network, ranks.device)
    deadline = None if minutes is None else Deadline(folder.path / PLAN, training, start.size, begun)
    make = partial(make_loop, start, folder, ranks, held_out, watchers, frozen, deadline)
    loop = make(steps)
    if last is None and (advice := advise_half(loop)):
        say(advice)
    while True:
        try:
            return loop.run()
        except OutOfTime:
            assert deadline is not None
            if ranks.is_first:
                for watcher in watchers:
                    watcher.finished(Outcome(loop.progress, loop.steps, loop.speed))
                say(deadline.shorten())
            ranks.wait()  # until the shorter plan can be read
            speed = loop.speed
            loop = make(read_plan(folder.path / PLAN)["steps"])
            loop.speed = speed


def make_loop(
    start: Start, folder: RunFolder, ranks: Ranks, held_out: HeldOut | None, watchers: Sequence[Watcher],
    frozen: "Frozen", deadline: Deadline | None, steps: int,
) -> Loop:  # fmt: skip
    """Its best state is not kept: the last one, at the end of the schedule, is the result."""
    often = start.recipe.training.evaluate_every or (-(-steps // EVALUATIONS) if held_out else steps)
    training = replace(start.recipe.training, max_steps=steps, epochs=None, evaluate_every=often)
    looking_on = [*watchers, deadline] if deadline is not None else watchers
    return Loop(
        start.checkpoint.network, make_study(start, training, steps), training, folder, ranks,
        partial(write_folder, start), held_out, looking_on, freeze=frozen.take, keeps_best=False,
        is_late=None if deadline is None else deadline.is_late,
    )  # fmt: skip


class Frozen:
    """What a run has learned, as it stood when it was taken: it is written while the run goes on."""

    def __init__(self, start: Start) -> None:
        """Before the network is compiled or cut up."""
        generator = start.made.generator
        self.snapshot = Snapshot([start.checkpoint, *([] if generator is None else [generator])])
        checkpoint, *others = self.snapshot.checkpoints
        made = replace(start.made, generator=others[0] if others else None)
        self.start = replace(start, checkpoint=checkpoint, made=made)

    def take(self) -> Callable[[Path], None]:
        self.snapshot.take()
        return partial(write_folder, self.start)


def open_speedometer(start: Start, ranks: Ranks, watchers: Sequence[Watcher]) -> Utilization:
    """What tells how much of the device is used; bars that look on show it."""
    precision = choose_precision(start.recipe.training.precision, ranks.device)
    flops = count_flops(start.made.objective, start.checkpoint.network, start.recipe.training.phases())
    found = find_utilization(flops, ranks.device, precision, ranks.count)
    for watcher in watchers:
        if isinstance(watcher, ProgressBar):
            watcher.utilization = found
    return found


def count_read(start: Start, held_out: HeldOut | None) -> Scoring:
    """What a run reads besides what it learns from: to be scored, now and then and at its end."""
    if held_out is None:
        return Scoring()
    return Scoring(EVALUATIONS, held_out.count, SAMPLE, start.recipe.training.phases()[-1].length)


def read_run(folder: Path) -> PretrainingRun:
    known = read_metrics(folder).metrics.get(HELD_OUT, {})
    return PretrainingRun(folder, {name: score["value"] for name, score in known.items()})
