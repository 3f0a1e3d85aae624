"""A model that lies in its folder as an ONNX graph, run by ONNX Runtime in the place of a network.

In: the file of a graph. Out: what the tasks ask a network for: a head's scores, or the last hidden states.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError

GRAPHS = {"fp32": "onnx/model.onnx", "int8": "onnx/model_quantized.onnx"}  # where others look for them
HIDDEN, VECTOR = "last_hidden_state", "sentence_embedding"


class GraphNetwork:
    """It has one head, or none; its scores are computed with the last hidden states, and by rows."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        runtime = need_runtime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads or torch.get_num_threads()
        options.enable_mem_pattern = False  # plans that are kept for each shape of a batch would grow without end
        options.log_severity_level = 3
        try:
            self.session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # classes of its own, which nothing exports
            reason = " ".join(str(error).split())[:200]
            raise BertsmithError(f"{path} is not a graph that ONNX Runtime can run: {reason}") from error
        self.inputs = {given.name: len(given.shape) for given in self.session.get_inputs()}
        self.outputs = [given.name for given in self.session.get_outputs()]
        if "input_ids" not in self.inputs or not {"logits", "start_logits", HIDDEN} & set(self.outputs):
            raise BertsmithError(f"{path} has other inputs and outputs than an encoder has; export the model again.")

    def run(self, batch: Batch) -> dict[str, Tensor]:
        """Each output, as the graph gives it: by rows, padded."""
        rows = len(batch.lengths)
        every = {"input_ids": batch.ids, "token_type_ids": batch.segments, "attention_mask": torch.ones_like(batch.ids)}
        given = {name: batch.pad(every[name], 0).numpy() for name in self.inputs}
        shaped = {name: x.reshape(rows, 1, -1) if self.inputs[name] == 3 else x for name, x in given.items()}
        found = self.session.run(None, shaped)
        return {name: torch.from_numpy(np.asarray(x)) for name, x in zip(self.outputs, found, strict=True)}

    def __call__(self, batch: Batch) -> Tensor:
        """The head's scores of all tokens, (tokens, outputs), or of each row, (rows, outputs)."""
        found = self.run(batch)
        if "start_logits" in found:
            return torch.stack([found["start_logits"], found["end_logits"]], dim=-1)[batch.mask]
        scores = found["logits"] if "logits" in found else found[HIDDEN]
        return scores[batch.mask] if scores.ndim == 3 else scores

    encode = __call__  # of a graph without a head

    def score(self, found: Tensor, batch: Batch, head: str, at: Tensor | None = None) -> Tensor:
        return found if at is None else found.index_select(0, at)

    def places(self, batch: Batch, head: str, at: Tensor | None = None) -> Tensor | None:
        return None


def need_runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise BertsmithError("ONNX needs the extra `onnx`: pip install 'bertsmith[onnx]'.") from None
    return onnxruntime
