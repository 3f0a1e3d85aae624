"""A folder with an ONNX graph in the place of weights: onnx/model.onnx, or onnx/model_quantized.onnx of int8.

In: a `Model`. Out: the folder, and how far the graph's numbers are from the model's, by running both.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.export.plain import refuse_features
from bertsmith.keeping import write_beside
from bertsmith.models.graph import VECTOR, need_runtime, open_graph
from bertsmith.models.hub import GRAPHS

if TYPE_CHECKING:
    from bertsmith.model import Model

LARGEST = 1_900_000_000  # bytes in one file; 2 GiB are the most that its form holds
FURTHEST = {"fp32": 1e-3, "int8": math.inf}  # of the largest score: a graph that is not nearer is wrong
LENGTHS = (3, 9, 17, 40, 128)  # of the rows that are compared
ROWS = 4  # of each length


@dataclass(frozen=True)
class Agreement:
    """Of a graph's numbers with the model's, on rows of random words: as shares of the model's largest number."""

    largest: float
    usual: float  # the root of the mean square of differences, as a share of that of the numbers


def write_graph(model: "Model", folder: Path, store: str) -> Agreement:
    if store not in GRAPHS:
        raise BertsmithError(f"store={store!r} is not a choice for ONNX; use one of {', '.join(GRAPHS)}.")
    need_runtime()
    try:
        import onnx
    except ImportError:
        raise BertsmithError("writing ONNX needs the extra `onnx`: pip install 'bertsmith[onnx]'.") from None
    from bertsmith.export.onnx_model import build_graph

    refuse_features(model)
    graph = build_graph(model, store)
    path = folder / GRAPHS[store]
    path.parent.mkdir(parents=True)
    write_beside(model, folder)
    is_large = sum(len(tensor.raw_data) for tensor in graph.graph.initializer) > LARGEST
    beside = path.with_name(f"{path.name}_data")
    onnx.save(graph, path, save_as_external_data=is_large, location=beside.name if is_large else None)
    if is_large:
        beside.chmod(path.stat().st_mode)  # it is made for its owner alone
    del graph  # as large as the model
    found = compare_graph(model, open_graph(path, folder).network)
    if not found.largest < FURTHEST[store]:
        raise BertsmithError(
            f"the graph of {model.folder} differs from the model by {found.largest:.1e} of its largest score; nothing "
            "was written. Please report which model that is."
        )
    return found


def compare_graph(model: "Model", graph: Any) -> Agreement:
    """`graph` is the `GraphNetwork` of its file. Of several outputs the one that is furthest away counts: beside large
    states, vectors of length 1 might be anything."""
    found: list[list[Tensor]] = []
    for batch in _make_batches(model):
        with torch.inference_mode():
            pairs = zip(_ask_model(model, batch), _ask_graph(graph, batch), strict=True)
            found.append([_measure(*pair) for pair in pairs])
    each = torch.stack([torch.stack(outputs) for outputs in found])  # (batches, outputs, 4)
    largest, squares = each[..., :2].amax(dim=0), each[..., 2:].sum(dim=0)
    shares = largest[:, 0] / largest[:, 1].clamp_min(1e-30), (squares[:, 0] / squares[:, 1].clamp_min(1e-60)).sqrt()
    return Agreement(*(float(share.amax()) for share in shares))


def _measure(before: Tensor, after: Tensor) -> Tensor:
    """The largest difference and the largest number, and the sums of their squares."""
    both = after - before, before
    return torch.stack([*(x.abs().amax().double() for x in both), *(x.square().sum(dtype=torch.double) for x in both)])


def _make_batches(model: "Model") -> list[Batch]:
    """Random words: each of a vocabulary is as likely, in whatever language it is."""
    config, generator = model.checkpoint.config, np.random.default_rng(0)
    found = []
    for length in LENGTHS:
        longest = min(length, model.limit)
        rows = [generator.integers(0, config.vocabulary, longest - row % 2).tolist() for row in range(ROWS)]
        half = [[int(config.segments > 1 and i > longest // 2) for i in range(len(row))] for row in rows]
        found.append(Batch.of(rows, half))
    return found


def _ask_model(model: "Model", batch: Batch) -> list[Tensor]:
    network: Any = model.checkpoint.network
    hidden = network(batch)
    heads = [name for name in model.checkpoint.heads if network.heads[name].shape.outputs]
    if heads:
        return [network.score(hidden, batch, heads[0])]
    return [hidden, model.sentence.pooling(hidden, batch)]


def _ask_graph(graph: Any, batch: Batch) -> list[Tensor]:
    return [graph(batch), *([graph.graph.run(batch)[VECTOR]] if VECTOR in graph.graph.outputs else [])]
