"""Settings and tensors on disk: `config.json`, safetensors, `pytorch_model.bin`, whole or sharded; nothing that runs.

In: a folder. Out: dictionaries. Every broken file ends in one sentence that names it. Writing goes aside first and is
renamed when complete.
"""

import json
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save_file
from torch import Tensor

from bertsmith.data.folders import refuse_name
from bertsmith.errors import BertsmithError
from bertsmith.models.hub import GRAPH_PLACES
from bertsmith.text.settings import POINTER, refuse_pointer

WEIGHTS = "model.safetensors"
ADAPTER, ADAPTER_CONFIG = "adapter_model.safetensors", "adapter_config.json"
COMPACT, COMPACT_ADAPTER = "model.compact.safetensors", "adapter_model.compact.safetensors"  # see compact.py
ADAPTER_FILES = (ADAPTER, ADAPTER_CONFIG, COMPACT_ADAPTER)  # one of them makes a folder an adapter's
PICKLED = "pytorch_model.bin"
NOTES = "bertsmith"  # in the metadata of a safetensors file
TASK_FILE = "bertsmith.json"  # what a fine-tuning knew of its task
# Left in a folder that another model is saved to, these would change how the new one is read.
MISLEADING = ("modules.json", "added_tokens.json", TASK_FILE, COMPACT, *ADAPTER_FILES)
MARKS = ("config.json", ADAPTER_CONFIG)  # a folder without one of them holds no model


def read_json(path: Path) -> dict[str, Any]:
    found = read_any_json(path)
    if not isinstance(found, dict):
        raise BertsmithError(f"{path} must hold a JSON object, not a {type(found).__name__}.")
    return found


def read_any_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_refuse_constant)
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise BertsmithError(f"{path} is not valid JSON: {_line(error)}.") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def read_settings(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not os.path.lexists(path):
        raise BertsmithError(f"{folder} has no config.json; give the folder of a saved model.")
    settings = read_json(path)
    if settings.get("auto_map"):
        raise BertsmithError(f"{path} asks to run code that came with the model (auto_map); bertsmith never does that.")
    if settings.get("quantization_config"):
        raise BertsmithError(
            f"{path} says that the weights are quantized (quantization_config); give them unquantized."
        )
    return settings


def read_any_settings(folder: Path) -> dict[str, Any]:
    """Those of the first TensorFlow release too, whose file has another name."""
    first = folder / "bert_config.json"
    if first.exists() and not (folder / "config.json").exists():
        return {"model_type": "bert", **read_json(first)}
    return read_settings(folder)


def has_tensors(folder: Path) -> bool:
    return any((folder / f"{name}{tail}").exists() for name in (WEIGHTS, PICKLED) for tail in ("", ".index.json"))


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All weights of a folder; whole or sharded safetensors are preferred to pickles, which only load as plain data."""
    for name in (WEIGHTS, PICKLED):
        index = folder / f"{name}.index.json"
        if os.path.lexists(folder / name):
            return _read_file(folder / name)
        if os.path.lexists(index):
            return _read_shards(index)
    if any((folder / place).is_file() for place in GRAPH_PLACES):
        raise BertsmithError(
            f"{folder} holds an ONNX graph and no weights: it answers and cannot learn; give the folder that it was "
            "written from."
        )
    others = [
        path.relative_to(folder).as_posix() for at in ("onnx", ".") for path in sorted((folder / at).glob("*.onnx"))
    ]
    if others:
        raise BertsmithError(
            f"{folder} has no weights, and no graph of a name that is known: it has {others[0]}; rename the one to be "
            f"opened to {GRAPH_PLACES[0]}."
        )
    raise BertsmithError(f"{folder} has no weights; looked for {WEIGHTS} and {PICKLED}, whole or in shards.")


def _read_shards(index: Path) -> dict[str, Tensor]:
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        raise BertsmithError(f"{index} has no weight_map that tells which file holds which tensor.")
    found: dict[str, Tensor] = {}
    for shard in sorted(set(places.values())):
        if Path(shard).name != shard or not (index.parent / shard).exists():
            raise BertsmithError(f"{index} names the shard {shard!r}, which is not in its folder; copy it there.")
        found.update(_read_file(index.parent / shard))
    lost = sorted(set(places) - set(found))
    if lost:
        raise BertsmithError(f"{index} promises the tensor {lost[0]} in {places[lost[0]]}, which does not hold it.")
    return found


def _read_file(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise BertsmithError(f"{path} is not a file, or a link to nothing; copy it again.")
    if path.stat().st_size == 0:
        raise BertsmithError(f"{path} is empty; copy it again.")
    return _read_safetensors(path) if path.suffix == ".safetensors" else _read_pickled(path)


def refuse_lfs(path: Path) -> None:
    """A large file whose place a pointer of Git LFS has taken."""
    try:
        with path.open("rb") as file:
            refuse_pointer(path, file.read(len(POINTER)))
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    return read_noted(path)[0]


def read_noted(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file, and what it notes of itself."""
    refuse_lfs(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            notes = json.loads((file.metadata() or {}).get(NOTES, "{}"))
            return tensors, notes if isinstance(notes, dict) else {}
    except Exception as error:  # its own errors, and those of torch at types that this torch lacks
        raise BertsmithError(f"{path} is not a whole safetensors file ({_line(error)}); copy it again.") from error


def _read_pickled(path: Path) -> dict[str, Tensor]:
    refuse_lfs(path)
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BertsmithError(
            f"{path} is damaged or holds more than plain tensors, and was not loaded: a pickle can run code."
        ) from error
    except Exception as error:  # whatever a damaged pickle makes the reader stumble over
        raise BertsmithError(f"{path} is not a file that torch can read ({_line(error)}); copy it again.") from error
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict) or not all(isinstance(n, str) and _is_plain(t) for n, t in found.items()):
        raise BertsmithError(f"{path} holds no dictionary of plain tensors by name.")
    return found


def _is_plain(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout is torch.strided and value.is_cpu and not value.is_quantized


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")[:160]


def write_json(path: Path, content: dict[str, Any] | list[Any]) -> None:
    text = json.dumps(content, indent=2, sort_keys=isinstance(content, dict), ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_tensors(path: Path, tensors: dict[str, Tensor], notes: dict[str, str] | None = None) -> None:
    # One entry at most: the library writes several in an order that is another each time.
    about = {"format": "pt"} if notes is None else {NOTES: json.dumps(notes)}
    try:
        path.touch()
        mode = path.stat().st_mode  # the one that the user's umask gives; the library's own is 0600
        save_file(dict(sorted(tensors.items())), path, metadata=about)
        path.chmod(mode)
    except safetensors.SafetensorError as error:  # a full disk, too
        raise BertsmithError(f"{path} cannot be written: {_line(error)}.") from error
    except OSError as error:
        raise BertsmithError(f"{path} cannot be written: {error.strerror or error}.") from error


def take_folder(given: str | Path) -> Path:
    """The folder that a person names to write to, `~` understood."""
    if not isinstance(given, str | Path) or not str(given).strip():
        raise BertsmithError(f"give the name of a folder to write to, not {given!r}.")
    refuse_name(given)
    try:
        return Path(given).expanduser()
    except RuntimeError as error:  # there is no such user
        raise BertsmithError(f"{given} cannot be found: {_line(error)}.") from error


def _open_up(folder: Path) -> None:
    """A temporary folder is closed to others; give it the mode that the user's umask gives to folders."""
    probe = folder / ".probe"
    probe.mkdir()
    folder.chmod(probe.stat().st_mode)
    probe.rmdir()


def _move_into(folder: Path, aside: Path) -> None:
    """File by file. What makes a folder a model's goes first and comes last: no half of one is taken for whole."""
    for name in (*MISLEADING, *MARKS):
        (folder / name).unlink(missing_ok=True)
    found = [path for path in aside.rglob("*") if path.is_file()]
    for path in sorted(found, key=lambda path: (path.parent == aside and path.name in MARKS, path)):
        target = folder / path.relative_to(aside)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """A fresh folder to write into; its files move to `folder` when all are complete, or none of them does."""
    if folder.exists() and not folder.is_dir():
        raise BertsmithError(f"{folder} is a file; give a folder to save to.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise BertsmithError(f"{folder} cannot be written: {error.strerror or error}.") from error
    try:
        yield aside
        if not folder.exists():
            _open_up(aside)
            aside.rename(folder)
        else:
            _move_into(folder, aside)
    except OSError as error:
        raise BertsmithError(f"{folder} cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
