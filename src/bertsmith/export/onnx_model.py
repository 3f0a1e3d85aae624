"""An encoder with one head as an ONNX graph: padded ids and their mask in, the head's scores or vectors out.

In: a `Model` with one head, or none. Out: a graph whose inputs and outputs are called as `transformers` calls them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from bertsmith.errors import BertsmithError
from bertsmith.export.graph import Graph, SmallWeights, Weights, to_array
from bertsmith.export.onnx_distances import DistanceNodes
from bertsmith.layers.config import Config, HeadShape
from bertsmith.layers.linear import Linear
from bertsmith.layers.pooling import Pooling
from bertsmith.models.graph import HIDDEN, VECTOR, WANTED

if TYPE_CHECKING:
    from bertsmith.model import Model

Turns = tuple[str, str]  # cosines and sines
UNSEEN = -1e9  # added to the score of a place that is not looked at
TINY = 1e-12  # the length by which no vector is divided
DENSE = {"Identity": "", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu", "Sigmoid": "sigmoid"}


def build_graph(model: "Model", store: str) -> Any:
    """`store` is fp32 or int8."""
    checkpoint = model.checkpoint
    heads: Any = checkpoint.network.heads
    answering = [name for name in checkpoint.heads if heads[name].shape.outputs]  # a bare pooler answers nothing
    if len(answering) > 1:
        raise BertsmithError(
            f"{model.folder} has the heads {', '.join(answering)}, and a graph answers for one; name it (--head)."
        )
    name = next(iter(answering), None)
    builder = _Builder(checkpoint.network, store, name or "")
    if name is None:
        builder.give_vectors(builder.encode(), model.sentence.pooling)
    else:
        builder.give_scores(name)
    return builder.graph.make(f"{checkpoint.config.family}-{name or 'embed'}", {"store": store})


class _Builder:
    """Tokens lie in rows of one table, (batch × length, width), but for attention."""

    def __init__(self, network: Any, store: str, head: str) -> None:
        by_choices = head == "choose"
        self.network, self.config = network, network.config
        self.graph = g = Graph()
        self.plain = Weights(g)
        self.weights = SmallWeights(g) if store == "int8" else self.plain
        self.axes = ["batch", *(["choices"] if by_choices else []), "length"]
        self.ids = g.take("input_ids", self.axes)
        mask = g.take("attention_mask", self.axes)
        segments = g.take("token_type_ids", self.axes) if self.config.segments > 1 else ""
        self.shape = g.op("Shape", self.ids)  # as it was given
        if by_choices:  # each is a row for itself
            rows = g.op("Concat", g.constant([-1]), g.op("Gather", self.shape, g.constant([2])), axis=0)
            self.ids, mask, segments = (g.op("Reshape", x, rows) if x else "" for x in (self.ids, mask, segments))
        self.segments, self.mask = segments, g.op("Cast", mask, to=TensorProto.FLOAT)
        self.length = g.op("Gather", g.op("Shape", self.ids), g.constant(1))  # a number
        self.places = g.op("Range", g.constant(0), self.length, g.constant(1))
        self.distances = DistanceNodes(network, g, self.weights, self.length, self.places)
        self.wanted = self._want() if head == "mask" else ""  # where all words of a vocabulary get a score

    def _want(self) -> str:
        """The rows of the table, padding too, whose scores are wanted: all, unless others are given."""
        g = self.graph
        given = g.take_or(WANTED, ["rows", "places"], np.ones((1, 1), np.int64))
        flat = g.op("Reshape", g.op("Expand", given, self.shape), g.constant([-1]))
        return g.op("Squeeze", g.op("NonZero", flat), g.constant([0]))

    def encode(self, reads: str = "") -> str:
        """The last hidden states, (batch × length, width); or those that are read alone, (batch | wanted, width).

        `reads` is "first" of the first tokens, "wanted" of the wanted ones: the last block computes no others.
        """
        x = entry = self._embed()
        seen = self._see()
        turns: dict[float, Turns] = {}
        c: Config = self.config
        for layer, block in enumerate(self.network.order):
            number = layer * c.distinct // c.depth
            is_local = c.is_local(layer)
            theta = c.local_theta if is_local else c.theta
            if c.position == "rotary" and theta not in turns:
                turns[theta] = self._turns(theta)
            last = reads if layer == c.depth - 1 else ""
            x = self._block(x, block, f"block_{number}", seen[is_local], turns.get(theta), last)
            if c.kernel and not layer:
                x = self._convolve(x, entry)
        return x if self.network.final_norm is None else self._norm(x, self.network.final_norm, "final_norm")

    def _convolve(self, x: str, entry: str) -> str:
        g, layer = self.graph, self.network.convolution
        mask = g.op("Unsqueeze", self.mask, g.constant([2]))  # places that are none are 0 here, as elsewhere
        y = self.distances.convolve(g.op("Mul", self._by_rows(entry), mask))
        y = self._act(self._flat(y, self.config.width), layer.activation)
        return self._norm(g.op("Add", x, y), layer.norm, "convolution.norm")

    def give_scores(self, name: str) -> None:
        g, head = self.graph, self.network.heads[name]
        shape: HeadShape = head.shape
        x = self.encode("wanted" if self.wanted else shape.reads if shape.reads == "first" else "")
        x = self._pool(x, "mean") if shape.reads == "mean" else x
        if head.dense is not None:
            x = self._act(self._linear(x, head.dense, "head.dense"), shape.activation)
        if head.norm is not None:
            x = self._norm(x, head.norm, "head.norm")
        if head.out is not None and head.out.weight is None:
            x = self.weights.multiply(x, "words", self.network.embed.tokens.weight, head.out.bias)
        elif head.out is not None:  # few numbers, on which every answer hangs
            x = self.plain.multiply(x, "head.out", head.out.weight, head.out.bias)
        if shape.reads != "tokens":
            if "choices" in self.axes:
                x, axes = g.op("Reshape", x, g.op("Slice", self.shape, *map(g.constant, ([0], [2])))), self.axes[:2]
                return g.give(x, "logits", axes)
            return g.give(x, "logits", ["batch", shape.outputs])
        x = g.op("Reshape", x, g.op("Concat", self._find_shape(), g.constant([shape.outputs]), axis=0))
        if name == "span":
            for part, each in zip(g.ops("Split", 2, x, axis=2, num_outputs=2), ("start", "end"), strict=True):
                g.give(g.op("Squeeze", part, g.constant([2])), f"{each}_logits", self.axes)
        else:
            g.give(x, "logits", [*self.axes, shape.outputs])

    def _find_shape(self) -> str:
        """Of the scores of tokens, without their last axis; where only some are wanted, those of one row."""
        if not self.wanted:
            return self.shape
        g, count = self.graph, self.graph.op("Shape", self.wanted)
        is_all = g.op("Equal", count, g.op("ReduceProd", self.shape))
        return g.op("Where", is_all, self.shape, g.op("Concat", g.constant([1]), count, axis=0))

    def give_vectors(self, hidden: str, pooling: Pooling) -> None:
        """The last hidden states, and what `embed` makes of them."""
        g, width = self.graph, self.config.width
        g.give(self._by_rows(hidden), HIDDEN, [*self.axes, width])
        parts = [self._pool(hidden, mode) for mode in pooling.modes]
        x = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=-1)
        width *= len(parts)
        for number, (shape, layer) in enumerate(zip(pooling.shapes, pooling.dense, strict=True)):
            dense: Any = layer
            x = self._act(self.plain.multiply(x, f"dense_{number}", dense.weight, dense.bias), DENSE[shape.activation])
            width = shape.outputs
        if pooling.normalize:
            size = g.op("ReduceL2", x, g.constant([-1]), keepdims=1)
            x = g.op("Div", x, g.op("Max", size, g.constant(TINY)))
        g.give(x, VECTOR, ["batch", width])

    def _embed(self) -> str:
        g, embed = self.graph, self.network.embed
        x = self.weights.look_up("words", embed.tokens.weight, self.ids)
        if embed.segments is not None:
            kinds = self.segments or g.constant([0])
            x = g.op("Add", x, self.plain.look_up("segments", embed.segments.weight, kinds))
        if embed.positions is not None:
            places = g.op("Add", self.places, g.constant(embed.first_position))
            x = g.op("Add", x, self.weights.look_up("positions", embed.positions.weight, places))
        x = self._flat(self._norm(x, embed.norm, "embed.norm"), self.config.embed_width)
        return x if embed.project is None else self._linear(x, embed.project, "embed.project")

    def _see(self) -> dict[bool, str]:
        """What is added to the scores of attention in global and in local layers, (batch, 1, 1 | length, length)."""
        g = self.graph
        unseen = g.op("Mul", g.op("Sub", g.constant(1.0), self.mask), g.constant(UNSEEN))
        found = {False: self.distances.add_biases(g.op("Unsqueeze", unseen, g.constant([1, 2])))}
        if self.config.window:
            rows, columns = (g.op("Unsqueeze", self.places, g.constant([axis])) for axis in (1, 0))
            apart = g.op("Abs", g.op("Sub", rows, columns))
            is_near = g.op("LessOrEqual", apart, g.constant(self.config.window))
            found[True] = g.op("Where", is_near, found[False], g.constant(UNSEEN))
        return found

    def _turns(self, theta: float) -> Turns:
        """Cosines and sines of rotary positions, (length, size / 2)."""
        g, size = self.graph, self.config.width // self.config.heads
        steps = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
        speeds = (np.float32(1) / np.float32(theta) ** steps).astype(np.float32)
        places = g.op("Unsqueeze", g.op("Cast", self.places, to=TensorProto.FLOAT), g.constant([1]))
        angles = g.op("Mul", places, g.constant(speeds))
        return g.op("Cos", angles), g.op("Sin", angles)

    def _block(self, x: str, block: Any, name: str, seen: str, turns: Turns | None, reads: str) -> str:
        """All states, or those alone that are read."""
        g, first, second = self.graph, f"{name}.attention", f"{name}.feed"
        is_pre = self.config.pre_norm
        read = self._norm(x, block.attention_norm, f"{first}.norm") if is_pre else x
        x = self._pick(x, reads)
        x = g.op("Add", self._attend(read, block.attention, first, seen, turns, reads), x)
        x = x if is_pre else self._norm(x, block.attention_norm, f"{first}.norm")
        read = self._norm(x, block.feed_norm, f"{second}.norm") if is_pre else x
        x = g.op("Add", self._feed(read, block.feed, second), x)
        return x if is_pre else self._norm(x, block.feed_norm, f"{second}.norm")

    def _attend(self, x: str, attention: Any, name: str, seen: str, turns: Turns | None, reads: str) -> str:
        g, heads, width = self.graph, self.config.heads, self.config.width
        size, firsts = width // heads, reads == "first"
        matrices = attention.qkv.dense_weight().split(width)
        biases = (None,) * 3 if attention.qkv.bias is None else attention.qkv.bias.split(width)
        rows = g.op("Concat", g.constant([-1]), self._just(self.length), g.constant([heads, size]), axis=0)
        found = []
        for part, matrix, bias in zip("qkv", matrices, biases, strict=True):
            alone = firsts and part == "q"
            read, shape = (self._pick(x, reads), g.constant([-1, 1, heads, size])) if alone else (x, rows)
            factor = self.distances.divisor**-0.5 if part == "q" else 1.0
            each = self.weights.multiply(read, f"{name}.{part}", matrix, bias, factor)
            each = g.op("Transpose", g.op("Reshape", each, shape), perm=[0, 2, 1, 3])  # (batch, heads, length, size)
            is_still = part == "v" or alone  # rotary positions begin at the first place
            found.append(each if is_still or turns is None else self._turn(each, turns))
        q, k, v = found
        if firsts:
            seen = g.op("Slice", seen, *map(g.constant, ([0], [1], [2])))
        scores = g.op("Add", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), seen)
        scores = self.distances.compare(scores, q, k, attention.qkv, name, firsts)
        mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        mixed = self._flat(mixed, width)
        return self._linear(mixed if firsts else self._pick(mixed, reads), attention.out, f"{name}.out")

    def _pick(self, x: str, reads: str) -> str:
        """Of the table's rows those that are read."""
        if reads == "wanted":
            return self.graph.op("Gather", x, self.wanted)
        return self._pool(x, "cls") if reads == "first" else x

    def _turn(self, x: str, turns: Turns) -> str:
        g, (cos, sin) = self.graph, turns
        left, right = g.ops("Split", 2, x, axis=-1, num_outputs=2)
        first = g.op("Sub", g.op("Mul", left, cos), g.op("Mul", right, sin))
        second = g.op("Add", g.op("Mul", right, cos), g.op("Mul", left, sin))
        return g.op("Concat", first, second, axis=-1)

    def _feed(self, x: str, feed: Any, name: str) -> str:
        g = self.graph
        if not feed.gated:
            x = self._act(self._linear(x, feed.up, f"{name}.up"), feed.activation)
            return self._linear(x, feed.down, f"{name}.down")
        inner = self.config.inner
        matrices = feed.up.dense_weight().split(inner)
        biases = (None,) * 2 if feed.up.bias is None else feed.up.bias.split(inner)
        gate, value = (
            self.weights.multiply(x, f"{name}.{part}", matrix, bias)
            for part, matrix, bias in zip(("gate", "value"), matrices, biases, strict=True)
        )
        return self._linear(g.op("Mul", self._act(gate, feed.activation), value), feed.down, f"{name}.down")

    def _linear(self, x: str, linear: Linear, name: str) -> str:
        return self.weights.multiply(x, name, linear.dense_weight(), linear.bias)

    def _norm(self, x: str, norm: Any, name: str) -> str:
        if not hasattr(norm, "eps"):  # the first norm of some families is none
            return x
        g = self.graph
        given = [g.keep(name, to_array(norm.weight))]
        if norm.bias is not None:
            given.append(g.keep(f"{name}.bias", to_array(norm.bias)))
        return g.op("LayerNormalization", x, *given, axis=-1, epsilon=norm.eps)

    def _act(self, x: str, kind: str) -> str:
        g = self.graph
        if kind in ("gelu", "gelu_tanh"):
            return g.op("Gelu", x, approximate="tanh" if kind == "gelu_tanh" else "none")
        if kind == "silu":
            return g.op("Mul", x, g.op("Sigmoid", x))
        return g.op({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[kind], x) if kind else x

    def _pool(self, hidden: str, mode: str) -> str:
        """(batch × length, width) -> (batch, width), as layers/pooling.py has it."""
        g, x = self.graph, self._by_rows(hidden)
        if mode == "cls":
            return g.op("Gather", x, g.constant(0), axis=1)
        mask = g.op("Unsqueeze", self.mask, g.constant([2]))
        if mode == "max":
            unseen = g.op("Mul", g.op("Sub", g.constant(1.0), mask), g.constant(UNSEEN))
            return g.op("ReduceMax", g.op("Add", x, unseen), g.constant([1]), keepdims=0)
        counts = g.op("ReduceSum", mask, g.constant([1]), keepdims=0)  # (batch, 1)
        if mode == "lasttoken":
            last = g.op("Sub", g.op("Cast", counts, to=TensorProto.INT64), g.constant(1))
            at = g.op("Unsqueeze", last, g.constant([2]))
            wide = g.op("Expand", at, g.constant([1, 1, self.config.width]))
            return g.op("Squeeze", g.op("GatherElements", x, wide, axis=1), g.constant([1]))
        shares = mask
        if mode == "weightedmean":
            order = g.op("Cast", g.op("Add", self.places, g.constant(1)), to=TensorProto.FLOAT)
            shares = g.op("Mul", mask, g.op("Unsqueeze", order, g.constant([0, 2])))
            counts = g.op("ReduceSum", shares, g.constant([1]), keepdims=0)
        total = g.op("ReduceSum", g.op("Mul", x, shares), g.constant([1]), keepdims=0)
        return g.op("Div", total, g.op("Sqrt", counts) if mode == "mean_sqrt_len_tokens" else counts)

    def _flat(self, x: str, width: int) -> str:
        return self.graph.op("Reshape", x, self.graph.constant([-1, width]))

    def _by_rows(self, x: str) -> str:
        g = self.graph
        return g.op("Reshape", x, g.op("Concat", g.op("Shape", self.ids), g.constant([self.config.width]), axis=0))

    def _just(self, number: str) -> str:
        """A number as a list of one."""
        return self.graph.op("Unsqueeze", number, self.graph.constant([0]))
