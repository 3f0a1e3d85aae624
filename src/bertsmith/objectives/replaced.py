"""Replaced tokens (ELECTRA, arXiv 2003.10555): a small generator fills masks, the network says which tokens it made up.

Both learn together: the generator from what stood there, the network from which tokens differ from the text. Nothing
flows back through the generator's choice. Some of the places may stay hidden, for the network to fill itself: so it
learns both in one pass, and goes on filling masks.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.heads import Head
from bertsmith.models.network import Network
from bertsmith.objectives.costs import COMPILED, count_right, mark_varying, token_costs
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.objective import Asked, Objective, Outline, Summed


class ReplacedTokens(Objective):
    name = "replaced"
    heads: tuple[str, ...] = ("replaced",)
    alters = True
    names: tuple[str, ...] = ("generator", "replaced")

    def __init__(
        self, masking: MaskedTokens, generator: Network, weight: float = 50.0, stay_hidden: float = 0.0,
        judge: Head | None = None,
    ) -> None:  # fmt: skip
        """`masking` says what the generator must fill; that of the first release is
        `MaskedTokens(vocabulary, masked=0.85, random=0.0)`. `share_tables` makes the generator read with the network's
        own tables. Of the places, `stay_hidden` is the share that the network fills itself. `judge` tells replaced
        tokens where the network has no head for it.
        """
        if "mask" not in generator.heads:
            raise BertsmithError("the generator has no head for masked tokens (`mask`).")
        if not 0 <= stay_hidden < 1:
            raise BertsmithError(f"stay_hidden is {stay_hidden}; it must be from 0 to below 1.")
        self.masking, self.generator, self.weight, self.stay_hidden = masking, generator, weight, stay_hidden
        self.judge = judge
        if judge is not None:
            self.heads = ()
        if stay_hidden:
            self.heads, self.names = (*self.heads, "mask"), (*self.names, "masked")

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        places = self.masking.expect(tokens, rows, done)["masked"]
        own = round(self.stay_hidden * places)
        return {"generator": places, "replaced": tokens - own, **({"masked": own} if self.stay_hidden else {})}

    def weights(self, done: float) -> dict[str, float]:
        return {"replaced": self.weight}

    def outline(self, tokens: int, rows: int, done: float) -> Outline | None:
        found = self.masking.outline(tokens, rows, done)
        return found and (self.name, *found[1:])

    def count_hidden(self, tokens: int, done: float) -> int:
        return self.masking.count_hidden(tokens, done)

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        asked = self.masking.ask(batch, given, tokens, done)
        at, gold = asked.given["at"], asked.given["gold"]
        states = self.masking.read(self.generator, Asked(asked.batch.watching(False), asked.given))
        cost, count = token_costs(
            self.generator, states, asked.batch, at, gold, self.masking.z_loss, self.masking.chunk
        )
        made = self._sample(states, asked.batch, at)
        ids = batch.ids.scatter(0, at, torch.where(gold >= 0, made, batch.ids[at]))
        judged = ~self.masking.lookup.on(ids.device).special[batch.ids]
        more = {"generator_cost": cost, "generator_count": count}
        if self.stay_hidden:
            stay = self._stay(len(at), at.device)
            own = at[stay]
            ids = ids.scatter(0, own, asked.batch.ids[own])
            judged = judged.index_fill(0, own, False)
            more |= {"own": own, "own_gold": gold[stay]}
        more |= {"replaced": (ids != batch.ids) & judged, "judged": judged}
        if not torch.is_grad_enabled():  # on held-out rows one wants to know how often it is right
            more["generator_right"], _ = count_right(self.generator, states, asked.batch, at, gold, self.masking.chunk)
        return Asked(batch.reading(ids), {**asked.given, **more})

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        scores = self._judge(network, hidden, batch).float()
        cost = F.binary_cross_entropy_with_logits(scores, given["replaced"].float(), reduction="none")
        judged, masking = given["judged"], self.masking
        found: Summed = {
            "generator": (given["generator_cost"], given["generator_count"]),
            "replaced": (torch.where(judged, cost, 0.0).sum(), judged.sum()),
        }
        if "own" in given:
            own, gold = given["own"], given["own_gold"]
            found["masked"] = token_costs(network, hidden, batch, own, gold, masking.z_loss, masking.chunk)
        return found

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        """`replaced_found` is over the replaced tokens alone: most are not, so accuracy is high without any insight.
        `replaced_auc` is the share of pairs of a replaced token and one that is not, in which the first is suspected
        more: a half without any insight, and no matter where the bar is."""
        with torch.no_grad():
            scores = self._judge(network, hidden, batch).float()
        judged, replaced = given["judged"], given["replaced"] & given["judged"]
        said = scores > 0
        found = {
            "replaced_accuracy": ((said == replaced) & judged, judged),
            "replaced_found": (said & replaced, replaced),
            "replaced_auc": (_rank(scores, judged & ~replaced) * replaced, replaced),
        }
        measured: Summed = {name: (right.sum(), of.sum()) for name, (right, of) in found.items()}
        if "generator_right" in given:
            measured["generator_accuracy"] = given["generator_right"], given["generator_count"]
        if "own" in given:
            right = count_right(network, hidden, batch, given["own"], given["own_gold"], self.masking.chunk)
            measured["masked_accuracy"] = right
        return measured

    def parts(self) -> dict[str, nn.Module]:
        return {"generator": self.generator, **({} if self.judge is None else {"judge": self.judge})}

    def use_parts(self, parts: Mapping[str, nn.Module]) -> None:
        generator, judge = parts["generator"], parts.get("judge")
        assert isinstance(generator, Network) and (judge is None or isinstance(judge, Head))
        self.generator, self.judge = generator, judge

    def _judge(self, network: Network, hidden: Tensor, batch: Batch) -> Tensor:
        """(tokens,): above 0 where it says that a token was replaced."""
        if self.judge is None:
            return network.score(hidden, batch, "replaced")[:, 0]
        scores: Tensor = self.judge(hidden, batch, network.embed.tokens.weight)
        return scores[:, 0]

    def _stay(self, places: int, device: torch.device) -> Tensor:
        """Which of so many places stay hidden: evenly among them, as they were drawn at random already."""
        count = round(self.stay_hidden * places)
        return torch.arange(count, device=device) * places // max(1, count)

    @torch.no_grad()
    def _sample(self, states: Tensor, batch: Batch, at: Tensor) -> Tensor:
        """A token for each place by the generator's own probabilities."""
        draw = self.generator.quick(_draw)
        is_compiled, made = draw is not _draw, []
        for some in at.split(self.masking.chunk * (COMPILED if is_compiled else 1)):
            if is_compiled:
                mark_varying(some)
            made.append(draw(self.generator, states, batch, some))
        return torch.cat(made)


def _draw(network: Network, hidden: Tensor, batch: Batch, at: Tensor) -> Tensor:
    """The best score once Gumbel noise is added; compiled, neither scores nor noise are held in full precision."""
    scores = network.score(hidden, batch, "mask", at).float()
    return (scores - torch.rand_like(scores).log().neg().log()).argmax(dim=-1)


def _rank(scores: Tensor, among: Tensor) -> Tensor:
    """For each score the share of those of `among` that are below it; equal ones count half."""
    sorted_ = torch.where(among, scores, torch.inf).sort().values
    below, not_above = (torch.searchsorted(sorted_, scores, right=right) for right in (False, True))
    return (below + not_above) / 2 / among.sum().clamp_min(1)


def share_tables(network: Network, generator: Network) -> bool:
    """Let the generator read with the network's tables and their norm, as ELECTRA does; False where shapes differ."""
    ours, theirs = network.embed, generator.embed
    shapes = [
        [None if part is None else part.weight.shape for part in (e.tokens, e.positions, e.segments, e.norm)]
        for e in (ours, theirs)
    ]
    if shapes[0] != shapes[1]:
        return False
    theirs.tokens, theirs.norm = ours.tokens, ours.norm
    theirs.positions, theirs.segments = ours.positions, ours.segments
    return True
