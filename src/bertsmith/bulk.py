"""`bertsmith.predict_file`: the answers to every row of a file, however large, in bounded memory.

    bertsmith.predict_file("classify", "big.jsonl", "answers.jsonl", model="my-classifier")

The same call again goes on after a kill, says so when all is done, and refuses other settings. Rows are answered in
blocks; after each, the file of answers is on the disk and a journal says how far it goes.
"""

import inspect
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.arguments import checked
from bertsmith.asking import Question
from bertsmith.bulk_answers import ON_ERROR, Answered, Answering, OnError
from bertsmith.bulk_output import Counts, Journal, OutputFile, WriteFault, check_ending, describe_seen
from bertsmith.bulk_parts import answer_parts, name_part, read_part
from bertsmith.bulk_settings import describe_asked, name_difference
from bertsmith.data.corpus.engines import ENGINES, Engine
from bertsmith.data.layouts import Layout
from bertsmith.data.streaming import Block, Place, Rows, describe_layout, open_rows
from bertsmith.errors import BertsmithError, Stopped

if TYPE_CHECKING:
    from bertsmith.model import Model

Say = Callable[[str], None]
Progress = Callable[[int, float | None], None]  # rows answered, and the share of the file that is done


@dataclass(frozen=True)
class Predicted:
    """What a file of answers holds."""

    out: Path
    rows: int  # error lines among them
    errors: int
    cut: int  # inputs that lost tokens
    cut_tokens: int


@checked()
def predict_file(
    job: str,
    source: str | Path,
    out: str | Path,
    model: "str | Path | Model | None" = None,
    *,
    options: Mapping[str, Any] | None = None,
    columns: Mapping[str, str | None] | None = None,
    format: str | None = None,
    on_error: OnError = "stop",
    engine: Engine = "local",
    overwrite: bool = False,
    say: Say | None = None,
    progress: Progress | None = None,
) -> Predicted:
    """Asks about each row of `source` and writes one JSON line a row to `out`, in the order of the rows.

    `job` is a method of `Model` (classify, score, tag, answer, choose, fill, follows, embed) and `options` are its
    keywords; vectors go into a NumPy file where `out` ends in .npy. `columns` names those that are not found by their
    usual names. `on_error`: a row that cannot be read or asked about stops the work, or has a line that says why.
    """
    question = Question(job, dict(options or {}))
    for name, value, known in (("on_error", on_error, ON_ERROR), ("engine", engine, ENGINES)):
        if value not in known:
            raise BertsmithError(f"{name} {value!r} is not known; use one of {', '.join(known)}.")
    if not str(out).strip():
        raise BertsmithError("out is empty; give the name of a file to write to.")
    if not str(source).strip():
        raise BertsmithError("the name of the file is empty; give a path to read from.")
    target = Path(out).expanduser()
    if not target.name:  # . and /, beside which nothing can be written
        raise BertsmithError(f"{target} is a folder; give a file to write the answers to.")
    if question.job and target.suffix == ".npy" and job != "embed":
        raise BertsmithError(f"{target} is a file of vectors, which {job} does not give; give a FILE.jsonl.")
    _refuse_unknown(question)
    output = OutputFile(target)
    output.check()
    if str(source) == "-":
        raise BertsmithError("standard input cannot be read again after a kill; give a file to read from.")
    rows = open_rows(Path(source).expanduser(), format)
    if target.exists() and os.path.samefile(rows.path, target):
        raise BertsmithError(f"{target} is the file that is read; give another one for the answers.")
    check_ending(target, vectors=target.suffix == ".npy")
    found = question.find_columns(rows, columns or {})
    home = question.find_home(_load(model), pairs="pair" in found)
    asked = describe_asked(question, rows.path, columns or {}, format, home)
    bulk = Bulk(question, rows, found, home, asked, output, on_error, engine, say or _ignore, progress or _ignore)
    return bulk.carry_out(overwrite)


def _refuse_unknown(question: Question) -> None:
    """An option that the job does not have must not be found out with half a file written."""
    from bertsmith.model import Model

    given = inspect.signature(getattr(Model, question.name)).parameters.values()
    known = [each.name for each in given if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if unknown := [name for name in question.options if name not in known]:
        raise BertsmithError(f"{question.name} has no option {unknown[0]!r}; it has {', '.join(known)}.")


@dataclass(frozen=True)
class Bulk:
    question: Question
    rows: Rows
    columns: dict[str, str]
    model: "Model"
    asked: dict[str, Any]
    output: OutputFile
    on_error: OnError
    engine: Engine
    say: Say
    progress: Progress

    def carry_out(self, overwrite: bool) -> Predicted:
        journal = self.output.read_journal()
        if not overwrite and self._is_finished(journal):
            assert journal is not None
            self.say(f"{self.output.target} is finished already; nothing was done.")
            return self._sum_up(journal.counts)
        self.output.open()
        try:
            journal = self._settle(self.output.read_journal(), overwrite)
            self._answer_all(journal)
        finally:
            self.output.close()
        return self._sum_up(journal.counts)

    def _is_finished(self, journal: Journal | None) -> bool:
        """An error where FILE is there and holds something else."""
        target = self.output.target
        if not target.exists() or (journal is not None and not journal.finished):
            return False
        if _has_content(self.output.part) and journal is not None:  # killed before it had its name
            return False
        difference = "what it was made from is not known"
        if journal is not None:
            difference = name_difference(journal.asked, self.asked) or self._name_change(journal)
        if difference:
            raise BertsmithError(f"{target} is there already, and {difference}; give another file, or --overwrite.")
        return True

    def _name_change(self, journal: Journal) -> str:
        """How the input differs from that of finished answers; "" where it does not."""
        if describe_seen(self.rows.path) == journal.seen:
            return ""
        if not self._has_same_start(journal):
            return f"{self.rows.name} has changed since"
        more = next(self._lay_out(journal).blocks(1, journal.place), None)
        return "" if more is None else f"{self.rows.name} has more rows now"

    def _lay_out(self, journal: Journal) -> Rows:
        """As the start was read at first: rows that were added may not change how all are read."""
        return replace(self.rows, layout=Layout.of(journal.layout))

    def _has_same_start(self, journal: Journal) -> bool:
        try:
            return self.rows.hasher(journal.place).hexdigest() == journal.digest
        except BertsmithError:  # it is shorter now
            return False

    def _settle(self, journal: Journal | None, overwrite: bool) -> Journal:
        """The journal to go on with, or a new one."""
        part = self.output.part
        if journal is not None and (not overwrite or journal.anew) and (not journal.finished or _has_content(part)):
            difference = name_difference(journal.asked, self.asked)
            if difference is None and not self._has_same_start(journal):
                difference = f"{self.rows.name} has changed in the {journal.counts.rows:,} rows that were answered"
            if difference is None:
                self.output.go_on(journal)
                if journal.counts.rows:
                    self.say(f"going on after {count_rows(journal.counts.rows)}.")
                return journal
            if not overwrite:
                self.output.close()
                raise BertsmithError(
                    f"{part} holds answers that were made otherwise: {difference}; give another file, or --overwrite."
                )
        empty = self.rows.hasher(Place()).hexdigest()
        layout = describe_layout(self.rows.layout)
        journal = Journal(self.asked, layout, self.columns, digest=empty, anew=overwrite)
        shutil.rmtree(self._parts, ignore_errors=True)  # answers to other questions
        self.output.begin(journal)
        return journal

    def _answer_all(self, journal: Journal) -> None:
        if journal.finished:
            self.output.give_name()
            return
        rows = self._lay_out(journal)
        answering = Answering(self.question, rows, journal.columns, self.on_error, self._find_width())
        if journal.size == 0:
            journal.size += self.output.write(answering.start())
        try:
            self._answer_blocks(answering, journal)
        except KeyboardInterrupt:
            sentence = f"stopped after {count_rows(self._count_kept())}; the same command goes on from there."
            raise Stopped(sentence, signal.SIGINT) from None
        except BertsmithError:
            if kept := self._count_kept():
                told = f"The answers to {count_rows(kept)} are kept in {self.output.part}"
                self.say(f"{told}: the same command goes on.")
            else:
                self.output.clear()
            raise
        journal.seen = describe_seen(rows.path)
        self.output.finish(journal, answering.start(journal.counts.rows))
        shutil.rmtree(self._parts, ignore_errors=True)

    def _answer_blocks(self, answering: Answering, journal: Journal) -> None:
        hasher, total = answering.rows.hasher(journal.place), answering.rows.total
        if self.engine == "ray":
            answer_parts(
                answering, self.model, journal.place, self._parts,
                lambda done, parts: self.progress(journal.counts.rows, done / parts),
            )  # fmt: skip
        for block in answering.rows.blocks(self.question.chunk, journal.place):
            fault: BertsmithError | None = None
            try:
                for answered in self._answer(answering, block):
                    self._take(answered, journal)
            except WriteFault:
                raise
            except BertsmithError as error:
                fault = error
            if journal.place > block.start:
                hasher.update(block.raw_until(journal.place))
                journal.digest = hasher.hexdigest()
                self.output.checkpoint(journal)
                self.progress(journal.counts.rows, journal.place.byte / total if total else None)
            if fault is not None:
                raise fault

    def _answer(self, answering: Answering, block: Block) -> Iterator[Answered]:
        if self.engine == "ray":
            return read_part(name_part(self._parts, block, self.on_error))
        return answering.answer(self.model, block)

    def _take(self, answered: Answered, journal: Journal) -> None:
        journal.size += self.output.write(answered.data)
        journal.place = answered.end
        counts = journal.counts
        counts.rows += 1
        counts.errors += answered.is_error
        counts.cut += answered.cut > 0
        counts.cut_tokens += answered.cut

    def _count_kept(self) -> int:
        saved = self.output.read_journal()
        return saved.counts.rows if saved is not None else 0

    def _find_width(self) -> int | None:
        if self.output.target.suffix != ".npy":
            return None
        return int(self.model.embed([], dims=self.question.options.get("dims")).shape[1])

    @property
    def _parts(self) -> Path:
        target = self.output.target.absolute()
        return target.with_name(f"{target.name}.parts")

    def _sum_up(self, counts: Counts) -> Predicted:
        return Predicted(self.output.target, **asdict(counts))


def count_rows(rows: int) -> str:
    return f"{rows:,} row{'s' * (rows != 1)}"


def _has_content(part: Path) -> bool:
    return part.exists() and part.stat().st_size > 0


def _load(model: "str | Path | Model | None") -> "Model":
    from bertsmith.loading import load
    from bertsmith.model import Model

    return model if isinstance(model, Model) else load(model)


def _ignore(*_: object) -> None:
    pass
