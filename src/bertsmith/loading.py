"""`bertsmith.load`: a folder or a name becomes a `Model` on a device."""

import logging
from collections.abc import Mapping
from pathlib import Path

import torch

from bertsmith.arguments import checked
from bertsmith.errors import BertsmithError
from bertsmith.model import Model
from bertsmith.models.adapter_folders import is_adapter
from bertsmith.models.adapters import open_checkpoint, open_sentence
from bertsmith.models.graph import find_graph, open_graph
from bertsmith.models.hub import find_default, locate
from bertsmith.resident import list_adapters, put_adapter, read_trained
from bertsmith.tasks.predicting import BUDGETS
from bertsmith.tasks.texts import take_count, take_threads

log = logging.getLogger("bertsmith")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@checked("device", "dtype")
def load(
    source: str | Path | None = None,
    *,
    device: str | torch.device = "auto",
    dtype: str = "float32",
    download: bool = False,
    revision: str = "main",
    threads: int | None = None,
    batch_tokens: int | None = None,
    adapters: Mapping[str, str | Path] | None = None,
) -> Model:
    """A model from a folder, or from the local Hugging Face cache by its name (`download=True` fetches it there).

    Without a source: the one that the environment variable BERTSMITH_MODEL names, else the one in this package.
    `device` is auto, cpu, cuda or mps; `batch_tokens` the most tokens in a batch; `threads` those of the CPU.
    A folder with an ONNX graph in the place of weights (`export --to onnx`) answers through ONNX Runtime, on the CPU.
    An adapter's folder gives its base model with the adapter on it. `adapters`, name -> folder, are put on this one
    base beside those in its own folder: `m.use(name)` is the model with that adapter, on the same memory.
    """
    folder = locate(find_default() if source is None else source, download=download, revision=revision)
    place = find_device(device)
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise BertsmithError(f"dtype={dtype!r} is not a choice; use one of {', '.join(DTYPES)}.")
    batch_tokens = None if batch_tokens is None else take_count("batch_tokens", batch_tokens)
    if threads is not None:
        torch.set_num_threads(take_threads(threads))
    sentence = open_sentence(folder)
    graph = None if is_adapter(folder) else find_graph(sentence.encoder)
    if graph is None:
        checkpoint = open_checkpoint(folder, DTYPES[dtype])
        checkpoint.network.to(place).requires_grad_(False)
        checkpoint.network.pack()
    else:
        _refuse_for_graph(graph, device, dtype)
        place, checkpoint = torch.device("cpu"), open_graph(graph, sentence.encoder)
    if checkpoint.left_out:
        some = ", ".join(checkpoint.left_out[:8]) + (" …" if len(checkpoint.left_out) > 8 else "")
        log.warning("left out %d tensors of %s that nothing here uses: %s", len(checkpoint.left_out), folder, some)
    sentence.pooling.to(place).requires_grad_(False)
    model = Model(folder, checkpoint, sentence, place, batch_tokens or BUDGETS[place.type], read_trained(folder))
    wanted = {**list_adapters(folder), **(adapters or {})}
    model.adapters |= {name: put_adapter(model, path) for name, path in wanted.items()}
    return model


def _refuse_for_graph(graph: Path, device: str | torch.device, dtype: str) -> None:
    if str(device) not in ("auto", "cpu") or dtype != "float32":
        given = f"device={str(device)!r}" if str(device) not in ("auto", "cpu") else f"dtype={dtype!r}"
        raise BertsmithError(f"{graph} is a graph, which runs on the CPU with its own numbers; leave {given} out.")


def find_device(name: str | torch.device) -> torch.device:
    """A device by its name, `cuda:1` too; one that is not there ends in a sentence."""
    if not isinstance(name, str | torch.device):
        raise BertsmithError(f"device={name!r} is not a choice; use auto, cpu, cuda or mps.")
    name = str(name)
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    kind, colon, number = name.partition(":")
    if kind not in there or (colon and not number.isdecimal()):
        raise BertsmithError(f"device={name!r} is not a choice; use auto, cpu, cuda or mps.")
    if not there[kind] or int(number or 0) >= max(1, torch.cuda.device_count() if kind == "cuda" else 1):
        raise BertsmithError(f"device={name!r} is not on this machine, or torch was built without it; use auto or cpu.")
    return torch.device(name)
