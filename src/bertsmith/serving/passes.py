"""One pass of the encoder for rows of many requests: different heads, and different adapters on one base.

In: rows, each with its task and its network. Out: the scores of each, in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor, nn

from bertsmith.data.batch import Batch
from bertsmith.layers.linear import Linear
from bertsmith.layers.lowrank import LowRank
from bertsmith.models.adapters import share_network
from bertsmith.models.network import Network
from bertsmith.tasks.task import Row, Task


@dataclass(frozen=True)
class Wanted:
    """A row, who reads its scores, and with which network."""

    row: Row
    task: Task[Any, Any]
    network: Network

    @property
    def size(self) -> int:
        return len(self.row.ids)


class Heard:
    """A network that has read a batch already: a task that asks it for that batch gets what is there."""

    def __init__(self, network: Network, hidden: Tensor) -> None:
        self.network, self.hidden = network, hidden

    def __call__(self, batch: Batch) -> Tensor:
        return self.hidden

    def encode(self, batch: Batch) -> Tensor:
        return self.hidden

    def states(self, batch: Batch) -> Any:
        return self.network.states(batch)

    def places(self, batch: Batch, head: str, at: Tensor | None = None) -> None:
        """It has read every place: what others wanted of the batch is not known here."""

    def score(self, hidden: Tensor, batch: Batch, head: str, at: Tensor | None = None) -> Tensor:
        return self.network.score(hidden, batch, head, at)


class Spans(nn.Module):
    """What several adapters add to one linear layer: each to its own tokens of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[tuple[int, int, LowRank]] = []  # (first token, end, what is added there), of this batch

    def add_to(self, y: Tensor, x: Tensor) -> Tensor:
        for start, end, low in self.parts:
            low.add_to(y[start:end], x[start:end])
        return y


class Together:
    """Scores rows whose networks have one encoder in common; for one thread."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.lows: dict[int, dict[str, LowRank]] = {}  # of each network its adapter, by the layer's name
        self.mixed: dict[int, tuple[Network, dict[str, Spans]]] = {}  # of each encoder

    def score(self, wanted: Sequence[Wanted]) -> list[Tensor]:
        ranks: dict[Any, int] = {}
        for one in wanted:
            ranks.setdefault((id(one.network), one.task.alike), len(ranks))
        rank = [ranks[id(one.network), one.task.alike] for one in wanted]
        order = sorted(range(len(wanted)), key=lambda i: (rank[i], -wanted[i].size))
        groups = [[wanted[i] for i in group] for _, group in groupby(order, key=lambda i: rank[i])]
        # What a head reads of several layers and what others read of the last one are no part of each other.
        is_apart = len(groups) == 1 or wanted[0].network.is_alone
        parted = (scores for group in groups for scores in self._score(group, group[0].network))
        found = list(parted) if is_apart else self._score_groups(groups)
        back = dict(zip(order, found, strict=True))
        return [back[i] for i in range(len(wanted))]

    def _score(self, group: Sequence[Wanted], network: Any) -> list[Tensor]:
        return group[0].task.scores(network, self._lay(group), [one.row for one in group])

    def _lay(self, rows: Sequence[Wanted]) -> Batch:
        return Batch.of([one.row.ids for one in rows], [one.row.segments for one in rows], self.device)

    def _score_groups(self, groups: Sequence[Sequence[Wanted]]) -> list[Tensor]:
        """The encoder reads all of them at once, then each group's task its part."""
        ends = list(accumulate(sum(one.size for one in group) for group in groups))
        places = list(zip([0, *ends], ends, strict=False))
        networks = [group[0].network for group in groups]
        batch = self._lay([one for group in groups for one in group])
        hidden = self._choose(networks, places).encode(batch)
        found: list[Tensor] = []
        for group, network, (start, end) in zip(groups, networks, places, strict=True):
            found += self._score(group, Heard(network, hidden[start:end]))
        return found

    def _choose(self, networks: Sequence[Network], places: Sequence[tuple[int, int]]) -> Network:
        """Which network reads them: any, where none has an adapter or all have one; else their common encoder."""
        lows = [self._find_lows(network) for network in networks]
        if not any(lows) or len({id(network) for network in networks}) == 1:
            return networks[0]
        mixed, spans = self._mix(networks[0])
        for name, span in spans.items():
            span.parts = [(*place, low[name]) for place, low in zip(places, lows, strict=True) if name in low]
        for name, linear in _list_linears(mixed).items():
            linear.low = spans[name] if spans[name].parts else None  # type: ignore[assignment]
        return mixed

    def _mix(self, network: Network) -> tuple[Network, dict[str, Spans]]:
        """The encoder alone, in which each layer can have several adapters."""
        key = find_encoder(network)
        if key not in self.mixed:
            shell = share_network(network, {})
            self.mixed[key] = shell, {name: Spans() for name in _list_linears(shell)}
        return self.mixed[key]

    def _find_lows(self, network: Network) -> dict[str, LowRank]:
        key = id(network)
        if key not in self.lows:
            linears = _list_linears(network).items()
            self.lows[key] = {name: linear.low for name, linear in linears if linear.low is not None}
        return self.lows[key]


def find_encoder(network: Network) -> int:
    """The same for networks that stand on one encoder's memory; an encoder whose layers are mixed is read alone."""
    return id(network) if network.is_alone else id(network.embed.tokens.weight)


def _list_linears(network: Network) -> dict[str, Linear]:
    """Those of the encoder, by name."""
    return {
        name: module
        for name, module in network.named_modules()
        if isinstance(module, Linear) and not name.startswith("heads.")
    }
