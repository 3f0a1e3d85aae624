"""What distances add to scores, in a graph: MPNet's biases, and DeBERTa's comparisons of words with distances.

Kinds of distances are constants here, up to the longest row: worked out in the graph, a logarithm that is rounded
otherwise would give another kind.
"""

from typing import Any

import torch

from bertsmith.export.graph import Graph, Weights, to_array
from bertsmith.layers.disentangled import PARTS, distance_rows
from bertsmith.layers.relative import bucket_steps


class DistanceNodes:
    def __init__(self, network: Any, graph: Graph, weights: Weights, length: str, places: str) -> None:
        """`length` is a number of the graph, `places` are those of a row."""
        self.network, self.config, self.graph, self.weights = network, network.config, graph, weights
        self.length, self.places = length, places
        self.compares = self.config.relative == "disentangled"
        self.divisor = self.config.width // self.config.heads * (PARTS if self.compares else 1)

    def add_biases(self, seen: str) -> str:
        """What each head adds for how far two places are apart, (heads, length, length), beside what is unseen."""
        if self.config.relative != "bias":
            return seen
        g, most = self.graph, self.config.limit
        line = self.network.relative.weight.t()[:, bucket_steps(most)]
        rows, columns = (g.op("Unsqueeze", self.places, g.constant([axis])) for axis in (1, 0))
        ahead = g.op("Add", g.op("Sub", columns, rows), g.constant(most - 1))
        return g.op("Add", seen, g.op("Gather", g.keep("distances", to_array(line)), ahead, axis=1))

    def compare(self, scores: str, q: str, k: str, qkv: Any, name: str, firsts: bool) -> str:
        """Scores of words with words, and what their distance adds; `firsts`: of the first words alone."""
        if not self.compares:
            return scores
        g, most = self.graph, self.config.limit
        begins, ends = g.constant(most), g.constant(most - 1)  # of the rows for this length in those for the longest
        start = begins if firsts else g.op("Sub", begins, self.length)
        start = g.op("Sub", start, g.constant(1)) if firsts else start
        keys = self._take(qkv, name, "k", start, g.op("Add", ends, self.length))
        forth = g.op("MatMul", q, g.op("Transpose", keys, perm=[0, 2, 1]))
        queries = self._take(qkv, name, "q", g.op("Sub", begins, self.length), g.op("Add", ends, self.length))
        back = self._slide(g.op("MatMul", k, g.op("Transpose", queries, perm=[0, 2, 1])))
        back = g.op("Transpose", back, perm=[0, 1, 3, 2])
        if firsts:
            back = g.op("Slice", back, *map(g.constant, ([0], [1], [2])))
        else:
            forth = self._slide(forth)
        return g.op("Add", scores, g.op("Add", forth, back))

    def _take(self, qkv: Any, name: str, part: str, start: str, end: str) -> str:
        """Queries or keys of distances, (heads, distances, size): keys from the longest one back on, queries the other
        way round, as both then slide alike."""
        g, c, relative = self.graph, self.config, self.network.relative
        line = distance_rows(c.buckets, c.positions, c.limit)
        line = line if part == "k" else line.flip(0)
        with torch.no_grad():
            table = g.keep("distances", to_array(relative.norm(relative.weight)))
        number = "qkv".index(part)
        matrix = qkv.dense_weight().split(c.width)[number]
        bias = None if qkv.bias is None else qkv.bias.split(c.width)[number]
        factor = self.divisor**-0.5 if part == "q" else 1.0
        made = self.weights.multiply(table, f"{name}.{part}", matrix, bias, factor)
        made = g.op("Transpose", g.op("Reshape", made, g.constant([-1, c.heads, c.width // c.heads])), perm=[1, 0, 2])
        near = g.op("Slice", g.constant(line.numpy()), *(g.op("Unsqueeze", x, g.constant([0])) for x in (start, end)))
        return g.op("Gather", made, near, axis=1)

    def _slide(self, x: str) -> str:
        """Of a value for each distance that for each other place: (…, length, 2 * length - 1) -> (…, length, length).

        The first row begins at place length - 1, each next one a place before: they lie one place less than a row apart
        (Transformer-XL, arXiv 1901.02860, appendix B).
        """
        g, length = self.graph, self.length
        just = g.op("Unsqueeze", length, g.constant([0]))
        apart = g.op("Max", g.op("Sub", g.op("Mul", just, g.constant(2)), g.constant(2)), g.constant([1]))
        start = g.op("Sub", just, g.constant(1))
        flat = g.op("Reshape", x, g.constant([0, 0, -1]))
        flat = g.op("Slice", flat, start, g.op("Add", start, g.op("Mul", just, apart)), g.constant([2]))
        rows = g.op("Reshape", flat, g.op("Concat", g.constant([0, 0]), just, apart, axis=0))
        return g.op("Slice", rows, g.constant([0]), just, g.constant([3]))

    def convolve(self, entry: str) -> str:
        """entry (batch, length, width), and so is what comes out"""
        g, layer = self.graph, self.network.convolution
        near = layer.weight.shape[2] // 2
        kept = [g.keep(f"convolution{end}", to_array(w)) for end, w in (("", layer.weight), (".bias", layer.bias))]
        y = g.op("Conv", g.op("Transpose", entry, perm=[0, 2, 1]), *kept, pads=[near, near])
        return g.op("Transpose", y, perm=[0, 2, 1])
