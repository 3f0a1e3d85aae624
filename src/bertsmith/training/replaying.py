"""A pass of pretraining as a recording: a host launches hundreds of kernels more slowly than a GPU makes small ones.

In: a pass as the host made it. Out: the same kernels on the same memory, replayed. What differs from pass to pass is
laid into fixed rooms: behind the last row come rows without tokens, and more places are asked for than there are words
hidden, of which nothing is counted. How many there are is a number on the device.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch, reach_of, room_of_rows, send
from bertsmith.objectives.objective import Outline
from bertsmith.training.recorded import side_stream
from bertsmith.training.study import Array, Work

MOST = 48  # recordings that are kept: where fewer and fewer words are hidden, the first ones never come again


@dataclass(frozen=True)
class Room:
    """What a recording is made for."""

    outline: Outline
    tokens: int
    rows: int
    reach: int  # the length of the longest row, rounded
    is_first: bool  # of its step: the next ones add to its gradients

    @classmethod
    def of(cls, work: Work, is_first: bool) -> "Room":
        assert work.outline is not None
        rows = room_of_rows(work.lengths)
        return cls(work.outline, len(work.ids), rows, reach_of(max(work.lengths)), is_first)

    @property
    def kind(self) -> tuple[str, int, int]:
        """Passes of one kind run the same code: what is compiled for one is compiled for all."""
        return self.outline[0], self.tokens, self.reach


def lay(work: Work, device: torch.device) -> dict[str, Tensor]:
    """A pass on the device, filled up to the sizes of its room."""
    tokens, rows = len(work.ids), room_of_rows(work.lengths)
    bounds = np.full(rows + 1, tokens, np.int32)
    bounds[0] = 0
    np.cumsum(work.lengths, out=bounds[1 : len(work.lengths) + 1])
    found: dict[str, Array] = {"ids": work.ids, "segments": work.segments, "bounds": bounds}
    for name, given in work.given.items():
        size = rows if given.each == "row" else len(given.values)  # of which the outline speaks
        found[name] = np.full((size, *given.values.shape[1:]), given.filler, given.values.dtype)
        found[name][: len(given.values)] = given.values
    found["asked"] = np.array([work.facts.get("asked", 0)], np.int64)
    return {name: send(values, device) for name, values in found.items()}


class Replay:
    """The fixed tensors of a room, and the graph that reads them."""

    def __init__(self, laid: Mapping[str, Tensor], names: Iterable[str]) -> None:
        self.fixed = {name: tensor.clone() for name, tensor in laid.items()}
        self.names = list(names)
        self.shares = torch.zeros(len(self.names), device=laid["ids"].device)
        self.without: list[int] = []  # parameters that a pass has no gradient for
        self.graph: torch.cuda.CUDAGraph | None = None

    def fill(self, laid: Mapping[str, Tensor], shares: Mapping[str, float]) -> None:
        torch._foreach_copy_(list(self.fixed.values()), [laid[name] for name in self.fixed])
        self.shares.copy_(send(np.array([shares[name] for name in self.names], np.float32), self.shares.device))

    def read(self, work: Work, room: Room) -> tuple[Batch, dict[str, Tensor], dict[str, Tensor]]:
        """The batch, what is given beside it, and the share of each loss. The lengths of the rows are those of `work`:
        only what runs on a CPU, where nothing is recorded, may look at them."""
        ids, bounds = self.fixed["ids"], self.fixed["bounds"]
        place = torch.arange(room.tokens, device=ids.device)
        owners = torch.searchsorted(bounds[1:].long(), place, right=True)
        lengths = (*work.lengths, *(0,) * (room.rows - len(work.lengths)))
        batch = Batch(ids, self.fixed["segments"], place - bounds[owners], lengths)
        counts = (bounds[1:] - bounds[:-1]).clamp(min=1).long()[:, None]  # a row without tokens divides by nothing
        firsts = bounds[:-1].long().clamp(max=room.tokens - 1)
        vars(batch).update(bounds=bounds, owners=owners, counts=counts, firsts=firsts)
        given = {name: tensor for name, tensor in self.fixed.items() if name not in ("ids", "segments", "bounds")}
        return batch, given, dict(zip(self.names, self.shares.unbind(), strict=True))

    def record(self, work: Callable[[], None], pool: Any) -> None:
        """Nothing is computed yet. Not by torch.cuda.graph, which asks Python to clear up and gives back all memory."""
        side = side_stream(self.shares.device)
        torch.cuda.synchronize(self.shares.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(side):
            # Relaxed: a kernel that is loaded meanwhile, or a checkpoint that is written, does no harm.
            graph.capture_begin(pool=pool, capture_error_mode="relaxed")
            try:
                work()
            finally:
                graph.capture_end()
        self.graph = graph
