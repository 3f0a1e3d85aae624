"""`bertsmith.pretrain`: a corpus becomes an encoder of one's own.

In: a folder that `bertsmith corpus build` wrote, a recipe, what is changed of it. Out: a model folder that this and
other libraries open, its log, a report; killed and started again it goes on as if nothing had been.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

import bertsmith
from bertsmith.data.rows_plan import RowKind
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.report import RunFacts
from bertsmith.evaluation.report.page import make_page
from bertsmith.loading import find_device, load
from bertsmith.models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from bertsmith.models.files import take_folder, write_json, written_aside
from bertsmith.models.fresh import make_fresh
from bertsmith.objectives.making import Made, make_objective
from bertsmith.tasks.texts import take_count
from bertsmith.training.devices import Ranks, cast, choose_precision, joined
from bertsmith.training.folder import RunFolder
from bertsmith.training.loop import Loop, Outcome, Watcher
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining import HeldOut, Pretraining, PretrainingStudy
from bertsmith.training.recipes import Recipe, find_recipe
from bertsmith.training.timing import plan_steps


@dataclass
class PretrainingRun:
    """What `pretrain` gives: where the model is, and how well it does on text it never saw."""

    folder: Path
    metrics: dict[str, float]
    outcome: Outcome | None = None  # None: the run was finished already

    @property
    def model(self) -> Any:
        return load(self.folder)


@dataclass
class Start:
    """Everything that a run stands on."""

    corpus: Corpus
    held_out: Corpus
    recipe: Recipe
    checkpoint: Checkpoint
    made: Made
    size: int  # tokens in a pass


def pretrain(
    corpus: str | Path,
    out: str | Path,
    recipe: str = "smith",
    *,
    minutes: float | None = None,
    device: str = "auto",
    threads: int | None = None,
    overwrite: bool = False,
    keep_checkpoints: bool = False,
    plan: bool = False,
    watchers: Sequence[Watcher] = (),
    say: Say | None = None,
    **settings: Any,
) -> PretrainingRun | None:
    """Train an encoder from nothing on a corpus, and leave it in `out`.

    `settings` are those of training/pretraining.py, and of `Asking` and `Shape` in training/recipes.py. How long:
    `minutes` (the first steps are timed, and the plan in steps that follows is kept), `max_steps`, or `epochs` (1).
    `plan` says what would be done and gives None.
    """
    chosen = find_recipe(recipe, settings)
    say = say or (lambda sentence: None)
    if minutes is not None and (chosen.training.max_steps or chosen.training.epochs):
        raise BertsmithError("minutes say how long; leave max_steps and epochs out.")
    if minutes is not None and not minutes > 0:
        raise BertsmithError(f"minutes is {minutes}; it must be more than 0.")
    with joined(find_device(device)) as ranks:
        say = say if ranks.is_first else (lambda sentence: None)
        if threads is not None:
            torch.set_num_threads(take_count("threads", threads))
        start = prepare(corpus, chosen, ranks)
        folder = RunFolder(take_folder(out))
        asked = {"recipe": asdict(chosen), "corpus": start.corpus.header["splits"], "minutes": minutes}
        if plan:
            tell_plan(start, minutes, ranks, say)
            return None
        if ranks.first_says(ranks.is_first and folder.claim(asked, overwrite)):
            say(f"{out} holds this very run, finished; nothing to do (--overwrite starts anew).")
            return read_run(folder.path)
        try:
            run = carry_out(start, folder, ranks, minutes, watchers, say)
            if ranks.is_first:
                folder.finish(asked, keep_checkpoints)
        finally:
            folder.lock.release()
        ranks.wait()
        return run


def prepare(corpus: str | Path, recipe: Recipe, ranks: Ranks) -> Start:
    train, held_out = Corpus.open(corpus), Corpus.open(corpus, "held-out")
    longest = max(phase.length for phase in recipe.training.phases())
    if len(train.tokens) < longest:
        held = f"{len(train.tokens):,} tokens"
        raise BertsmithError(f"{corpus} holds {held}, less than a row of {longest}; give more text.")
    sizes: dict[str, Any] = {**recipe.sizes, "vocabulary": train.vocabulary}
    if recipe.training.dropout is not None:
        sizes |= dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), recipe.training.dropout)
    made = make_objective(recipe.asking, train, recipe.training.seed)
    checkpoint = make_fresh(recipe.preset, made.objective.heads, sizes, train.specials, recipe.training.seed)
    if checkpoint.config.limit < longest:
        most = checkpoint.config.limit
        raise BertsmithError(f"rows of {longest} tokens are too long for an encoder that reads {most}; give positions.")
    made.attach(checkpoint)
    return Start(train, held_out, recipe, checkpoint, made, recipe.training.pass_size(ranks.device.type))


def carry_out(
    start: Start, folder: RunFolder, ranks: Ranks, minutes: float | None, watchers: Sequence[Watcher], say: Say
) -> PretrainingRun:
    last = folder.find_last() if ranks.is_first or ranks.count > 1 else None
    if last is not None:
        say(f"going on from {last.name}.")
        fill_from(start.checkpoint, load_checkpoint(last))
    network = start.checkpoint.network.to(ranks.device)
    start.made.to(ranks.device)
    network.recompute = start.recipe.training.recompute
    steps = plan_steps(folder, start.recipe.training, minutes, partial(make_study, start), network, ranks, say)
    training = replace(start.recipe.training, max_steps=steps)
    study = make_study(start, training, steps)
    held_out = HeldOut(make_study(replace(start, corpus=start.held_out), training, 1), network, ranks.device,
                       partial(_cast, training, ranks.device))  # fmt: skip
    write_model = partial(write_folder, start)
    scorer = held_out if len(start.held_out) else None
    loop = Loop(network, study, training, folder, ranks, write_model, scorer, watchers)
    outcome = loop.run()
    metrics = write_results(start, folder, held_out, outcome, say) if ranks.is_first else {}
    return PretrainingRun(folder.path, metrics, outcome)


def make_study(start: Start, training: Pretraining, steps: int) -> PretrainingStudy:
    kind: RowKind = start.made.rows
    return PretrainingStudy(start.corpus, start.made.objective, training, steps, start.size, kind)


def _cast(training: Pretraining, device: torch.device) -> AbstractContextManager[None]:
    return cast(choose_precision(training.precision, device), device)


def fill_from(checkpoint: Checkpoint, last: Checkpoint) -> None:
    """Go on with the weights of a checkpoint of this run."""
    with torch.no_grad():
        for name in checkpoint.network.names:
            checkpoint.network.get_parameter(name).copy_(last.network.tensor(name))


def write_folder(start: Start, folder: Path) -> None:
    """A model folder that others open; of codes that no tokenizer made, without a tokenizer."""
    save_checkpoint(start.checkpoint, folder)
    tokenizer = start.corpus.tokenizer()
    if tokenizer is not None:
        tokenizer.save(folder)


def write_results(
    start: Start, folder: RunFolder, held_out: HeldOut, outcome: Outcome, say: Say
) -> dict[str, float]:
    """The last state, as it stands at the end of the schedule."""
    held_out.network.eval()
    metrics = held_out() if len(start.held_out) else {}
    speed = outcome.speed
    rate = speed.tokens / max(speed.seconds, 1e-9)
    about = {"steps": outcome.steps, "tokens_per_second": rate, "seconds": speed.seconds}
    facts = RunFacts(
        task="pretrain", title=f"Pretraining: {start.recipe.name}", date=datetime.now(UTC).date().isoformat(),
        version=bertsmith.__version__, metrics={"held-out": {name: {"value": one} for name, one in metrics.items()}},
        curves=folder.read_log(), settings={**asdict(start.recipe.asking), **asdict(start.recipe.training)},
    )  # fmt: skip
    start.checkpoint.network.cpu()
    with written_aside(folder.path) as aside:
        write_folder(start, aside)
        write_json(aside / "metrics.json", {"metrics": metrics, "speed": about, "recipe": asdict(start.recipe)})
        (aside / "report.html").write_text(make_page(facts), encoding="utf-8")
    for name, value in metrics.items():
        say(f"held out: {name} {value:.4f}")
    say(f"wrote the encoder and its curve to {folder.path}")
    return metrics


def read_run(folder: Path) -> PretrainingRun:
    from bertsmith.models.files import read_json

    return PretrainingRun(folder, dict(read_json(folder / "metrics.json")["metrics"]))


def tell_plan(start: Start, minutes: float | None, ranks: Ranks, say: Say) -> None:
    """What would be done, before anything runs."""
    config, training = start.checkpoint.config, start.recipe.training
    network = start.checkpoint.network
    steps = training.max_steps or max(1, round((training.epochs or 1) * len(start.corpus.tokens) / training.tokens))
    body = sum(p.numel() for name, p in network.named_parameters() if name.startswith("blocks."))
    longest = max(phase.length for phase in training.phases())
    flops = 6 * body + 12 * config.depth * config.width * longest
    total = training.tokens * steps
    facts = {
        "recipe": f"{start.recipe.name} ({start.recipe.preset}), asks {start.recipe.asking.asks}",
        "encoder": f"{config.depth} layers of {config.width}, {network.parameter_count:,} parameters, "
        f"{body:,} of them in blocks",
        "corpus": f"{len(start.corpus.tokens):,} tokens in {len(start.corpus):,} documents, "
        f"{len(start.held_out):,} more held out",
        "a step": f"{training.tokens:,} tokens in passes of {start.size:,}, rows of at most {training.lengths}",
        "how long": f"{minutes:g} minutes" if minutes else f"{steps:,} steps, {total:,} tokens, "
        f"{total / len(start.corpus.tokens):.2f} epochs, {flops * total:.2e} FLOP",
        "optimizer": f"{training.optimizer}, rate {training.peak:g}, {training.schedule}",
        "memory": f"{network.parameter_count * 16 / 2**20:,.0f} MiB for weights, gradients and the optimizer",
        "device": f"{ranks.count} × {ranks.device}, {choose_precision(training.precision, ranks.device)}",
    }
    for name, fact in facts.items():
        say(f"{name:>10}: {fact}")
