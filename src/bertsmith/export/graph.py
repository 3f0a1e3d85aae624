"""An ONNX graph that is written by hand, node by node: small, the same on every machine, ready in milliseconds.

In: operations by name and arrays. Out: a `ModelProto`. Only operators of the standard, so that every runtime reads it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

from bertsmith.models.compact import LEVELS, quantize_rows

Array = np.ndarray
OPSET, FORM = 20, 10  # the first with GELU, and the version of files that its readers know
CENTRE = 128  # of the unsigned numbers that stand for what a token brings
SMALLEST = 1e-12  # a scale of numbers that are all 0


class Graph:
    """Names of values are handed about; an array that is given twice is kept once."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._small: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def op(self, kind: str, *given: str, **settings: Any) -> str:
        return self.ops(kind, 1, *given, **settings)[0]

    def ops(self, kind: str, results: int, *given: str, **settings: Any) -> list[str]:
        """An operation with several results."""
        self._count += 1
        made = [f"{kind}_{self._count}" + (f"_{part}" if part else "") for part in range(results)]
        self.nodes.append(helper.make_node(kind, list(given), made, name=f"{kind}_{self._count}", **settings))
        return made

    def constant(self, value: Any, kind: Any = None) -> str:
        """A small array; numbers are int64, or float32 where they have a fraction."""
        array = np.asarray(value)
        array = array.astype(kind or (np.float32 if array.dtype.kind == "f" else np.int64))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._small:
            self._small[key] = f"constant_{len(self._small)}"
            self.arrays[self._small[key]] = array
        return self._small[key]

    def keep(self, name: str, array: Array) -> str:
        """A weight by its name; one of that name is there already where several layers share it."""
        self.arrays.setdefault(name, np.ascontiguousarray(array))
        return name

    def take(self, name: str, axes: Sequence[str]) -> str:
        """An input of whole numbers."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, list(axes)))
        return name

    def take_or(self, name: str, axes: Sequence[str], otherwise: Array) -> str:
        """One that has a value where nobody gives it, and that runtimes do not tell among those that they need."""
        self.arrays[name] = otherwise
        return self.take(name, axes)

    def give(self, value: str, name: str, axes: Sequence[str | int]) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(axes)))

    def make(self, name: str, notes: Mapping[str, str]) -> Any:
        """Weights move into it one by one: who makes a whole graph of them has all of them three times."""
        from bertsmith import __version__

        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=FORM,
            producer_name="bertsmith", producer_version=__version__,
        )  # fmt: skip
        helper.set_model_props(model, dict(notes))
        for key in list(self.arrays):
            model.graph.initializer.append(numpy_helper.from_array(self.arrays.pop(key), key))
        return model


class Weights:
    """How matrices are kept and multiplied: as they are."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def look_up(self, name: str, table: Tensor, ids: str) -> str:
        return self.graph.op("Gather", self.graph.keep(name, to_array(table)), ids)

    def multiply(self, x: str, name: str, matrix: Tensor, bias: Tensor | None, factor: float = 1.0) -> str:
        """x (rows, in) times a matrix (out, in), and the bias; all of it times a factor."""
        added = [] if bias is None else [self.graph.keep(f"{name}.bias", to_array(bias) * np.float32(factor))]
        kept = self.graph.keep(name, to_array(matrix) * np.float32(factor) if factor != 1 else to_array(matrix))
        return self.graph.op("Gemm", x, kept, *added, transB=1)


class SmallWeights(Weights):
    """As int8 with a scale a row, multiplied as whole numbers: each token's own scale makes them of what it brings.

    A scale for all tokens of a batch, which other quantizers take, lets the largest number of one text round those of
    its neighbours, and answers change with the batch.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._scales: dict[str, Array] = {}  # of matrices that are kept
        self._rounded: dict[str, tuple[str, str]] = {}  # what products read, which may be several, and its scales

    def look_up(self, name: str, table: Tensor, ids: str) -> str:
        g, scales = self.graph, self._keep(name, table)
        levels = g.op("Cast", g.op("Gather", name, ids), to=TensorProto.FLOAT)
        return g.op("Mul", levels, g.op("Gather", g.keep(f"{name}.scales", scales[:, None]), ids))

    def multiply(self, x: str, name: str, matrix: Tensor, bias: Tensor | None, factor: float = 1.0) -> str:
        g, scales = self.graph, self._keep(name, matrix)
        levels, scale = self._round(x)
        across = g.op("Transpose", name, perm=[1, 0])  # runtimes do it once, while they load
        product = g.op("MatMulInteger", levels, across, g.constant(CENTRE, np.uint8))
        of_rows = g.keep(f"{name}.scale", scales * np.float32(factor))
        y = g.op("Mul", g.op("Mul", g.op("Cast", product, to=TensorProto.FLOAT), of_rows), scale)
        return y if bias is None else g.op("Add", y, g.keep(f"{name}.bias", to_array(bias) * np.float32(factor)))

    def _keep(self, name: str, matrix: Tensor) -> Array:
        """The matrix is kept, and its scales are what comes back."""
        if name not in self._scales:
            levels, self._scales[name] = round_weights(matrix)
            self.graph.keep(name, levels)
        return self._scales[name]

    def _round(self, x: str) -> tuple[str, str]:
        """Each row of x as whole numbers around the centre, and its scale."""
        if x not in self._rounded:
            g = self.graph
            largest = g.op("ReduceMax", g.op("Abs", x), g.constant([-1]), keepdims=0)
            scale = g.op("Mul", g.op("Max", largest, g.constant(SMALLEST)), g.constant(1 / LEVELS))
            centres = g.op("Expand", g.constant([CENTRE], np.uint8), g.op("Shape", scale))
            levels = g.op("QuantizeLinear", x, scale, centres, axis=0)
            self._rounded[x] = levels, g.op("Unsqueeze", scale, g.constant([-1]))
        return self._rounded[x]


def round_weights(matrix: Tensor) -> tuple[Array, Array]:
    """int8 and a scale a row, such that no two neighbours of one sign are more than 128 together.

    Processors without instructions for such products add two of them in 16 bits, and what is larger than
    128 × 255 would be cut there in silence.
    """
    levels, scales = (to_array(part) for part in quantize_rows(matrix))
    pairs = np.pad(levels, ((0, 0), (0, levels.shape[1] % 2)))
    largest = np.abs(pairs[:, 0::2] + pairs[:, 1::2]).max(axis=1, initial=0)
    wide = largest > CENTRE
    narrower = ((largest[wide] + 1) / (CENTRE - 1))[:, None]  # rounding took a half from each, and may add a half now
    numbers = np.clip(to_array(matrix)[wide] / scales[wide, None], -LEVELS, LEVELS)
    levels[wide] = np.rint(numbers / narrower)
    scales[wide] *= narrower[:, 0]
    return levels.astype(np.int8), scales


def to_array(tensor: Tensor) -> Array:
    found: Array = tensor.detach().float().cpu().numpy()
    return found
