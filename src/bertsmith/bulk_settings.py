"""What a file of answers was made from, and how that differs from what is asked for now.

In: the job, the file, the model. Out: plain JSON that two runs can compare, and the first difference in words.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.asking import Question, make_plain
from bertsmith.data.shards import file_digest
from bertsmith.models.graph import GraphNetwork

if TYPE_CHECKING:
    from bertsmith.model import Model

READ = (".safetensors", ".bin", ".json", ".txt", ".model")  # what answers depend on


def describe_asked(
    question: Question, source: Path, chosen: Mapping[str, str | None], format: str | None, model: "Model"
) -> dict[str, Any]:
    """Devices, threads and sizes of batches are no part of it: a run may go on where there is another machine.

    As the journal gives it back, which knows no tuples.
    """
    asked = {
        "job": question.name,
        "options": {name: value for name, value in sorted(question.options.items()) if value is not None},
        "columns": {role: column for role, column in sorted(chosen.items()) if column is not None},
        "format": format,
        "input": str(source.absolute()),
        "model": {"folder": str(model.folder), "digest": digest_model(model), "dtype": model.dtype},
    }
    plain: dict[str, Any] = json.loads(json.dumps(asked, default=make_plain))
    return plain


def name_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """As in `top_k was 3 and is now 5`; None: there is none."""
    for name, what in (("job", "the job"), ("input", "the input"), ("format", "the format")):
        if before.get(name) != now[name]:
            return f"{what} was {before.get(name)} and is now {now[name]}"
    for name, what in (("options", ""), ("columns", "the column of ")):
        old, new = before.get(name, {}), now[name]
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return f"{what}{key} was {_show(old.get(key))} and is now {_show(new.get(key))}"
    old, new = before.get("model", {}), now["model"]
    if old.get("dtype") != new["dtype"]:
        return f"the dtype was {old.get('dtype')} and is now {new['dtype']}"
    if old.get("digest") != new["digest"]:
        changed = old.get("folder") == new["folder"]
        return f"the model {new['folder']} has changed" if changed else (
            f"the model was {old.get('folder')} and is now {new['folder']}"
        )  # fmt: skip
    return None


def digest_model(model: "Model") -> str:
    """By the content of its folder, and of the base where it is an adapter: wherever it lies, it is the same model."""
    total = hashlib.sha256()
    for folder in [model.folder] if model.base is None else [model.base.folder, model.folder]:
        for path in (*_list_files(folder), *_list_graph(model)):
            total.update(f"{path.relative_to(folder).as_posix()} {file_digest(path)}\n".encode())
    return total.hexdigest()


def _list_files(folder: Path) -> Iterator[Path]:
    """Its own files and those of the modules of a sentence encoder (1_Pooling, …)."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name[0].isdigit():
            yield from (inner for inner in sorted(path.iterdir()) if inner.is_file() and inner.suffix in READ)
        elif path.is_file() and path.suffix in READ:
            yield path


def _list_graph(model: "Model") -> list[Path]:
    """The files of a model that has no weights, which lie in a folder of their own."""
    network = model.checkpoint.network
    return network.graph.files if isinstance(network, GraphNetwork) else []


def _show(value: Any) -> str:
    return "not given" if value is None else str(value)
