"""A model that lies in its folder as an ONNX graph, run by ONNX Runtime in the place of a network.

In: the folder of a graph. Out: a `Checkpoint` whose network answers as any other does, and has no weights.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.layers.config import Config, HeadShape
from bertsmith.models.checkpoint import DEEPEST, Checkpoint, check_labels, make_config, read_class
from bertsmith.models.families import find_family
from bertsmith.models.family import FamilyHead
from bertsmith.models.files import COMPACT, has_tensors, read_settings, refuse_lfs
from bertsmith.models.hub import GRAPH_PLACES
from bertsmith.models.network import Network

HIDDEN, VECTOR = "last_hidden_state", "sentence_embedding"
SCORES = ("logits", "start_logits", "end_logits")
WANTED = "wanted"  # an input of our own that may be left out: which places are to have scores
SESSIONS = 2  # of one graph at a time: who asks in threads of many kinds would hold its weights as many times
RUN = 48  # padded tokens that take about as long as another run
WEIGHTS = ("embed", "relative", "convolution", "blocks", "order", "final_norm")  # what only a network with weights has


class GraphFile:
    """A graph that is ready to run."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        """`threads` of each run: as many as torch has in the thread that asks, unless it is said."""
        self.path, self.threads, self.lock = path, threads, threading.Lock()
        self.sessions: dict[int, Any] = {}  # by their threads
        self.used: set[int] = set()
        refuse_lfs(path)
        session = self._find_session()
        self.inputs = {given.name: len(given.shape) for given in session.get_inputs()}
        found = {given.name: given.shape for given in session.get_outputs()}
        self.outputs = {name: found[name] for name in (*SCORES, HIDDEN, VECTOR) if name in found}
        self.is_choosy = WANTED in (given.name for given in session.get_overridable_initializers())
        known = {"input_ids", "attention_mask", "token_type_ids"}
        if not {"input_ids"} <= set(self.inputs) <= known or not {"logits", "start_logits", HIDDEN} & set(self.outputs):
            raise BertsmithError(f"{path} has other inputs and outputs than an encoder has; export the model again.")

    @property
    def files(self) -> list[Path]:
        """The graph, and what lies beside it under its name: weights that are too many for one file."""
        return [self.path, *sorted(path for path in self.path.parent.glob(f"{self.path.name}[_.]*") if path.is_file())]

    def run(self, batch: Batch) -> dict[str, Tensor]:
        """Each output of all rows, as the graph gives it: a row of a batch, padded to the longest."""
        found: dict[str, list[Tensor]] = {name: [torch.empty(0)] * len(batch.lengths) for name in self.outputs}
        for rows, some in part_rows(batch):
            if some is batch:
                return self._run(batch)
            for name, scores in self._run(some).items():
                for row, own in zip(rows, scores, strict=True):
                    found[name][row] = own
        return {name: pad_sequence(rows, batch_first=True) for name, rows in found.items()}

    def run_at(self, batch: Batch, places: Tensor) -> Tensor:
        """The scores of some tokens, which rise, (tokens, outputs); those of all others are 0 and take no memory."""
        is_wanted = torch.zeros(len(batch.ids), dtype=torch.int64).index_fill_(0, places, 1)
        found: Tensor | None = None
        own = batch.split(torch.arange(len(batch.ids)))
        for rows, some in part_rows(batch):
            tokens = torch.cat([own[row] for row in rows])
            chosen = is_wanted[tokens]
            if not chosen.any():
                continue
            scores = self._run(some, {WANTED: some.pad(chosen, 0)})["logits"].flatten(0, -2)
            if found is None:  # of numpy: torch writes its zeros
                found = torch.from_numpy(np.zeros((len(batch.ids), scores.shape[-1]), np.float32))
            found[tokens[chosen.bool()]] = scores
        assert found is not None, "no place is wanted"  # `forward` does not ask then
        return found

    def _run(self, batch: Batch, more: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        rows = len(batch.lengths)
        every = {"input_ids": batch.ids, "token_type_ids": batch.segments, "attention_mask": torch.ones_like(batch.ids)}
        given = {name: batch.pad(every[name], 0).numpy() for name in self.inputs}
        shaped = {name: x.reshape(rows, 1, -1) if self.inputs[name] == 3 else x for name, x in given.items()}
        chosen = {name: x.numpy() for name, x in (more or {}).items()}
        session = self._find_session(is_used=True)
        try:
            found = session.run(list(self.outputs), {**shaped, **chosen})
        except Exception as error:
            raise BertsmithError(f"{self.path} could not read {rows} rows: {_line(error)}") from error
        return {name: torch.from_numpy(np.asarray(x)).float() for name, x in zip(self.outputs, found, strict=True)}

    def prepare(self, threads: int) -> None:
        """For whoever will ask with so many threads: opening takes as long as a hundred short texts."""
        self._find_session(threads, is_used=True)

    def _find_session(self, threads: int | None = None, is_used: bool = False) -> Any:
        """One for so many threads, of the last few; the one that a graph was opened with goes if nobody asked it."""
        threads = self.threads or threads or torch.get_num_threads()
        with self.lock:
            if threads not in self.sessions:
                asked = [number for number in self.sessions if number in self.used][1 - SESSIONS :]
                self.sessions = {number: self.sessions[number] for number in asked}
                self.sessions[threads] = _open(self.path, threads)  # when others have gone: each has all weights
            self.sessions[threads] = session = self.sessions.pop(threads)  # the last one asked is the last one to go
            if is_used:
                self.used.add(threads)
            return session


def part_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Rows to be run together: where padding would cost more than another run does, they are parted."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    parts: list[list[int]] = []
    wasted = RUN + 1
    for row in order:
        wasted += lengths[parts[-1][0]] - lengths[row] if parts else 0
        if wasted > RUN:
            parts.append([])
            wasted = 0
        parts[-1].append(row)
    return parts


def part_rows(batch: Batch) -> Iterator[tuple[Sequence[int], Batch]]:
    """The numbers of some rows, and a batch of them: the batch itself where it is not parted."""
    parts = part_by_length(batch.lengths)
    if len(parts) == 1:
        yield range(len(batch.lengths)), batch
        return
    ids, segments = batch.split(batch.ids), batch.split(batch.segments)
    for rows in parts:
        yield rows, Batch.of([ids[row].tolist() for row in rows], [segments[row].tolist() for row in rows])


def _open(path: Path, threads: int) -> Any:
    runtime = need_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_mem_pattern = False  # plans that are kept for each shape of a batch would grow without end
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # classes of its own, which nothing exports
        raise BertsmithError(f"{path} is not a graph that ONNX Runtime can run: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


class GraphNetwork(Network):
    """It has one head, or none. With a head it gives that head's scores in the place of hidden states."""

    is_alone = True

    def __init__(self, graph: GraphFile, config: Config, heads: dict[str, HeadShape]) -> None:
        with torch.device("meta"):
            super().__init__(config, heads)
        self.graph = graph
        for name in WEIGHTS:
            delattr(self, name)
        self.requires_grad_(False)
        self.eval()

    def __getattr__(self, name: str) -> Any:
        if name in WEIGHTS and "graph" in self.__dict__:  # while it is made, it has them
            raise self._refusal("it cannot be looked into, saved, changed or trained")
        return super().__getattr__(name)

    def __deepcopy__(self, known: Any) -> Any:
        raise self._refusal("it cannot be looked into")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    @property
    def has_vectors(self) -> bool:
        return HIDDEN in self.graph.outputs

    def forward(self, batch: Batch) -> Tensor:
        """The head's scores of all tokens, (tokens, outputs), or of each row; without a head the last states."""
        if batch.watched is not None:
            raise self._refusal("it cannot be looked into")
        if batch.wanted is not None and len(batch.wanted) and self.graph.is_choosy:
            return self.graph.run_at(batch, batch.wanted)
        found = self.graph.run(batch)
        if "start_logits" in found:
            return torch.stack([found["start_logits"], found["end_logits"]], dim=-1)[batch.mask]
        scores = found["logits"] if "logits" in found else found[HIDDEN]
        return scores[batch.mask] if scores.ndim == 3 else scores

    def encode(self, batch: Batch) -> Tensor:
        if not self.has_vectors:
            raise self._refusal(f"it has the scores of {', '.join(self.heads)} and no vectors")
        return self.forward(batch)

    def states(self, batch: Batch) -> Any:
        raise self._refusal("it has no states between its layers")

    def score(self, hidden: Tensor, batch: Batch, head: str, at: Tensor | None = None) -> Tensor:
        return hidden if at is None else hidden.index_select(0, at)

    def places(self, batch: Batch, head: str, at: Tensor | None = None) -> Tensor | None:
        return None

    def _refusal(self, what: str) -> BertsmithError:
        return BertsmithError(f"{self.graph.path} is a graph: {what}. Give the folder that it was written from.")


def find_graph(folder: Path) -> Path | None:
    """The graph in an encoder's folder that has no weights; the exact one where there are several."""
    there = [folder / name for name in GRAPH_PLACES if (folder / name).is_file()]
    has_weights = has_tensors(folder) or (folder / COMPACT).exists()
    return there[0] if there and not has_weights else None


def open_graph(path: Path, folder: Path) -> Checkpoint:
    """`folder` has the settings."""
    settings, graph = read_settings(folder), GraphFile(path)
    family = find_family(settings.get("model_type"))
    config = make_config(family, settings, DEEPEST)
    heads: dict[str, FamilyHead] = {}
    if HIDDEN not in graph.outputs:
        named, suffix = read_class(settings)
        heads = {name: head for name, head in family.heads(settings).items() if suffix and head.suffix == suffix}
        if len(heads) != 1:
            raise BertsmithError(f"{folder / 'config.json'} says {named or 'no class'}, which is no head of {path}.")
    shapes = {name: head.shape(config, _count_labels(graph)) for name, head in heads.items()}
    _check_sizes(graph, config, heads, folder)
    checkpoint = Checkpoint(family, config, heads, GraphNetwork(graph, config, shapes), settings)
    check_labels(checkpoint, shapes, folder)
    return checkpoint


def _count_labels(graph: GraphFile) -> int:
    """Of a choice the graph gives one number a row, and says how many rows belong together."""
    if "start_logits" in graph.outputs:
        return 2
    last = graph.outputs["logits"][-1]
    if graph.inputs["input_ids"] == 3:
        return 1
    if not isinstance(last, int):  # whoever wrote it did not say
        last = graph.run(Batch.of([[0]]))["logits"].shape[-1]
    return last


def _check_sizes(graph: GraphFile, config: Config, heads: Mapping[str, FamilyHead], folder: Path) -> None:
    for output, told, name in ((HIDDEN, config.width, "width"), ("logits", config.vocabulary, "vocabulary")):
        given = graph.outputs[output][-1] if output in graph.outputs else told
        if (output == HIDDEN or "mask" in heads) and isinstance(given, int) and given != told:
            raise BertsmithError(
                f"{folder / 'config.json'} tells of a {name} of {told:,}, and {graph.path} has one of {given:,}; they "
                "do not belong together."
            )


def need_runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise BertsmithError("ONNX needs the extra `onnx`: pip install 'bertsmith[onnx]'.") from None
    return onnxruntime
