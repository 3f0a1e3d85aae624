"""Passes recorded as CUDA graphs: one for each size of batch, one for the end of a step.

A graph replays the same kernels on the same memory, so a pass is laid into fixed rooms: tokens, rows and entries are
filled up to a few sizes. What fills them is a row of its own, which nobody looks at and which costs nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch, round_size
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks
from bertsmith.training.passes import Passes
from bertsmith.training.settings import Training
from bertsmith.training.study import Array, Study, Work

RING = 8  # pinned buffers that may be on their way to the device at once
UNRECORDED = 2  # steps until the optimizer has all its state


@dataclass(frozen=True)
class Room:
    tokens: int
    rows: int
    longest: int

    @classmethod
    def of(cls, work: Work) -> "Room":
        """Sizes in steps of an eighth to a quarter: little is wasted and few are recorded."""
        tokens, rows = round_size(len(work.ids) + 1, 128), round_size(len(work.lengths) + 1, 8)
        # The filler is a row too, and a kernel is told the length of the longest one.
        filler = tokens - len(work.ids)
        return cls(tokens, rows, max(64, 1 << (max(*work.lengths, filler) - 1).bit_length()))


class Recording:
    """The fixed tensors of one room, and the graph that reads them."""

    def __init__(self, room: Room, work: Work, device: torch.device) -> None:
        self.room = room
        self.sizes = {"ids": room.tokens, "segments": room.tokens, "positions": room.tokens, "owners": room.tokens}
        self.sizes["bounds"] = room.rows + 1
        self.floats: dict[str, Tensor] = {}
        for name, given in work.given.items():
            size = room.rows if given.each == "row" else min(room.tokens, int(given.share * room.tokens) + room.rows)
            if np.issubdtype(given.values.dtype, np.floating):
                self.floats[name] = torch.zeros((size, *given.values.shape[1:]), device=device)
            else:
                self.sizes[name] = size * int(np.prod(given.values.shape[1:], initial=1))
        self.flat = torch.zeros(sum(self.sizes.values()), dtype=torch.int64, device=device)
        self.parts = dict(zip(self.sizes, self.flat.split(list(self.sizes.values())), strict=True))
        self.shapes = {name: given.values.shape[1:] for name, given in work.given.items()}
        self.graph: torch.cuda.CUDAGraph | None = None

    def lay(self, work: Work, out: Array) -> None:
        """Write a pass into one array, as the fixed tensors hold it."""
        tokens, rows = len(work.ids), len(work.lengths)
        ends = np.cumsum(work.lengths)
        starts = ends - work.lengths
        bounds = np.full(self.room.rows + 1, tokens)
        bounds[0], bounds[1 : rows + 1], bounds[-1] = 0, ends, self.room.tokens
        fillers: dict[str, float] = {"ids": 0, "segments": 0, "positions": 0, "owners": self.room.rows - 1}
        values = {
            "ids": work.ids,
            "segments": work.segments,
            "positions": np.arange(tokens) - np.repeat(starts, work.lengths),
            "owners": np.repeat(np.arange(rows), work.lengths),
            "bounds": bounds,
        }
        for name, given in work.given.items():
            if name in self.sizes:
                values[name], fillers[name] = given.values.reshape(-1), given.filler
        place = 0
        for name, size in self.sizes.items():
            found = values[name]
            out[place : place + len(found)] = found
            out[place + len(found) : place + size] = fillers.get(name, 0)
            place += size

    def batch(self) -> Batch:
        parts = self.parts
        batch = Batch(parts["ids"], parts["segments"], parts["positions"], (0,) * self.room.rows)
        bounds = parts["bounds"]
        counts = (bounds[1:] - bounds[:-1]).clamp(min=1)[:, None]  # a row without tokens must not divide by nothing
        vars(batch).update(bounds=bounds.int(), longest=self.room.longest, owners=parts["owners"], counts=counts)
        return batch

    def given(self) -> dict[str, Tensor]:
        found = {}
        for name, shape in self.shapes.items():
            found[name] = self.floats[name] if name in self.floats else self.parts[name].view(-1, *shape)
        return found


@cache
def side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all runs: the matrix library keeps a workspace for each stream it ever saw."""
    return torch.cuda.Stream(device)


class End:
    """The end of a step: made as it is until the optimizer has all its state, then recorded once and replayed."""

    def __init__(self, pool: Any = None) -> None:
        self.pool, self.times = pool, 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def make(self, work: Callable[[], None]) -> None:
        if self.graph is None:
            self.times += 1
            if self.times <= UNRECORDED:
                return work()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, pool=self.pool):
                work()
        self.graph.replay()


class RecordedPasses(Passes):
    recorded = True

    def __init__(
        self, network: Network, study: Study, settings: Training, device: torch.device, precision: str, ranks: Ranks
    ) -> None:
        super().__init__(network, study, settings, device, precision, ranks)
        self.recordings: dict[tuple[str, Room], Recording] = {}  # by whose losses, and the size
        self.pool = torch.cuda.graph_pool_handle()
        self.end = End(self.pool)
        self.shares = {name: torch.zeros((), device=device) for name in study.names}
        self.ring: list[tuple[Tensor, torch.cuda.Event]] = []
        self.turn = 0
        self.side = side_stream(device)

    def run(self, works: Sequence[Work], step: int) -> None:
        if self.end.graph is None:
            self._make_grads()
        super().run(works, step)

    def _make_grads(self) -> None:
        """Gradients at fixed places, for those that learn."""
        for parameter in self.parameters:
            if not parameter.requires_grad:
                parameter.grad = None
            elif parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)

    def _clear(self) -> None:
        if self.end.graph is None:  # else the recorded end of the last step did it
            self._wipe()

    def _wipe(self) -> None:
        torch._foreach_zero_([p.grad for p in self.parameters if p.grad is not None] + list(self.now.values()))

    def _pass(self, work: Work, shares: Mapping[str, float]) -> None:
        for name, share in shares.items():
            self.shares[name].fill_(share)
        room = Room.of(work)
        recording = self.recordings.get((work.part, room))
        if recording is None:
            recording = self.recordings[work.part, room] = Recording(room, work, self.device)
        self._send(recording, work)
        if recording.graph is not None:
            recording.graph.replay()
            return
        # The first pass of a size is made as it is, on a side stream as recording wants it, and recorded for the next.
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self._descend(recording.batch(), recording.given(), self.shares, work)
        torch.cuda.current_stream().wait_stream(self.side)
        recording.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recording.graph, pool=self.pool):
            self._descend(recording.batch(), recording.given(), self.shares, work)

    def _send(self, recording: Recording, work: Work) -> None:
        """One copy from pinned memory, which the host may fill again when that copy is through."""
        size = recording.flat.numel()
        if len(self.ring) < RING:
            self.ring.append((torch.empty(size, dtype=torch.int64).pin_memory(), torch.cuda.Event()))
        self.turn = (self.turn + 1) % len(self.ring)
        pinned, sent = self.ring[self.turn]
        sent.synchronize()
        if pinned.numel() < size:
            pinned = torch.empty(size, dtype=torch.int64).pin_memory()
            self.ring[self.turn] = (pinned, sent)
        recording.lay(work, pinned.numpy()[:size])
        recording.flat.copy_(pinned[:size], non_blocking=True)
        sent.record()
        for name, room in recording.floats.items():
            given = work.given[name]
            whole = np.full(tuple(room.shape), given.filler, dtype=np.float32)
            whole[: len(given.values)] = given.values
            room.copy_(torch.from_numpy(whole))

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        finish = super().finish

        def work() -> None:
            finish(optimizer)
            self._wipe()

        self.end.make(work)

    def forget(self) -> None:
        """The recordings hold memory, and kernels for those that learned until now."""
        self.recordings.clear()
        for parameter in self.parameters:
            parameter.grad = None
        self.pool = torch.cuda.graph_pool_handle()
        self.end = End(self.pool)
