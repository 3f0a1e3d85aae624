"""Records become questions with their answers. In: a table and its columns by role. Out: `SpanExample`s.

Answers come as SQuAD has them (a list of {"text", "answer_start"}), as Hugging Face has them ({"text": […],
"answer_start": […]}), or as a text, with its first character in a column `answer_start` or found where the context has
it once. Each must stand in the context at its offset, to the character. No answer is [] or "".
"""

from collections.abc import Mapping
from typing import Any

from bertsmith.data.cells import describe, is_missing, list_cell, object_cell, shorten, text_cell
from bertsmith.data.examples import SpanExample
from bertsmith.data.labels import plain_label
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError


def span_examples(table: Table, columns: Mapping[str, str], *, gold: bool = True) -> list[SpanExample]:
    """`columns` are those of `find_columns`; without a column of answers, or with `gold=False`, answers are None."""
    examples = []
    for i, record in enumerate(table.records):
        question = text_cell(table, i, columns["question"])
        context = text_cell(table, i, columns["context"])
        name = plain_label(record[columns["id"]]) if "id" in columns else ""
        where = f"{table.where(i)} (id {name})" if name else table.where(i)
        answers = None
        if gold and "answers" in columns:
            answers = _answers(record, columns, context, f'{where}, column "{columns["answers"]}"')
        examples.append(SpanExample(question, context, answers, name or str(table.rows[i]), where))
    return examples


def _answers(
    record: Mapping[str, Any], columns: Mapping[str, str], context: str, where: str
) -> tuple[tuple[str, int], ...]:
    impossible = _is_impossible(record[columns["impossible"]], where) if "impossible" in columns else None
    value = record[columns["answers"]]
    found = [] if impossible and is_missing(value) else _pairs(value, record, columns, where)
    if impossible and found:
        raise BertsmithError(f"{where}: an answer is given, though the question is marked as impossible.")
    if impossible is False and not found:
        raise BertsmithError(f"{where}: no answer is given, though the question is not marked as impossible.")
    return tuple((text, _place(text, start, context, where)) for text, start in found)


def _pairs(value: Any, record: Mapping[str, Any], columns: Mapping[str, str], where: str) -> list[tuple[str, Any]]:
    """The answers with their first characters, None where that is not given."""
    if isinstance(value, str) and (written := object_cell(value)) is not None and "text" in written:
        value = written
    if isinstance(value, str) and (listed := list_cell(value)) is None:
        start = record[columns["start"]] if "start" in columns else None
        return [(value, None if is_missing(start) or start == "" else start)] if value else []
    if isinstance(value, dict):
        texts = value.get("text")
        starts = value.get("answer_start")
        if isinstance(texts, str):
            texts, starts = [texts], None if starts is None else [starts]
        if not isinstance(texts, list) or (starts is not None and len(starts) != len(texts)):
            raise BertsmithError(f'{where}: "text" and "answer_start" must be lists of one length.')
        listed = list(zip(texts, starts or [None] * len(texts), strict=True))
    else:
        listed = list_cell(value)
    if listed is None:
        raise BertsmithError(f'{where}: an answer is needed here ("" or [] for none), not {describe(value)}.')
    return [_pair(answer, where) for answer in listed]


def _pair(answer: Any, where: str) -> tuple[str, Any]:
    if isinstance(answer, dict):
        answer = (answer.get("text"), answer.get("answer_start"))
    if isinstance(answer, str):
        answer = (answer, None)
    if not isinstance(answer, tuple) or not isinstance(answer[0], str):
        raise BertsmithError(f'{where}: an answer must be a text or {{"text": …, "answer_start": …}}.')
    return answer


def _place(text: str, start: Any, context: str, where: str) -> int:
    """The first character of the answer, when it stands there."""
    shown = f'the answer "{shorten(text)}"'
    if not text.strip():
        raise BertsmithError(f"{where}: an answer is empty; give [] where the context has none.")
    count = _count(text, context)
    if start is None:
        if count == 1:
            return context.find(text)
        fault = "does not stand in the context" if not count else f"stands {count:,} times in the context"
        hint = "an answer must be a piece of it" if not count else "give its first character as answer_start"
        raise BertsmithError(f"{where}: {shown} {fault}; {hint}.")
    if isinstance(start, str) and start.strip().isdecimal():
        start = int(start)
    if isinstance(start, float) and start.is_integer():
        start = int(start)
    if isinstance(start, bool) or not isinstance(start, int):
        raise BertsmithError(f"{where}: answer_start must be a whole number, not {describe(start)}.")
    if start >= 0 and context.startswith(text, start):
        return start
    there = f'"{shorten(context[start : start + len(text)])}" stands' if 0 <= start < len(context) else "nothing stands"
    hint = "an answer must be a piece of the context"
    if count:
        places = [at for at in range(len(context)) if context.startswith(text, at)]
        hint = f"it stands at {min(places, key=lambda at: abs(at - start)):,}"
    raise BertsmithError(f"{where}: {shown} does not stand at character {start:,}, where {there}; {hint}.")


def _count(text: str, context: str) -> int:
    """How often it stands there, overlaps included."""
    count, at = 0, context.find(text)
    while at >= 0:
        count, at = count + 1, context.find(text, at + 1)
    return count


def _is_impossible(value: Any, where: str) -> bool | None:
    if is_missing(value) or value == "":
        return None
    written = plain_label(value).lower()
    if written not in ("true", "false", "1", "0"):
        raise BertsmithError(f"{where}: is_impossible must be true or false, not {describe(value)}.")
    return written in ("true", "1")
