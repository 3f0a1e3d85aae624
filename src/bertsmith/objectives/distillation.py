"""Distillation (DistilBERT, arXiv 1910.01108, section 2): a student learns what a teacher says, and the words too.

Three losses: the divergence of the student's distribution over the vocabulary from the teacher's, both softened by a
temperature; masked tokens; and the angle between the last hidden states. The teacher reads what the student reads.
"""

import copy
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.network import Network
from bertsmith.objectives.costs import mark_varying, sum_chunks
from bertsmith.objectives.lookup import find_places, round_room
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.objective import Asked, Objective, Outline, Summed

IN_CACHE = 256  # places that a CPU compares at once: 4,096 of them in 0.7 of the time and half of the memory


class Distillation(Objective):
    name = "distillation"
    heads = ("mask",)
    alters = True
    names: tuple[str, ...] = ("distilled", "masked", "cosine")

    def __init__(
        self, masking: MaskedTokens, teacher: Network, *, temperature: float = 2.0, soft: float = 5.0,
        hard: float = 2.0, cosine: float = 1.0, over: Literal["tokens", "places"] = "tokens",
    ) -> None:  # fmt: skip
        """`soft`, `hard` and `cosine` are the losses' weights, by default those of the first release; one whose weight
        is 0 is not computed. `over` says whether distributions are compared at all ordinary tokens, as there, or at
        the hidden places alone, which costs a seventh."""
        check_teacher(teacher, masking)
        if temperature <= 0:
            raise BertsmithError(f"temperature is {temperature}; it must be above 0.")
        self.masking, self.teacher = masking, Teacher(teacher)
        self.temperature, self.soft, self.hard, self.cosine, self.over = temperature, soft, hard, cosine, over
        self.names = tuple(name for name, weight in self._weights().items() if weight)

    def expect(self, tokens: int, rows: int, done: float) -> dict[str, float]:
        places = self.masking.expect(tokens, rows, done)["masked"]
        counts = {"distilled": tokens if self.over == "tokens" else places, "masked": places, "cosine": tokens}
        return {name: counts[name] for name in self.names}

    def weights(self, done: float) -> dict[str, float]:
        return {name: weight for name, weight in self._weights().items() if weight}

    def _weights(self) -> dict[str, float]:
        return {"distilled": self.soft, "masked": self.hard, "cosine": self.cosine}

    def outline(self, tokens: int, rows: int, done: float) -> Outline | None:
        found = self.masking.outline(tokens, rows, done)
        return found and (self.name, *found[1:], round_room(tokens))

    def count_hidden(self, tokens: int, done: float) -> int:
        return self.masking.count_hidden(tokens, done)

    def ask(self, batch: Batch, given: Mapping[str, Tensor], tokens: int, done: float) -> Asked:
        asked = self.masking.ask(batch, given, tokens, done)
        ordinary = ~self.masking.lookup.on(batch.ids.device).special[batch.ids]
        if self.over == "places":
            compared, counts = asked.given["at"], asked.given["gold"] >= 0
        else:
            compared = find_places(ordinary, round_room(tokens) if "asked" in given else tokens)
            counts = ordinary[compared]
        return Asked(asked.batch, {**asked.given, "ordinary": ordinary, "compared": compared, "counts": counts})

    def places(self, network: Network, batch: Batch, given: Mapping[str, Tensor]) -> Tensor | None:
        return given["at"] if self.over == "places" and not self.cosine else None

    def losses(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        with torch.no_grad():
            read = batch.watching(False).wanting(self.places(network, batch, given))
            taught = self.teacher.like(network, hidden)(read)
        found: Summed = {}
        if self.soft:
            found["distilled"] = self._compare(network, hidden, taught, batch, given)
        if self.hard:
            found.update(self.masking.losses(network, hidden, batch, given))
        if self.cosine:
            found["cosine"] = _angles(hidden, taught, given["ordinary"])
        return found

    def measures(self, network: Network, hidden: Tensor, batch: Batch, given: Mapping[str, Tensor]) -> Summed:
        return self.masking.measures(network, hidden, batch, given)

    def _compare(
        self, network: Network, hidden: Tensor, taught: Tensor, batch: Batch, given: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The divergence, times the squared temperature so that gradients keep their size (arXiv 1503.02531)."""

        teacher, words = self.teacher.like(network, hidden), self.masking.vocabulary.size
        run = network.quick(_diverge)

        def cost(hidden: Tensor, at: Tensor, counts: Tensor) -> Tensor:
            if run is not _diverge:
                mark_varying(at, counts)
            return run(network, teacher, hidden, taught, batch, at, counts, self.temperature, words)

        compared, counts = given["compared"], given["counts"]
        chunk = min(self.masking.chunk, IN_CACHE) if hidden.device.type == "cpu" else self.masking.chunk
        return sum_chunks(cost, hidden, (compared, counts), chunk), counts.sum()


def _diverge(
    network: Network, teacher: Network, hidden: Tensor, taught: Tensor, batch: Batch, at: Tensor, counts: Tensor,
    temperature: float, words: int,
) -> Tensor:  # fmt: skip
    said = network.score(hidden, batch, "mask", at)[:, :words]  # a table may have rows for none
    ours = F.log_softmax(said.float() / temperature, dim=-1)
    with torch.no_grad():
        theirs = F.log_softmax(teacher.score(taught, batch, "mask", at).float() / temperature, dim=-1)
    apart = F.kl_div(ours, theirs, log_target=True, reduction="none").sum(dim=-1)
    return torch.where(counts, apart, 0.0).sum() * temperature**2


def _angles(hidden: Tensor, taught: Tensor, ordinary: Tensor) -> tuple[Tensor, Tensor]:
    """One minus the cosine between the student's and the teacher's states."""
    if hidden.shape != taught.shape:
        raise BertsmithError(
            f"the teacher's states are {taught.shape[-1]} wide and the student's {hidden.shape[-1]}, so their angle "
            f"means nothing; set cosine to 0, or distil attention relations, which may differ in width."
        )
    apart = 1 - F.cosine_similarity(hidden.float(), taught.float(), dim=-1)
    return torch.where(ordinary, apart, 0.0).sum(), ordinary.sum()


def check_teacher(teacher: Network, masking: MaskedTokens) -> None:
    if "mask" not in teacher.heads:
        raise BertsmithError("the teacher has no head for masked tokens (`mask`), so it has nothing to say of words.")
    if teacher.config.vocabulary != masking.vocabulary.size:
        raise BertsmithError(
            f"the teacher knows {teacher.config.vocabulary:,} tokens and the student {masking.vocabulary.size:,}; both "
            f"must have the same tokenizer."
        )


class Teacher:
    """A network that neither learns nor drops anything, where the student is and in its type."""

    def __init__(self, network: Network) -> None:
        self.network = network.eval().requires_grad_(False)
        self._halves: dict[torch.dtype, Network] = {}

    def like(self, student: Network, hidden: Tensor) -> Network:
        """Moved or made once, when the student's first states are there."""
        if self.network.embed.tokens.weight.device != hidden.device:
            self.network.to(hidden.device)
        dtype = student.embed.tokens.weight.dtype
        if dtype == torch.float32:
            return self.network
        if dtype not in self._halves:
            half = self._halves[dtype] = copy.deepcopy(self.network).to(dtype)
            if student.compiled is not None:
                half.compile_blocks()
        return self._halves[dtype]
