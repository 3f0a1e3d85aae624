"""Passes for pretraining on a GPU: a copy of the network in half precision, each block compiled once for all layers.

Weights are kept in full precision and cast once a step, not at every use; states, too, stay in half precision, where
autocast keeps norms and residuals in full. Gradients come back into the full weights, which the optimizer moves; what
it does is the same in each step, and recorded. So is what a pass does, but for its sizes (replaying.py).
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from threading import Thread
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bertsmith.data.batch import Batch, reach_of
from bertsmith.layers.heads import Output
from bertsmith.layers.warming import warm
from bertsmith.models.network import Network
from bertsmith.training.devices import Ranks
from bertsmith.training.passes import Passes
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.recorded import End, side_stream
from bertsmith.training.replaying import MOST, Replay, Room, lay
from bertsmith.training.settings import Training
from bertsmith.training.study import Study, Work

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
EVEN = 64  # rows that the tables of a twin are a multiple of: products with an odd number of words take twice as long
NEVER = -1e4  # the bias of a row that is no word


def make_twin(network: Network, dtype: torch.dtype, even: int = EVEN) -> Network:
    """The same network with its numbers in another type, and gradients of its own.

    Its tables of words have rows behind the last word, up to a multiple of `even`; no score of theirs is ever high.
    """
    twin = copy.deepcopy(network).to(dtype)
    words = network.config.vocabulary
    for module in twin.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings == words:
            module.weight = _lengthen(module.weight, even, 0.0)
        if isinstance(module, Output) and len(module.bias) == words:
            module.bias = _lengthen(module.bias, even, NEVER)
            if module.weight is not None:
                module.weight = _lengthen(module.weight, even, 0.0)
    return twin


def _lengthen(given: Tensor, even: int, value: float) -> nn.Parameter:
    more = -len(given) % even
    if not more:
        return nn.Parameter(given.detach(), requires_grad=given.requires_grad)
    behind = given.new_full((more, *given.shape[1:]), value)
    return nn.Parameter(torch.cat((given.detach(), behind)), requires_grad=given.requires_grad)


class TwinPasses(Passes):
    """What `Passes` does, computed by the twin."""

    failures: ClassVar[list[str]] = []  # why passes could not be recorded, in this process

    def __init__(
        self, network: Network, study: Study, settings: Training, device: torch.device, precision: str, ranks: Ranks,
        compiles: bool = True, records: bool | None = None,
    ) -> None:  # fmt: skip
        """`records`: lay passes into rooms, and on a GPU record what is done in them; None: where it helps."""
        super().__init__(network, study, settings, device, "fp32", ranks)  # no autocast: the twin is in its type
        self.full = network
        self.network = make_twin(network, TYPES[precision])
        self.halves: list[Any] = list(self.network.parameters())
        self.homes: list[Tensor] = []  # the full gradients, kept from step to step
        self.passed = 0  # passes of this step
        self.sent: dict[int, tuple[Work, Any]] = {}  # what the next step reads
        self.warming: list[Thread] = []
        if compiles:
            for part in self.network.modules():
                if isinstance(part, Network):  # itself, and a generator within it
                    self._warm(part)
                    part.compile_blocks()
        self.compiles = compiles
        # What ends a step is hundreds of small kernels, which a host launches more slowly than a device makes them.
        self.recorded = device.type == "cuda" and ranks.count == 1
        # What is computed again in the backward pass draws the same numbers again, and would fetch them.
        self.records = self.recorded and compiles and not settings.recompute if records is None else records
        self.settles = 3 if self.records else 2
        self.unrecorded = False  # they could not be
        self.forget()

    def _warm(self, network: Network) -> None:
        """Triton compiles our kernels beside what comes next: importing torch's compiler alone takes seconds."""
        if self.device.type == "cuda" and isinstance(self.settings, Pretraining):
            lengths = [reach_of(phase.length) for phase in self.settings.phases()]
            self.warming += warm(network.config, lengths, self.device, network.dtype)

    def run(self, works: Sequence[Work], step: int) -> None:
        if self.network.training != self.full.training:  # telling every part takes a millisecond
            self.network.train(self.full.training)
        self.passed = 0
        swap = getattr(self.study, "read_with", None)  # what an objective reads with besides is in half precision too
        with nullcontext() if swap is None else swap(self.network):
            super().run(works, step)
        # The device is still busy with this step: what the next one reads is made and sent meanwhile. Without that it
        # would wait, as the many small kernels at a step's end leave the host no lead.
        prepare = getattr(self.study, "prepare", None)
        ahead = [] if prepare is None else prepare(step + 1, self.ranks.rank, self.ranks.count)
        self.sent = {id(work): (work, self._send(work)) for work in ahead}

    def _send(self, work: Work) -> Any:
        """What `_pass` reads: the pass in the room of a recording, or as it is."""
        if self.records and work.outline is not None:
            return lay(work, self.device)
        batch, given = work.on(self.device)
        return self._vary(batch), given

    def _vary(self, batch: Batch) -> Batch:
        return batch.varying() if self.compiles else batch

    def _clear(self) -> None:
        for value in self.now.values():
            value.zero_()
        for half in self.halves:
            half.grad = None
        if not self.homes:
            self.homes = [torch.zeros_like(full) for full in self.parameters]
        for full, home in zip(self.parameters, self.homes, strict=True):
            full.grad = home

    def _pass(self, work: Work, shares: Mapping[str, float]) -> None:
        known = self.sent.pop(id(work), None)  # which holds the work, so that its number is nobody else's
        sent = self._send(work) if known is None else known[1]
        if isinstance(sent, dict):
            self._replay(work, sent, shares)
        else:
            batch, given = sent
            self._descend(batch, given, shares, work)
            self._bring_home()
        self.passed += 1

    def _replay(self, work: Work, laid: Mapping[str, Tensor], shares: Mapping[str, float]) -> None:
        """The first pass of a kind is made as it is, as much of it is compiled; from then on what is done is recorded
        once for each room."""
        room = Room.of(work, not self.passed)
        is_new = room.kind not in self.kinds
        if is_new:
            self._forget_passes()  # their memory is needed now
            self.kinds.add(room.kind)
        if room not in self.replays:
            if len(self.replays) >= MOST:
                del self.replays[next(iter(self.replays))]
            self.replays[room] = Replay(laid, self.study.names)
        replay = self.replays[room]
        replay.fill(laid, shares)

        def make() -> None:
            batch, given, fixed_shares = replay.read(work, room)
            self._descend(self._vary(batch), given, fixed_shares, work)
            replay.without = self._bring_home()

        if self.device.type != "cuda" or self.unrecorded:
            return make()
        if is_new:
            return self._make_aside(make)
        if replay.graph is None:
            try:
                self._record(replay, make)
            except RuntimeError as error:  # it costs time, not the run
                self._give_up_recording(f"{type(error).__name__}: {error}")
                return make()
        assert replay.graph is not None
        replay.graph.replay()
        for place in replay.without if room.is_first and not self.fills else ():
            self.parameters[place].grad = None

    def _record(self, replay: Replay, make: Callable[[], None]) -> None:
        self._end_warming()
        if not any(other.graph is not None for other in self.replays.values()):
            torch.cuda.empty_cache()  # what the pass before held is asked for again, from another pool
        replay.record(make, self.pool)

    def _give_up_recording(self, why: str) -> None:
        self.failures.append(why)
        self.unrecorded = True
        self._forget_passes()
        for half in self.halves:
            half.grad = None
        told = why.splitlines()[0]
        warnings.warn(f"the passes of this run are not recorded, and small ones slower for it ({told})", stacklevel=2)

    def _make_aside(self, make: Callable[[], None]) -> None:
        """In the stream that records: what is made there first is not made in another one later."""
        side = side_stream(self.device)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            make()
        torch.cuda.current_stream().wait_stream(side)

    def _bring_home(self) -> list[int]:
        """Put the twin's gradients into the full ones, or add them there: many passes lose nothing to rounding. Gives
        the places of parameters that had none."""
        found, grads, without = [], [], []
        for place, (full, home, half) in enumerate(zip(self.parameters, self.homes, self.halves, strict=True)):
            if half.grad is None:
                without.append(place)
            if half.grad is None and not self.passed:
                full.grad = home.zero_() if self.fills else None
            elif half.grad is not None:
                found.append(home)
                grads.append(half.grad[: len(home)] if home.ndim else half.grad)
                half.grad = None
        if not self.passed:
            _copy(found, grads)
        elif found:
            torch._foreach_add_(found, [grad.to(home.dtype) for home, grad in zip(found, grads, strict=True)])
        return without

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        self._end_warming()
        if not self.recorded:
            return self._finish(optimizer)
        end = self.ends.setdefault(tuple(full.grad is not None for full in self.parameters), End(self.pool))
        end.make(lambda: self._finish(optimizer))

    def _end_warming(self) -> None:
        """While something is recorded nobody else may call the device."""
        while self.warming:
            self.warming.pop().join()

    def _finish(self, optimizer: torch.optim.Optimizer) -> None:
        super().finish(optimizer)
        _copy([half[: len(full)] for full, half in zip(self.parameters, self.halves, strict=True)], self.parameters)

    def forget(self) -> None:
        self.ends: dict[tuple[bool, ...], End] = {}  # by which parameters a step has gradients for
        self.kinds: set[tuple[str, int, int]] = set()  # of passes, that were made once
        self._forget_passes()

    def _forget_passes(self) -> None:
        self.replays: dict[Room, Replay] = {}
        self.pool = torch.cuda.graph_pool_handle() if self.recorded else None


@torch.no_grad()
def _copy(to: Sequence[Tensor], given: Sequence[Tensor]) -> None:
    if to:
        torch._foreach_copy_(list(to), list(given))
