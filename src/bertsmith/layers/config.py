"""The one flat description of an encoder, and of a head on top of it.

A family file fills a `Config` from somebody's `config.json`; the parts in this folder read the fields they need, each
field in one place. Nothing here imports torch, so that presets can be listed at once.
"""

from dataclasses import dataclass
from typing import Literal

from bertsmith.errors import BertsmithError


@dataclass(frozen=True)
class Config:
    family: str
    vocabulary: int
    width: int = 768
    depth: int = 12
    heads: int = 12
    inner: int = 3072
    embed_width: int = 0  # 0: the same as `width`; else the tables are this wide and projected up (ALBERT, ELECTRA)
    distinct: int = 0  # blocks with weights of their own; 0: all of them; ALBERT applies one block `depth` times
    segments: int = 2  # 0: the family knows no segments
    position: Literal["learned", "rotary", "none"] = "learned"
    positions: int = 512  # rows of the position table, or the longest input trained on
    first_position: int = 0  # RoBERTa starts to count behind its padding id
    relative: Literal["", "bias", "disentangled"] = ""  # what distances add to scores of attention (layers/relative.py)
    buckets: int = 0  # on each side, by which far distances share a vector; 0: each up to `positions` has its own
    kernel: int = 0  # tokens that a convolution beside the first layer looks at (DeBERTa-v2-xlarge); 0: there is none
    kernel_activation: str = "tanh"
    pre_norm: bool = False
    norm_bias: bool = True
    bias: bool = True  # in the projections of a block
    activation: str = "gelu"
    gated: bool = False  # the feed-forward's first half is a gate on its second (GeGLU)
    window: int = 0  # a local layer sees this many tokens to each side; 0: all layers are global
    global_every: int = 1
    theta: float = 10_000.0
    local_theta: float = 10_000.0
    eps: float = 1e-12
    tied: bool = True  # the masked-token head shares its matrix with the word table
    dropout: float = 0.1  # of the embedding and of what each half of a block adds; in training only, as the next two
    attention_dropout: float = 0.1
    head_dropout: float = 0.1

    def __post_init__(self) -> None:
        for field in ("vocabulary", "width", "depth", "heads", "inner", "positions"):
            if getattr(self, field) < 1:
                raise BertsmithError(f"the config's {field} is {getattr(self, field)}; it must be at least 1.")
        if self.width % self.heads:
            raise BertsmithError(f"the config's width {self.width} does not divide into {self.heads} attention heads.")
        if self.position == "rotary" and self.width // self.heads % 2:  # it turns pairs of numbers
            each = self.width // self.heads
            told = f"the config's width {self.width} divided by its heads, {self.heads}, is {each}"
            raise BertsmithError(f"{told}; rotary positions need an even number, so change one of them.")
        if self.kernel and (self.kernel % 2 == 0 or self.depth < 2):
            told = f"the config has a convolution over {self.kernel} tokens and a depth of {self.depth}"
            raise BertsmithError(f"{told}; the first must be odd, the second at least 2.")
        for field in ("dropout", "attention_dropout", "head_dropout"):
            if not 0 <= getattr(self, field) < 1:
                raise BertsmithError(f"the config's {field} is {getattr(self, field)}; it must be from 0 to below 1.")
        if not self.embed_width:
            object.__setattr__(self, "embed_width", self.width)
        if not self.distinct:
            object.__setattr__(self, "distinct", self.depth)

    @property
    def limit(self) -> int:
        """The longest row this encoder can read, special tokens included."""
        return self.positions - self.first_position

    def is_local(self, layer: int) -> bool:
        return bool(self.window and layer % self.global_every)


Drops = Literal["", "dropout", "head_dropout"]


@dataclass(frozen=True)
class HeadShape:
    """What a head reads and computes: `reads` -> [dense -> activation -> [norm]] -> [out]."""

    reads: Literal["tokens", "first", "mean"]
    outputs: int = 0  # 0: no output layer (a bare pooler)
    dense: int = 0  # width of the dense layer in between; 0: none
    activation: str = "tanh"
    norm: bool = False
    bias: bool = True  # of the dense layer
    tied: bool = False  # the output matrix is the word table
    drops: Drops = ""  # which share of the config training drops of what the output layer reads
