"""What a model is asked about, one input at a time. In: texts, or rows of a file. Out: each input with its answer.

The command line, files and `bertsmith.predict_file` share this: `Question` is a job with its options, the same for one
text and for a block of rows.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.data.streaming import Found, Rows
    from bertsmith.model import Model

CHUNK = 4096
ANSWERS = 200_000  # of masks in memory at once, about half a kilobyte each
GOLD = ("label", "tags", "answers", "answer")  # what a question does not need
UNICODE_LINE_ENDS = "\x85\u2028\u2029"  # JSON may hold them as they are, but many readers end a line at them
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Input:
    """One text, or a pair, and where it came from: "line 3", "text 2", or nothing where there is only one."""

    where: str
    text: str
    pair: str | None = None
    example: Any = None  # of a file, where it says more than its text
    row: int | None = field(default=None, kw_only=True)  # of a file
    id: Any = field(default=None, kw_only=True)  # of a file that has a column for it

    def mistake(self, what: str) -> BertsmithError:
        """The error that says `what` is wrong with this input."""
        return BertsmithError(f"{self.where}: {what}" if self.where else what)

    def describe(self, second: str = "") -> dict[str, Any]:
        """The keys that stand before the answers; `second` is what the pair is called, if it is to be told."""
        found: dict[str, Any] = {} if self.row is None else {"row": self.row}
        if self.id is not None and self.id != "":
            found["id"] = self.id
        found["input"] = self.text
        return found | ({second: self.pair} if second and self.pair is not None else {})


@dataclass(frozen=True)
class Job:
    """`task`: whose examples the rows are, by its name in the catalog; "" where they are plain texts of `roles`."""

    task: str = ""
    head: str = ""
    what: str = ""
    second: str = ""  # what the second text is called in an answer
    roles: tuple[str, ...] = ("text",)
    chunk: int = CHUNK


JOBS = {
    "classify": Job("classify", "classify", "classify texts", "pair"),
    "score": Job("regress", "classify", "give a number", "pair"),
    "tag": Job("tag", "tag", "tag words"),
    "answer": Job("span", "span", "answer questions", "context", chunk=256),  # contexts are long
    "choose": Job("choose", "choose", "choose"),
    "fill": Job(),
    "follows": Job(second="pair", roles=("text", "pair")),
    "embed": Job(),
}


@dataclass(frozen=True)
class Question:
    """A job of `Model` and its options; it may travel to another process."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        if self.name not in JOBS:
            raise BertsmithError(f"job {self.name!r} is not known; use one of {', '.join(JOBS)}.")
        return JOBS[self.name]

    @property
    def chunk(self) -> int:
        """How many inputs are asked about at once: enough for full batches, few enough for the memory."""
        if self.name == "fill":
            return max(min(CHUNK, ANSWERS // int(self.options.get("top_k", 5))), 1)
        return self.job.chunk

    def find_home(self, model: "Model", pairs: bool | None = None) -> "Model":
        """The model, or the adapter on it, that has the head or makes the vectors; an error where none has.

        `pairs`: whether it is asked about pairs of texts, where that is known.
        """
        if not self.job.head:
            from bertsmith.resident import find_default_home

            return find_default_home(model, self.name)
        if self.options.get("labels") is not None:  # that were never learnt
            return model.need(self.job.head, "judge labels by inference", "zero-shot")
        return model.need(self.job.head, self.job.what, self.job.task, pairs)

    def put(self, model: "Model", chunk: Sequence[Input]) -> list[tuple[dict[str, Any], int]]:
        """For each input what is told of its answer, and how many of its tokens were cut."""
        texts, options = [given.text for given in chunk], dict(self.options)
        seconds = [given.pair or "" for given in chunk]
        match self.name:
            case "embed":
                vectors = model.embed(texts, **options)
                cuts = list(map(int, vectors.truncated))
                return [({"vector": vector, "truncated": cut}, cut) for vector, cut in zip(vectors, cuts, strict=True)]
            case "tag":
                results = ask_words(model, chunk, options)
            case "fill":
                if any(not text.strip() for text in texts):
                    raise BertsmithError("empty, where a text with a mask is needed.")
                results = model.fill(texts, **options)
            case "choose":
                results = model.choose(texts, [given.example.choices for given in chunk], **options)
            case "answer" | "follows":
                results = getattr(model, self.name)(texts, seconds, **options)
            case _:
                has_pairs = any(given.pair is not None for given in chunk)
                results = getattr(model, self.name)(texts, seconds if has_pairs else None, **options)
        return [(result.as_dict(), result.truncated) for result in results]

    def find_columns(self, rows: "Rows", chosen: Mapping[str, str | None]) -> dict[str, str]:
        """Role -> column, found as in training; what is gold there is not looked at."""
        from bertsmith.data.columns import NAMES, find_columns, normalize

        table, job = rows.head(), self.job
        if job.task:
            from bertsmith.tasks.catalog import find_task

            kind = find_task(job.task)
            required = [role for role in kind.required if role not in GOLD]
            found = dict(find_columns(table, kind.roles, chosen, required=required))
        else:
            found = dict(find_columns(table, job.roles, chosen, required=job.roles))
        if "id" not in found:
            names = [name for group in NAMES["id"] for name in group]
            known = [column for column in table.columns if normalize(column) in names]
            if known:
                found["id"] = min(known, key=lambda column: names.index(normalize(column)))
        return found

    def read(self, rows: "Rows", found: Sequence["Found"], columns: Mapping[str, str]) -> list[Input | BertsmithError]:
        """The rows as inputs; in the place of one that cannot be asked about, the error that says why."""
        try:
            if not any(row.fault for row in found):
                return list(self._read_all(rows, found, columns))
        except BertsmithError:  # which one it is shows when each is alone
            pass
        read: list[Input | BertsmithError] = []
        for row in found:
            try:
                if row.fault:
                    raise BertsmithError(row.fault)
                read += self._read_all(rows, [row], columns)
            except BertsmithError as error:
                read.append(error)
        return read

    def _read_all(self, rows: "Rows", found: Sequence["Found"], columns: Mapping[str, str]) -> Iterator[Input]:
        table, named = rows.as_table(found), columns.get("id", "")
        ids = [record.get(named) for record in table.records] if named else [None] * len(table.records)
        if self.job.task:
            from bertsmith.tasks.catalog import find_task

            asked = {role: column for role, column in columns.items() if role != "id" or self.job.task == "span"}
            examples = find_task(self.job.task).examples(table, asked, {}, gold=False)
            yield from map(_as_input, examples, table.rows, ids)
            return
        from bertsmith.data.cells import text_cell

        second = columns["pair"] if "pair" in self.job.roles else None
        for i, (row, id) in enumerate(zip(table.rows, ids, strict=True)):
            pair = None if second is None else text_cell(table, i, second)
            yield Input(table.where(i), text_cell(table, i, columns["text"]), pair, row=row, id=id)


def _as_input(example: Any, row: int, id: Any) -> Input:
    """The example itself forgets where it stood: the input names the row in messages."""
    alone = replace(example, where="")
    if hasattr(example, "question"):
        return Input(example.where, example.question, example.context, alone, row=row, id=example.id)
    return Input(example.where, example.text, getattr(example, "pair", None), alone, row=row, id=id)


def ask_words(model: "Model", chunk: Sequence[Input], options: Mapping[str, Any]) -> Sequence[Any]:
    """Tags: the words of a file are those of the file, not those that we would cut."""
    if not chunk or chunk[0].example is None:
        found: Sequence[Any] = model.tag([given.text for given in chunk], **options)
        return found
    from bertsmith.tasks.tag import Tag

    settings = model.task_settings(Tag)
    policy, aggregation = options.get("truncate") or settings["truncate"], options.get("aggregation", "first")
    task = Tag(model.tokenizer, model.limit, policy, settings, aggregation)
    return model.predictor.predict(task, [given.example for given in chunk])


def answer_each(
    chunk: Sequence[Input], question: Callable[[Sequence[Input]], Sequence[Answer]]
) -> Iterator[tuple[Input, Answer | BertsmithError]]:
    """Each input with its answer to the question, which is put to the whole chunk at once, or with its own error."""
    try:
        answers = list(question(chunk))
    except BertsmithError as error:
        question([])  # raises the same where no input is at fault: the model has no such head, an option does not fit
        if len(chunk) == 1:
            yield chunk[0], chunk[0].mistake(str(error))
            return
        # Halving finds the one at fault for about the price of one more pass, and answers what stands before it.
        middle = len(chunk) // 2
        yield from answer_each(chunk[:middle], question)
        yield from answer_each(chunk[middle:], question)
    else:
        yield from zip(chunk, answers, strict=True)


def write_line(record: Mapping[str, Any]) -> bytes:
    """One record as a JSON line in UTF-8."""
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, default=make_plain)
    except ValueError:
        from bertsmith.tasks.result import NOT_FINITE

        raise BertsmithError(NOT_FINITE) from None
    for end in UNICODE_LINE_ENDS:
        line = line.replace(end, f"\\u{ord(end):04x}")
    # A folder's name may hold bytes that are not UTF-8: as JSON's own escapes they come back the same.
    return (line + "\n").encode("utf-8", "backslashreplace")


def make_plain(value: Any) -> Any:
    """Arrays and their scalars as lists and numbers, anything else (a path, a dtype) as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
