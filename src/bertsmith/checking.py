"""`bertsmith.check`: reads a person's data as fine-tuning would, and asks the doctor about it.

In: a file, a folder, records or a DataFrame, and what the person chose. Out: a `Diagnosis`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

from bertsmith.data.columns import Columns, find_columns, normalize
from bertsmith.data.doctor import Kind, diagnose
from bertsmith.data.examples import SpanExample
from bertsmith.data.findings import Diagnosis, Finding
from bertsmith.data.folders import find_split, is_slots, require_split
from bertsmith.data.labels import read_label_names
from bertsmith.data.reading import read_table
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.tokenizer import Tokenizer

CHUNK = 4096  # examples tokenized at once, so that memory stays bounded


def check(
    data: Any,
    dev: Any = None,
    *,
    task: str | None = None,
    columns: Mapping[str, str] | None = None,
    model: str | Path | None = None,
    limit: int | None = None,
    several: bool | None = None,
    separator: str | None = None,
    label_names: Sequence[str] | str | Path | None = None,
    format: str | None = None,
) -> Diagnosis:
    """What is wrong with this data and what is good to know, before anything is trained on it.

    `data` is a file, a folder with a train file (and a dev file), a list of dicts or a DataFrame; `task` is classify,
    tag or span, guessed if not said; `columns` says which column has which role, as in {"text": "review"}. Lengths are
    in tokens of `model` (else of the default one), and `limit` is the longest input it should read.
    """
    tables = read_sides(data, dev, format)
    kind = choose_kind(task, tables[0], columns or {})
    found = find_roles(tables, find_task(kind), columns or {})
    names = read_label_names(label_names) if isinstance(label_names, str | Path) else label_names
    choices = {"several": several, "separator": separator, "label_names": names}
    examples = [find_task(kind).examples(table, roles, choices) for table, roles in zip(tables, found, strict=True)]
    several = several or (kind == "classify" and any(len(e.labels or ()) != 1 for some in examples for e in some))
    tokenizer, most = find_tokenizer(model)
    lengths = None if tokenizer is None else partial(count_tokens, tokenizer)
    diagnosis = diagnose(
        examples[0], examples[1] if len(examples) > 1 else None, kind, lengths=lengths, limit=limit or most,
        several=bool(several),
    )  # fmt: skip
    describe(diagnosis, tables, found)
    if tokenizer is None:
        diagnosis.findings.append(
            Finding("note", "No model is at hand, so lengths are in words; name one to see what it would cut.")
        )
    return diagnosis


def read_sides(data: Any, dev: Any, format: str | None) -> list[Table]:
    """The tables of train and, if there is one, dev; a folder has both under their usual names."""
    if isinstance(data, str | Path) and str(data) != "-" and Path(data).is_dir() and not is_slots(Path(data)):
        data, dev = require_split(data, "train"), find_split(data, "dev") if dev is None else dev
    given = {"train": data} if dev is None else {"train": data, "dev": dev}
    return [
        read_table(source, name="" if isinstance(source, str | Path) else side, format=format)
        for side, source in given.items()
    ]


def find_roles(
    tables: Sequence[Table], task: type[TrainedTask[Any, Any]], chosen: Mapping[str, str]
) -> list[Columns]:
    """The columns of each table; what is the label in train is the label in dev."""
    found: list[Columns] = []
    for table in tables:
        same = {role: column for role, column in (found[0] if found else {}).items() if column in table.columns}
        found.append(find_columns(table, task.roles, {**same, **chosen}, required=task.required))
    return found


def choose_kind(task: str | None, table: Table, columns: Mapping[str, str]) -> Kind:
    """The task that was named, or the one that the data looks made for."""
    if task is not None:
        if task not in get_args(Kind):
            raise BertsmithError(f"task={task!r} is not a choice; use one of {', '.join(get_args(Kind))}.")
        return cast(Kind, task)
    names = {normalize(column) for column in table.columns}
    if table.kind == "squad" or {"question", "context"} & set(columns) or {"question", "context"} <= names:
        return "span"
    words = {"words", "tokens"} & names and {"tags", "ner_tags", "labels", "slots", "pos_tags", "upos"} & names
    if table.kind == "conll" or {"words", "tags", "entities"} & set(columns) or words or {"text", "entities"} <= names:
        return "tag"
    return "classify"


def find_tokenizer(model: str | Path | None) -> tuple[Tokenizer | None, int | None]:
    """A model's tokenizer and the longest row it reads; none where none is named and there is no default.

    A sentence encoder that was made for shorter texts still reads what its encoder reads.
    """
    from bertsmith.loading import find_default
    from bertsmith.models.families import find_family
    from bertsmith.models.files import read_json, read_settings
    from bertsmith.models.hub import locate
    from bertsmith.models.sentence import read_sentence
    from bertsmith.text.loading import load_tokenizer

    if model is None:
        try:
            model = find_default()
        except BertsmithError:
            return None, None
    folder = read_sentence(locate(model)).encoder
    tokenizer = load_tokenizer(folder)
    first = folder / "bert_config.json"  # of the first TensorFlow release
    settings = read_settings(folder) if (folder / "config.json").exists() or not first.exists() else read_json(first)
    most = find_family(settings.get("model_type", "bert")).config(settings).limit
    return tokenizer, min(most, tokenizer.limit or most)


def count_tokens(tokenizer: Tokenizer, examples: Sequence[Any]) -> list[int]:
    """How long each example's row would be, were it not cut; special tokens count."""
    rows = [_texts(example) for example in examples]
    distinct = list(dict.fromkeys(text for row in rows for text in row))  # a context has many questions
    pieces: dict[str, int] = {}
    for start in range(0, len(distinct), CHUNK):
        some = distinct[start : start + CHUNK]
        pieces |= zip(some, map(len, tokenizer.encode_many(some, specials=False)), strict=True)
    specials = [0, tokenizer.template.specials(False), tokenizer.template.specials(True)]
    return [specials[len(row)] + sum(pieces[text] for text in row) for row in rows]


def _texts(example: Any) -> tuple[str, ...]:
    """What a row is made of."""
    if isinstance(example, SpanExample):
        return example.question, example.context
    pair = getattr(example, "pair", None)
    return (example.text,) if pair is None else (example.text, pair)


def describe(diagnosis: Diagnosis, tables: Sequence[Table], found: Sequence[Columns]) -> None:
    """Adds to the facts where the data came from and which column had which role."""
    for side, table, columns in zip(("train", "dev"), tables, found, strict=False):
        own = {"name": table.name, "format": table.kind, "columns": list(table.columns), "roles": dict(columns)}
        diagnosis.facts[side] = {**own, **diagnosis.facts[side]}
    for sentence in dict.fromkeys(note for columns in found for note in columns.notes):
        diagnosis.findings.append(Finding("note", f"{sentence[:1].upper()}{sentence[1:]}."))
