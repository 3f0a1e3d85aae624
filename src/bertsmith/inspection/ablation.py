"""What each attention head is for, by cutting it: how much a score, or one answer, changes without it.

In: examples with their gold and the task that scores them, or one thing that a model is asked. Out: a `HeadEffects`. A
head is cut by setting what it adds to its layer to zero, as Michel et al. do (2019, arXiv 1905.10650). The model stays
as it is, since the cut is made in a replica.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from bertsmith.errors import BertsmithError
from bertsmith.evaluation.intervals import compare, interval
from bertsmith.evaluation.scoring import Scored, score_examples
from bertsmith.inspection.aims import Able
from bertsmith.inspection.asking import ask
from bertsmith.inspection.heads_drawing import draw_heads
from bertsmith.inspection.picture import Picture
from bertsmith.inspection.replica import replicate
from bertsmith.inspection.subject import Subject
from bertsmith.models.network import Network
from bertsmith.tasks.measures import Measure
from bertsmith.tasks.predicting import Predictor
from bertsmith.tasks.texts import is_iterable
from bertsmith.tasks.trained import TrainedTask

SAMPLES = 2000  # of the bootstrap, for each head
Head = tuple[int, int]  # layer and head, counted from 0
Tell = Callable[[str, int, int], None]  # of what how many are done, and of how many


@dataclass(frozen=True)
class Effect:
    """What changes without some heads; the interval and p are of a comparison example by example."""

    change: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    changed: int | None = None  # answers that are other ones now

    def data(self) -> dict[str, Any]:
        return {name: _known(value) for name, value in asdict(self).items()}


class HeadEffects(Picture):
    """`.changes` is (layers, heads), nan where a head was not cut alone; `.together` is the effect of all `.heads`."""

    kind: ClassVar[str] = "heads"

    def __init__(
        self, what: str, value: float, spread: tuple[float, float] | None, examples: int, size: tuple[int, int],
        effects: dict[Head, Effect], heads: tuple[Head, ...] = (), together: Effect | None = None,
    ) -> None:  # fmt: skip
        self.what, self.value, self.spread, self.examples, self.size = what, value, spread, examples, size
        self.effects, self.heads, self.together = effects, heads, together
        self.title = f"What each head is for: {what}"

    @property
    def changes(self) -> "np.ndarray[Any, Any]":
        found = np.full(self.size, np.nan)
        for place, effect in self.effects.items():
            found[place] = effect.change
        return found

    def data(self) -> dict[str, Any]:
        layers, heads = self.size
        low, high = map(_known, self.spread or (None, None))
        return {
            "what": self.what, "value": _known(self.value), "low": low, "high": high, "examples": self.examples,
            "layers": layers, "heads": heads,
            "effects": [{"layer": layer, "head": head, **e.data()} for (layer, head), e in self.effects.items()],
            "cut": [list(place) for place in self.heads],
            "together": None if self.together is None else self.together.data(),
        }  # fmt: skip

    def svg(self) -> str:
        return draw_heads(self.data())


class Scissors:
    """A replica of a network, some of whose heads say nothing; which ones, changes with each `cut`."""

    def __init__(self, network: Network) -> None:
        self.network = replicate(network)
        self.size = network.config.width // network.config.heads
        self.heads: frozenset[Head] = frozenset()
        for layer, block in enumerate(self.network.order):
            block.attention.out.register_forward_pre_hook(self._silence(layer))  # type: ignore[union-attr]

    def cut(self, heads: Iterable[Head]) -> Network:
        self.heads = frozenset(heads)
        return self.network

    def _silence(self, layer: int) -> Any:
        def hook(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            here = [head for at, head in self.heads if at == layer]
            if not here:
                return given
            mixed = given[0].clone()  # (tokens, width): what the heads found, side by side
            for head in here:
                mixed[:, head * self.size : (head + 1) * self.size] = 0
            return (mixed, *given[1:])

        return hook


def ablate_examples(
    home: Subject, task: TrainedTask[Any, Any], examples: Sequence[Any], heads: Sequence[Any] | str | None = None,
    tell: Tell | None = None,
) -> HeadEffects:  # fmt: skip
    """The task's main score on labelled examples, without each head in turn, or without `heads` all at once."""
    config = home.checkpoint.config
    chosen = take_heads(heads, config.depth, config.heads)
    rows = task.rows(examples)
    whole = score_examples(home.predictor, task, examples, None, rows=rows)
    name, main = _main(whole)
    scissors = Scissors(home.checkpoint.network)

    def measure(places: Sequence[Head], done: int = 0) -> Effect:
        if tell is not None:
            tell("heads", done, 1 if chosen else config.depth * config.heads)
        predictor = Predictor(scissors.cut(places), home.predictor.device, home.predictor.budget)
        without = score_examples(predictor, task, examples, None, rows=rows)
        found = compare(without.measures[name], main, samples=SAMPLES)
        changed = _count_changed(whole, without)
        return Effect(found.difference, found.low, found.high, found.p, changed)

    low, high = interval(main)
    size = (config.depth, config.heads)
    effects = {} if chosen else {place: measure([place], done) for done, place in enumerate(np.ndindex(size))}
    together = measure(chosen) if chosen else None
    n = len(examples) if main.among is None else main.among
    return HeadEffects(name, main.point, (low, high), n, size, effects, chosen, together)


def ablate_answer(
    model: Able, job: str, *given: Any, target: str | int | None = None, at: int | str | None = None,
    heads: Sequence[Any] | str | None = None, tell: Tell | None = None,
) -> HeadEffects:  # fmt: skip
    """The raw score of one answer without each head in turn; `given`, `target`, `at` and `tell` as in `attribute`."""
    asked = ask(model, job, given, target=target, at=at)
    aim, config = asked.aims[0], asked.home.checkpoint.config
    chosen = take_heads(heads, config.depth, config.heads)
    predictor, scissors = asked.home.predictor, Scissors(asked.home.checkpoint.network)

    def measure(places: Sequence[Head], done: int = 0) -> float:
        if tell is not None:
            tell("heads", done, 1 if chosen else config.depth * config.heads)
        cut = Predictor(scissors.cut(places), predictor.device, predictor.budget)
        return float(aim.number(cut.run(aim.task, [aim.row])[0]))

    value, size = measure([]), (config.depth, config.heads)
    each = () if chosen else enumerate(np.ndindex(size))
    effects = {place: Effect(measure([place], done) - value) for done, place in each}
    together = Effect(measure(chosen) - value) if chosen else None
    what = f"{job}, {asked.explained}"
    return HeadEffects(what, value, None, 1, size, effects, chosen, together)


def _known(value: float | None) -> float | None:
    """A number that does not exist, as a correlation with what is the same everywhere, is None."""
    return None if value is None or np.isnan(value) else value


def take_heads(given: Any, layers: int, heads: int) -> tuple[Head, ...]:
    """Heads as people write them: "3.5,2.1", or pairs of layer and head, both counted from 0."""
    if given is None:
        return ()
    parts = given.split(",") if isinstance(given, str) else list(given) if is_iterable(given) else [given]
    found = [_take_head(part, layers, heads) for part in parts]
    if not found:
        raise BertsmithError("heads is empty; name at least one as layer.head, as in 3.5, or leave it out.")
    return tuple(dict.fromkeys(found))


def _take_head(given: Any, layers: int, heads: int) -> Head:
    parts = given.strip().split(".") if isinstance(given, str) else given
    try:
        layer, head = (int(part) for part in parts)
    except (TypeError, ValueError):
        raise BertsmithError(f"{given!r} names no head; write layer.head, both counted from 0, as in 3.5.") from None
    if not (0 <= layer < layers and 0 <= head < heads):
        raise BertsmithError(
            f"head {layer}.{head} is not there; the model has layers 0 to {layers - 1} of heads 0 to {heads - 1}."
        )
    return layer, head


def _main(scored: Scored) -> tuple[str, Measure]:
    name = scored.task.metric if scored.task.metric in scored.measures else next(iter(scored.measures))
    return name, scored.measures[name]


def _count_changed(whole: Scored, without: Scored) -> int | None:
    """How many examples have another answer now; None where answers are numbers, which all change a little."""
    gists = [[_gist(scored.task, answer) for answer in scored.answers] for scored in (whole, without)]
    if any(gist is None for gist in gists[0]):
        return None
    return sum(one != other for one, other in zip(*gists, strict=True))


def _gist(task: TrainedTask[Any, Any], answer: Any) -> Any:
    """What an answer says, without how sure it is; None of a number or a vector."""
    if getattr(answer, "tags", None) is not None:
        return answer.tags
    answers = getattr(answer, "answers", None)
    if not isinstance(answers, list) or any(set(each) == {"score"} for each in answers):
        return None
    if getattr(task, "several", False):  # all that are there count
        return {each["label"] for each in answers}
    return [{key: value for key, value in each.items() if key != "score"} for each in answers[:1]]
