"""What a pretraining leaves: a model folder that others open, its scores on held-out text, a report.

In: what a run stood on, and how it ended. Out: files, and metrics by name.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bertsmith
from bertsmith.data.findings import counted
from bertsmith.evaluation.pseudo_perplexity import SAMPLE, measure_pseudo_perplexity
from bertsmith.evaluation.report import RunFacts, write_report
from bertsmith.evaluation.report.facts import Score
from bertsmith.models.checkpoint import save_checkpoint
from bertsmith.models.files import written_aside
from bertsmith.models.hub import locate, name_of
from bertsmith.objectives.making import GENERATOR
from bertsmith.training.devices import Ranks, cast, choose_precision
from bertsmith.training.folder import RunFolder
from bertsmith.training.preparing import Say
from bertsmith.training.pretraining_start import Start
from bertsmith.training.progress import Outcome
from bertsmith.training.purposes import find_missing
from bertsmith.training.timing import Scoring, read_scoring
from bertsmith.training.utilization import Utilization

HELD_OUT = "held-out"
SEEN = 100  # points between which the tokens that were seen are a straight line


def write_folder(start: Start, folder: Path) -> None:
    """A model folder that others open; of codes that no tokenizer made, without a tokenizer."""
    save_checkpoint(start.checkpoint, folder)
    start.made.save(folder, start.checkpoint.network)
    tokenizer, limit = start.corpus.tokenizer(), start.checkpoint.config.limit
    for each in (folder, folder / GENERATOR):
        if tokenizer is not None and (each / "config.json").exists():
            tokenizer.limit = min(tokenizer.limit or limit, limit)  # others cut long texts by it
            if start.checkpoint.config.segments < 2:  # others look up what they are told, and find no such row
                tokenizer.template = tokenizer.template.in_one_segment()
            tokenizer.save(each)


def find_surprise(start: Start, folder: RunFolder, ranks: Ranks) -> Score | None:
    """The pseudo-perplexity of the held-out text, once, at the end; the same in all processes. Of masks never learnt it
    would say nothing."""
    if not fills_masks(start):
        return None
    training = start.recipe.training
    precision = partial(cast, choose_precision(training.precision, ranks.device), ranks.device)
    length = training.phases()[-1].length
    samples = read_scoring(folder.path, Scoring(samples=SAMPLE)).samples or SAMPLE
    network = start.checkpoint.network
    return measure_pseudo_perplexity(start.held_out, length, network, ranks.device, precision, samples)


def fills_masks(start: Start) -> bool:
    """Whether this run taught the encoder to fill masks: a head for it may be there from its family alone."""
    return "mask" in start.checkpoint.heads and bool({"masked", "distilled"} & {*start.made.objective.names})


def count_seen(start: Start, steps: int) -> list[tuple[int, int]]:
    """After how many steps how many tokens were learned from, at some points of a run."""
    training = start.recipe.training
    sizes = np.cumsum([0, *(training.tokens_at(step, steps, start.size) for step in range(steps))])
    some = sorted({round(part * steps / SEEN) for part in range(SEEN + 1)})
    return [(step, int(sizes[step])) for step in some]


def describe_run(
    start: Start, folder: RunFolder, asked: dict[str, Any], outcome: Outcome, surprise: Score | None,
    speedometer: Utilization,
) -> RunFacts:  # fmt: skip
    """The last state, as it stands at the end of the schedule, with what its last evaluation found."""
    log, speed = folder.read_log(), outcome.speed
    found = [record["metrics"] for record in log if record.get("split") == "dev"]
    scores: dict[str, Score] = {name: {"value": one} for name, one in (found[-1] if found else {}).items()}
    if surprise is not None:
        scores["pseudo_perplexity"] = surprise
    device = str(start.checkpoint.network.embed.tokens.weight.device)
    tokenizer = start.corpus.tokenizer()
    return RunFacts(
        task="mask" if fills_masks(start) else "pretrain",
        title=f"Pretraining: {start.recipe.name}",
        mask=tokenizer.mask_token if tokenizer is not None and tokenizer.mask_token else RunFacts.mask,
        base="" if asked["model"] is None else name_of(locate(asked["model"])),
        date=datetime.now(UTC).date().isoformat(),
        version=bertsmith.__version__,
        metrics={HELD_OUT: scores},
        curves=log,
        tokens=count_seen(start, outcome.steps),
        data={"facts": describe_text(start)},
        settings={**describe_settings(start, asked), "steps": outcome.steps},
        speed={**speedometer.as_facts(speed.tokens, speed.seconds), "since": speed.began, "device": device},  # type: ignore[typeddict-item]
    )


def describe_settings(start: Start, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What the run read, with the encoder's sizes as they are: a recipe's own are others than those that follow a
    width that was given, and a model that goes on has its own."""
    config = start.checkpoint.config
    sizes = dict.fromkeys(("depth", "width", "heads", "inner", "positions", *start.recipe.sizes))
    found = {"recipe": start.recipe.name, **{name: getattr(config, name) for name in sizes}}
    found["parameters"] = sum(p.numel() for name, p in start.checkpoint.network.named_parameters()
                              if name.partition(".")[0] not in start.made.objective.parts())  # fmt: skip
    # Where a model lay on somebody's disk is nobody's business.
    private = ("model", "teacher", "phrases")
    read = {name: value for name, value in asked.items() if value is not None and find_missing(name, asked) is None}
    return found | {name: value for name, value in read.items() if name not in found and name not in private}


def describe_text(start: Start) -> dict[str, Any]:
    """What there was to learn from, and to be scored on."""
    splits = {"to train on": start.corpus, "held out": start.held_out}
    return {
        **{told: f"{len(text.tokens):,} tokens in {counted(len(text), 'document')}" for told, text in splits.items()},
        "vocabulary": f"{start.corpus.vocabulary:,}",
    }


def write_results(start: Start, folder: RunFolder, facts: RunFacts, say: Say) -> dict[str, float]:
    with written_aside(folder.path) as aside:
        write_folder(start, aside)
        write_report(aside, facts)
    metrics = {name: score["value"] for name, score in facts.metrics[HELD_OUT].items()}
    told = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
    if told:
        say(f"held out: {told}")
    say(f"wrote the encoder and its curve to {folder.path}")
    return metrics
