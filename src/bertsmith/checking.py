"""`bertsmith.check`: reads a person's data as fine-tuning would, and asks the doctor about it.

In: a file, a folder, records or a DataFrame, and what the person chose. Out: a `Diagnosis`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

from bertsmith.arguments import checked
from bertsmith.data.choices_data import has_choices
from bertsmith.data.columns import NAMES, find_roles, normalize
from bertsmith.data.doctor import Kind, add_sources, diagnose
from bertsmith.data.doctor_labels import are_measurements
from bertsmith.data.doctor_lengths import count_tokens
from bertsmith.data.findings import Diagnosis, Finding
from bertsmith.data.labels import plain_label, read_label_names, share_separator
from bertsmith.data.reading import read_sides
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.models.tokenizer import find_tokenizer
from bertsmith.tasks.catalog import find_task
from bertsmith.tasks.texts import list_names, take_count
from bertsmith.training.choices import take_columns


@checked()
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
    tag, span, regress, choose, embed or rerank, guessed if not said; `columns` says which column has which role, as in
    {"text": "review"}. Lengths are in tokens of `model` (else of the default one), and `limit` is the longest input it
    should read.
    """
    limit = None if limit is None else take_count("limit", limit)
    chosen = take_columns(columns or {})
    tables = read_sides(data, dev, format)
    kind = choose_kind(task, tables[0], chosen)
    made_for = find_task(kind)
    found = find_roles(tables, made_for.roles, chosen, made_for.required)
    names: list[str] | None = None
    if label_names is not None:
        names = (
            read_label_names(label_names)
            if isinstance(label_names, str | Path)
            else list_names("label_names", label_names)
        )
    choices: dict[str, Any] = {"several": several, "separator": separator, "label_names": names}
    choices = share_separator(tables[0], found[0], choices) if kind == "classify" else choices
    examples = [made_for.examples(table, roles, choices) for table, roles in zip(tables, found, strict=True)]
    several = several or (kind == "classify" and any(len(e.labels or ()) != 1 for some in examples for e in some))
    tokenizer, most = find_tokenizer(model)
    lengths = None if tokenizer is None else partial(count_tokens, tokenizer)
    diagnosis = diagnose(
        examples[0], examples[1] if len(examples) > 1 else None, kind, lengths=lengths, limit=limit or most,
        several=bool(several), policy=made_for.truncation, names=names,
    )  # fmt: skip
    add_sources(diagnosis, tables, found)
    if tokenizer is None:
        diagnosis.findings.append(
            Finding("note", "No model is at hand, so lengths are in words; name one to see what it would cut.")
        )
    return diagnosis


def choose_kind(task: str | None, table: Table, columns: Mapping[str, str]) -> Kind:
    """The task that was named, or the one that the data looks made for."""
    if task is not None:
        if task not in get_args(Kind):
            raise BertsmithError(f"task={task!r} is not a choice; use one of {', '.join(get_args(Kind))}.")
        return cast(Kind, task)
    names = {normalize(column) for column in table.columns}
    first = table.records[0] if table.records else {}
    if table.kind != "squad" and ({"prompt", "choices", "answer"} & set(columns) or has_choices(table.columns, first)):
        return "choose"
    if table.kind == "squad" or {"question", "context"} & set(columns) or {"question", "context"} <= names:
        return "span"
    if table.kind == "conll" or {"words", "tags", "entities"} & set(columns) or _holds_tags(first, names):
        return "tag"
    return "regress" if _holds_measurements(table, columns) else "classify"


def _holds_tags(first: Mapping[str, Any], names: set[str]) -> bool:
    """Words with a tag each, or a text with its entities marked, by the usual names of their columns."""
    by_name = {normalize(column): value for column, value in first.items()}
    tags = names & {name for group in NAMES["tags"] for name in group} - {"label"}
    both = [by_name.get(name) for name in ("words", "tokens", *tags)]  # counts, as in tokens: 17, are neither
    if tags and {"words", "tokens"} & names and any(isinstance(value, str | list | tuple) for value in both):
        return True
    marks = {"entities"} if {"label", "labels"} & names else {"entities", "spans", "ents"}
    return "text" in names and bool(marks & names)


def _holds_measurements(table: Table, chosen: Mapping[str, str]) -> bool:
    """Whether the labels of texts are numbers to predict, not classes."""
    try:
        label = find_roles([table], ("text", "pair", "label"), chosen, ())[0].get("label")
    except BertsmithError:  # about the columns, and said where they are needed
        return False
    if label not in table.columns:
        return False
    return are_measurements({plain_label(record[label]) for record in table.records})
