"""Attention relations (MiniLM, arXiv 2012.15828): how queries, keys and values of a layer relate among themselves.

A student's last layer learns the teacher's softmax of q·q, k·k and v·v between the tokens of a row. Both are cut into
the same number of relation heads, so that neither widths nor attention heads nor depths need be equal. Heads need not
be trained before or with it: what is learned is the encoder.
"""

from collections.abc import Mapping
from itertools import islice

import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.objectives.distillation import Teacher
from bertsmith.objectives.lookup import Lookup
from bertsmith.objectives.objective import Asked, Objective, Summed, Vocabulary

_KINDS = ("queries", "keys", "values")


class AttentionRelations(Objective):
    name = "relations"
    names = _KINDS

    def __init__(
        self, vocabulary: Vocabulary, teacher: Network, student: Network, heads: int = 0, layer: int = 0
    ) -> None:
        """`heads` 0: as many relation heads as the teacher has attention heads. `layer` counts the teacher's from 1;
        0: its last (for a large teacher the paper takes one below the last)."""
        layer = layer or teacher.config.depth
        if not 1 <= layer <= teacher.config.depth:
            raise BertsmithError(f"layer is {layer}, but the teacher has {teacher.config.depth} layers.")
        self.relation_heads = heads or teacher.config.heads
        for who, network in (("teacher", teacher), ("student", student)):
            if network.config.width % self.relation_heads:
                size = network.config.width
                raise BertsmithError(
                    f"the {who}'s width {size} does not divide into {self.relation_heads} relation heads."
                )
        if teacher.config.vocabulary != vocabulary.size:
            raise BertsmithError("the teacher and the student must have the same tokenizer; their vocabularies differ.")
        self.lookup, self.teacher, self.layer = Lookup(vocabulary), Teacher(teacher), layer

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        return dict.fromkeys(_KINDS, tokens)

    def outline(self, tokens: int, rows: int, done: float) -> None:
        return None  # relations are of padded rows, whose lengths the host knows

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        # Marked here, as another objective may hide some of them before the network reads.
        return Asked(batch.watching(True), {**given, "related": ~self.lookup.on(batch.ids.device).special[batch.ids]})

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        assert batch.watched, "the student has not read this batch"
        learned = batch.watched[network.config.depth - 1]
        taught = read_layer(self.teacher.like(network, hidden), batch, self.layer)
        related, found = given["related"], {}
        for name, ours, theirs in zip(_KINDS, learned.unbind(1), taught.unbind(1), strict=True):
            with torch.no_grad():
                wanted = self._relate(theirs, batch)
            apart = F.kl_div(self._relate(ours, batch), wanted, log_target=True, reduction="none").sum(dim=-1)
            apart = apart.mean(dim=1)[batch.owners, batch.positions]  # over the heads; (tokens,)
            found[name] = torch.where(related, apart, 0.0).sum(), related.sum()
        return found

    def _relate(self, x: Tensor, batch: Batch) -> Tensor:
        """(tokens, heads, size) -> the log of what each token has to do with each of its row, (rows, heads, longest²).

        The heads are put together and cut anew; where positions turn queries and keys, they are not turned here.
        """
        x = batch.pad(x.flatten(1).float(), 0.0).unflatten(-1, (self.relation_heads, -1)).transpose(1, 2)
        scores = x @ x.transpose(-1, -2) / x.shape[-1] ** 0.5  # (rows, heads, longest, longest)
        # Not minus infinity: where both sides have it, their difference is no number.
        return scores.masked_fill(~batch.mask[:, None, None, :], -1e9).log_softmax(dim=-1)


def read_layer(network: Network, batch: Batch, layer: int) -> Tensor:
    """The queries, keys and values of a layer (counted from 1), (tokens, 3, heads, size); those above are not run."""
    batch = batch.watching(True)
    with torch.no_grad():
        next(islice(network.states(batch), layer, None))
    assert batch.watched is not None
    return batch.watched[-1]
