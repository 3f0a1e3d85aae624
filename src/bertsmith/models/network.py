"""The encoder and the heads on it: a batch of ids in, hidden states or a head's scores out."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from bertsmith.data.batch import Batch
from bertsmith.layers.block import Block, norm
from bertsmith.layers.config import Config, HeadShape
from bertsmith.layers.convolution import Convolution
from bertsmith.layers.disentangled import Distances
from bertsmith.layers.embedding import Embedding
from bertsmith.layers.heads import Head
from bertsmith.layers.linear import Linear
from bertsmith.layers.mixing import FeatureShape, LayerMix
from bertsmith.layers.onednn import can_pack, round_rows, rounds
from bertsmith.layers.position import Turns, turn_tables, turns
from bertsmith.layers.relative import Bias, Offsets

_RELATIVE: dict[str, type[nn.Module]] = {"bias": Bias, "disentangled": Distances}
Function = TypeVar("Function", bound=Callable[..., Any])
GRAPHS = 64  # of one function, at most, in a process


@cache
def _compile(function: Function) -> Function:
    return torch.compile(function, dynamic=False)  # type: ignore[return-value]  # what varies is marked


def _norm(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    found: Tensor = norm(x)
    return found


class Network(nn.Module):
    def __init__(self, config: Config, heads: dict[str, HeadShape], features: FeatureShape | None = None) -> None:
        """`features` are what the heads read in place of the last hidden states."""
        super().__init__()
        self.config, self.features = config, features
        self.embed = Embedding(config)
        self.relative = _RELATIVE[config.relative](config) if config.relative else None
        self.convolution = Convolution(config) if config.kernel else None
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.distinct))
        # A plain list beside the registered one: looking a block up there costs as much as a small layer.
        self.order = [self.blocks[layer * config.distinct // config.depth] for layer in range(config.depth)]
        self.final_norm = norm(config) if config.pre_norm else None
        self.mix = None if features is None else LayerMix(config, features)
        reads = 0 if self.mix is None else self.mix.width
        self.heads = nn.ModuleDict({name: Head(config, shape, reads) for name, shape in heads.items()})
        self.packed = False
        self.compiled: Callable[..., Tensor] | None = None  # a block's forward pass, compiled once for all of them
        self.recompute = False  # whether the backward pass computes a block again instead of keeping its insides
        self.names = [name for name, _ in self.named_parameters()]  # kept: packed matrices are parameters no longer
        self.parameter_count = sum(p.numel() for p in self.parameters())

    @property
    def dtype(self) -> torch.dtype:
        return self.embed.tokens.weight.dtype

    @property
    def is_alone(self) -> bool:
        """Whether no other network can share a pass with it."""
        return self.mix is not None

    def forward(self, batch: Batch) -> Tensor:
        """What the heads read, (tokens, width): the last hidden states, or features of several layers."""
        if self.mix is None:
            return self.encode(batch)
        every = batch.wanting(None)  # features of several layers may look at neighbours
        found: Tensor = self.mix(self.mix.collect(self.states(every)), every)
        return found

    def encode(self, batch: Batch) -> Tensor:
        """The last hidden states, (tokens, width)."""
        for x in self.states(batch):
            hidden = x
        return hidden

    def states(self, batch: Batch) -> Iterator[Tensor]:
        """The hidden states after the embedding and after each layer in turn, (tokens, width) each.

        Of a batch that wants some places alone, the last states of all others are 0: behind the last layer's attention
        nothing is computed for them.
        """
        x = self.quick(Embedding.join)(self.embed, *self.embed.look_up(batch))
        tokens = len(x)
        if batch.shift is not None:
            x = x + (batch.shift * x.detach().norm(dim=-1, keepdim=True)).to(x.dtype)
        if self.packed or (self.compiled is None and rounds(x)):
            x = F.pad(x, (0, 0, 0, round_rows(tokens) - tokens))
        entry = None if self.convolution is None else x[:tokens]
        near, far = self._places(batch)
        wanted = batch.wanted
        for layer, block in enumerate(self.order):
            yield x[:tokens]
            turned = near if near is not far and self.config.is_local(layer) else far
            # Whoever is watched fills a list, whose length would be another graph in each layer.
            compiled = self.compiled if batch.watched is None else None
            at = wanted if layer == len(self.order) - 1 else None
            # A last layer for few places is not compiled: a graph of its own would cost more seconds than it saves.
            run = block if compiled is None or at is not None else partial(compiled, block)
            if self.recompute and x.requires_grad:
                x = checkpoint(run, x, batch, turned, at, use_reentrant=False)
            else:
                x = run(x, batch, turned, at)
            if self.convolution is not None and not layer:
                x = self.convolution(x, entry, batch)
        if wanted is not None:
            x = x[: len(wanted)]
            last = x if self.final_norm is None else self.final_norm(x)
            yield last.new_zeros(tokens, last.shape[1]).index_copy_(0, wanted, last)
        else:
            yield x[:tokens] if self.final_norm is None else self.quick(_norm)(self.final_norm, x[:tokens])

    def score(self, hidden: Tensor, batch: Batch, head: str, at: Tensor | None = None) -> Tensor:
        """A head's scores for each token or row; `at` asks for some tokens only."""
        scores: Tensor = self.heads[head](hidden, batch, self.embed.tokens.weight, at)
        return scores

    def places(self, batch: Batch, head: str, at: Tensor | None = None) -> Tensor | None:
        """Where a head that is asked for the tokens in `at` reads the last states, each place once; None: everywhere.

        A GPU's passes are recorded with filler among the tokens, which names a place twice.
        """
        if self.mix is not None or batch.ids.device.type != "cpu":
            return None
        if at is None:
            shape: HeadShape = self.heads[head].shape  # type: ignore[assignment]
            return batch.firsts if shape.reads == "first" else None
        return at if bool((at[1:] > at[:-1]).all()) else None

    def _places(self, batch: Batch) -> tuple[Turns | Offsets | None, Turns | Offsets | None]:
        """What tells the local and the global layers where tokens stand."""
        if self.relative is None:
            return self._turns(batch)
        offsets = self.relative(batch)
        return offsets, offsets

    def _turns(self, batch: Batch) -> tuple[Turns | None, Turns | None]:
        """Rotary tables for the local and the global layers."""
        c = self.config
        if c.position != "rotary":
            return None, None
        size, make, positions = c.width // c.heads, turns, batch.positions
        if batch.reach is not None:
            make, positions = turn_tables, torch.arange(len(batch.reach), device=positions.device)
        far = make(positions, c.theta, size)
        near = make(positions, c.local_theta, size) if c.window else far
        if batch.reach is not None and self.dtype != torch.float32:
            # From -1 to 1 half precision has 11 bits, 3 more than bfloat16; each program of a kernel reads the tables.
            near, far = ((cos.half(), sin.half()) for cos, sin in (near, far))
        if self.compiled is not None and batch.reach is not None:
            for table in (*near, *far):
                torch._dynamo.mark_dynamic(table, 0)
        return near, far

    def quick(self, function: Function) -> Function:
        """A function of the network, compiled where its blocks are."""
        return function if self.compiled is None else _compile(function)

    def compile_blocks(self) -> None:
        """Compile the forward and backward pass of a block: one graph, whose weights are what differs in each layer."""
        # All networks of a process share the graphs of this one function, and behind the 8th it would no longer be
        # compiled: a ModernBERT alone has 3, reading onward 3 more.
        config: Any = torch._dynamo.config
        config.recompile_limit = max(config.recompile_limit, GRAPHS)
        self.compiled = torch.compile(Block.forward, dynamic=False)

    def pack(self) -> None:
        """Lay the matrices out for fast inference where this machine can; afterwards they no longer train."""
        weight = self.embed.tokens.weight
        if can_pack(weight.device, weight.dtype):
            for module in self.modules():
                if isinstance(module, Linear) and module.packed is None:
                    module.pack()
            self.packed = True

    def tensor(self, name: str) -> Tensor:
        """One parameter by name, packed or not."""
        module, _, leaf = name.rpartition(".")
        owner = self.get_submodule(module)
        if isinstance(owner, Linear) and leaf == "weight":
            return owner.dense_weight()
        found: Tensor = getattr(owner, leaf)
        return found
