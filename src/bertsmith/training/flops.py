"""What a token costs in matrix products, forward and backward: what must be computed, not what a run computes twice.

The blocks, attention over whole rows, and words where they are asked for; of a generator the same, of a teacher the
forward pass. What is asked and how long rows are may change on the way: it is the mean over the run.
"""

from collections.abc import Sequence
from statistics import fmean

from torch import nn

from bertsmith.data.rows_plan import Phase
from bertsmith.models.network import Network
from bertsmith.objectives.combining import Stages, Sum
from bertsmith.objectives.distillation import Distillation
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.objective import Objective
from bertsmith.objectives.pairs import SentencePair
from bertsmith.objectives.relations import AttentionRelations
from bertsmith.objectives.replaced import ReplacedTokens

SAMPLED = 40  # moments of the run
TOKENS = 2**16  # of a pass that is asked about
WORDS = ("masked", "next_token", "distilled")  # the losses for which all words are scored, at as many places
BOTH = 3  # the backward pass costs two forward ones


def count_flops(objective: Objective, network: Network, phases: Sequence[Phase]) -> float:
    """Of a token of this network; its generator or teacher is known by the objective."""
    whole = sum(phase.share for phase in phases)
    moments = [(number + 0.5) / SAMPLED for number in range(SAMPLED)]
    return fmean(_count_at(objective, network, _length_at(phases, whole * done), done) for done in moments)


def _length_at(phases: Sequence[Phase], done: float) -> int:
    for phase in phases:
        done -= phase.share
        if done < 0:
            return phase.length
    return phases[-1].length


def _count_at(objective: Objective, network: Network, length: int, done: float) -> float:
    asked = objective.expect(TOKENS, TOKENS // length, done)
    places = max((asked.get(name, 0.0) for name in WORDS), default=0.0) / TOKENS
    several = _spread(objective, done)
    # Where few of the last states are read, the last block leaves the others out.
    last = places if all(_is_sparse(one) for one in several) else 1.0
    cost = BOTH * (_read(network, length, last) + _score(network, places))
    for one in several:
        if isinstance(one, ReplacedTokens):
            judge = one.judge or network.heads["replaced"]
            cost += BOTH * (_read(one.generator, length) + _score(one.generator, asked["generator"] / TOKENS))
            cost += BOTH * 2 * _size(judge) * asked["replaced"] / TOKENS
        if isinstance(one, Distillation | AttentionRelations):
            teacher = one.teacher.network
            compared = asked.get("distilled", 0.0) / TOKENS
            cost += _read(teacher, length, last if isinstance(one, Distillation) else 1.0) + _score(teacher, compared)
    return cost


def _is_sparse(one: Objective) -> bool:
    if isinstance(one, Distillation):
        return one.over == "places" and not one.cosine
    return isinstance(one, MaskedTokens | SentencePair)


def _spread(objective: Objective, done: float) -> list[Objective]:
    """Those that are asked at this moment, one by one."""
    if isinstance(objective, Stages):
        return _spread(objective.now(done), done)
    if isinstance(objective, Sum):
        return [inner for each in objective.objectives for inner in _spread(each, done)]
    return [objective]


def _read(network: Network, length: int, last: float = 1.0) -> float:
    """The forward pass of a token to the last state; of the last block's end only this share is wanted."""
    config = network.config
    blocks = sum(_size(block) for block in network.order)
    behind = sum(_size(network.order[-1].get_submodule(name)) for name in ("attention.out", "feed"))
    entry = 0 if network.embed.project is None else _size(network.embed.project)
    # Scores and sums; words with distances, too, and those with words, where these are compared.
    products = 8.0 if config.relative == "disentangled" else 4.0
    return 2.0 * (entry + blocks - (1 - last) * behind) + products * config.depth * config.width * length


def _score(network: Network, share: float) -> float:
    """The scores of all words, for this share of the tokens."""
    config = network.config
    head = 0 if "mask" not in network.heads else _size(network.heads["mask"], config.vocabulary)
    return 2.0 * share * (head + config.vocabulary * config.embed_width)


def _size(module: nn.Module, words: int = 0) -> int:
    """Of its matrices; a table of words is not counted."""
    return sum(p.numel() for p in module.parameters() if p.ndim == 2 and len(p) != words)
