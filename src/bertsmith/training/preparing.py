"""What fine-tuning knows before its first step: the examples, what the doctor says of them, the task they make.

In: data as a person gives it, and choices. Out: a `Preparation`.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from bertsmith.data.columns import Columns, find_roles
from bertsmith.data.doctor import add_sources, diagnose
from bertsmith.data.doctor_lengths import count_tokens
from bertsmith.data.findings import Diagnosis, counted
from bertsmith.data.labels import read_label_names, share_separator
from bertsmith.data.reading import read_sides, read_table
from bertsmith.data.splits import split_off
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.models.tokenizer import find_tokenizer
from bertsmith.tasks.catalog import HOMES
from bertsmith.tasks.measures import LOWER_IS_BETTER
from bertsmith.tasks.task import Row
from bertsmith.tasks.text_rows import add_swapped, find_turned
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.choices import TaskChoices
from bertsmith.training.devices import Ranks, choose_precision
from bertsmith.training.schedule import count_steps
from bertsmith.training.settings import Training
from bertsmith.training.study import refuse_unfit

Say = Callable[[str], None]


@dataclass
class Data:
    """The examples of a run, and what the doctor said of them."""

    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any]
    tables: dict[str, Table]  # by side; a dev that was set apart has none of its own
    columns: dict[str, Columns]
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    notes: list[str] = field(default_factory=list)
    unsplit: BertsmithError | None = None  # why no dev could be set apart
    names: Sequence[str] | None = None  # of numbered labels


def read_data(
    kind: type[TrainedTask[Any, Any]], train: Any, dev: Any, test: Any, choices: TaskChoices, columns: dict[str, str],
    format: str | None, seed: int,
) -> Data:  # fmt: skip
    tables = dict(zip(("train", "dev"), read_sides(train, dev, format), strict=False))
    if test is not None:
        tables["test"] = read_table(test, name="" if isinstance(test, str | Path) else "test", format=format)
    found = dict(zip(tables, find_roles([*tables.values()], kind.roles, columns, kind.required), strict=True))
    given = asdict(choices)
    if choices.label_names is not None:
        given["label_names"] = read_label_names(choices.label_names)
    given = share_separator(tables["train"], found["train"], given) if kind.name == "classify" else given
    examples = {side: kind.examples(table, found[side], given) for side, table in tables.items()}
    notes = list(dict.fromkeys(note for roles in found.values() for note in roles.notes))
    data = Data(examples["train"], examples.get("dev", []), examples.get("test", []), tables, found, notes=notes)
    data.names = given["label_names"]
    if "dev" not in examples:
        try:
            data.train, data.dev = split = split_off(data.train, choices.dev_share, seed)
        except BertsmithError as error:  # kept until the doctor was asked, who may know the cause
            data.unsplit = error
        else:
            notes += [split.note] if split.note else []
    return data


def refuse_idle_share(data: Data, choices: TaskChoices) -> None:
    if "dev" in data.tables and choices.dev_share != TaskChoices.dev_share:
        raise BertsmithError(
            "dev_share says how much of train is set apart, but there are dev examples; leave one of the two out."
        )


@dataclass
class Preparation:
    """Everything that is known before the first step."""

    source: Path
    tokenizer: Tokenizer
    task: TrainedTask[Any, Any]
    data: Data
    choices: TaskChoices
    training: Training
    cuts: dict[str, dict[str, int]] = field(default_factory=dict)  # side -> inputs and tokens that the model never sees

    def lay_out(self, say: Say) -> list[list[Row]]:
        """The rows to train on, and a sentence where something is cut.

        Those of dev and test are made as well: an input that cannot be read, or a label that train never shows, must
        not end a run after hours.
        """
        rows: dict[str, list[list[Row]]] = {}
        for side, examples in {"dev": self.data.dev, "test": self.data.test, "train": self.studied(say)}.items():
            rows = {side: self.task.rows(examples)} if examples else {}
            dropped = [cut for some in rows.get(side, []) if (cut := sum(row.dropped for row in some))]
            self.cuts[side] = {"inputs": len(dropped), "tokens": sum(dropped)}
            if dropped:
                are, of_them = ("is", "it") if len(dropped) == 1 else ("are", "them")
                say(
                    f"{side}: {len(dropped):,} of {counted(len(examples), 'input')} {are} longer than "
                    f"{self.task.length:,} tokens; {counted(sum(dropped), 'token')} of {of_them} "
                    f"{'is' if sum(dropped) == 1 else 'are'} cut (truncate={self.task.truncate!r})."
                )
        return rows["train"]

    def studied(self, say: Say) -> Sequence[Any]:
        """The examples of an epoch: those of train, with `swap` each the other way round too."""
        if not self.choices.swap:
            return self.data.train
        train = self.data.train
        examples = add_swapped(train)
        torn = find_turned(train, train).count(False)
        if torn:
            say(
                f"warning: {torn:,} of {len(train):,} pairs of train stand there the other way round with another "
                "label, so their order means something; leave --swap out."
            )
        for side, scored in (("dev", self.data.dev), ("test", self.data.test)):
            learnt = len(find_turned(scored, train))
            if learnt:
                say(
                    f"warning: {learnt:,} of {len(scored):,} pairs of {side} stand in train the other way round, which "
                    "swap learns too: the score would measure memory."
                )
        return examples

    def examine(self, say: Say) -> None:
        """Ask the doctor; stop at what would waste the run."""
        several = bool(self.task.settings.get("several"))
        found = ask_doctor(self.task, self.data, self.tokenizer, self.task.length, several, self.task.truncate)
        self.data.diagnosis = found
        found.stop()
        for finding in found.findings:
            if finding.level == "warning":
                say(f"warning: {finding.sentence}")

    def refuse_unfit(self) -> None:
        """Settings of training that the task cannot follow: they must not cost an epoch, nor pass a dry run."""
        refuse_unfit(self.task, self.training)
        if self.training.batch < self.task.fewest(self.data.train):
            raise BertsmithError(
                f"batch is {self.training.batch}, but {self.task.name} compares the examples of a step with each "
                f"other, so nothing would be learnt; use a larger batch."
            )
        if self.training.metric is not None and type(self.task).name in HOMES:
            check_metric(self.training.metric, self.task.name, self.task.metrics(self.data.dev))

    def tell_counts(self) -> str:
        ways = ", those of train both ways round" if self.choices.swap else ""
        return f"{len(self.data.train):,}, {len(self.data.dev):,}, {len(self.data.test):,} examples{ways}"

    def plan(self, training: Training, ranks: Ranks, say: Say) -> None:
        ways = 2 if self.choices.swap else 1
        steps = -(-ways * len(self.data.train) // training.batch)
        total = count_steps(steps, training)
        facts = {
            "task": self.task.name,
            "model": self.source,
            "labels": ", ".join(self.task.labels[:12]) + (" …" if len(self.task.labels) > 12 else ""),
            "train, dev, test": self.tell_counts(),
            "long inputs": f"{self.task.truncate} at {self.task.length} tokens",
            "steps": f"{total:,} of {training.batch} examples, {steps:,} an epoch, on {ranks.count} × {ranks.device}",
            "epochs": f"{total / steps:.4g}",
            "rate": f"{training.peak:g} at most, {training.schedule}",
            "precision": choose_precision(training.precision, ranks.device),
            "chosen by": training.metric or self.task.metric,
        }
        if type(self.task).name in HOMES:  # one of a person's own says it only with answers
            facts["chosen by"] = self.task.main_metric(training.metric, self.task.metrics(self.data.dev))
        for name, fact in facts.items():
            say(f"{name:>16}: {fact}")


def ask_doctor(
    kind: type[TrainedTask[Any, Any]] | TrainedTask[Any, Any], data: Data, tokenizer: Tokenizer, limit: int,
    several: bool, policy: str,
) -> Diagnosis:  # fmt: skip
    name: Any = kind.name
    lengths = partial(count_tokens, tokenizer)
    dev = data.dev if data.unsplit is None else None
    test = data.test if "test" in data.tables else None
    found = diagnose(data.train, dev, name, lengths=lengths, limit=limit, several=several, test=test, policy=policy,
                     names=data.names)  # fmt: skip
    read = [side for side in ("train", "dev") if side in data.tables]
    add_sources(found, [data.tables[side] for side in read], [data.columns[side] for side in read])
    return found


def prepare(
    kind: type[TrainedTask[Any, Any]], source: Path, data: Data, choices: TaskChoices, training: Training, say: Say,
    check: bool = False,
) -> Preparation:  # fmt: skip
    """The task that the data and the choices make; with `check`, where they make none the doctor may say why."""
    for note in data.notes:
        say(f"{note[:1].upper()}{note[1:].removesuffix('.')}.")
    if not data.train:
        raise BertsmithError(f"{data.tables['train'].name} holds no example to train on.")
    tokenizer, most = find_tokenizer(source)
    assert tokenizer is not None and most is not None
    given = {name: value for name, value in asdict(choices).items() if value is not None} | {"source": source}
    check_length(choices.length, most, tokenizer, source)
    try:
        if data.unsplit is not None:
            raise data.unsplit
        settings = kind.settle(data.train, given)
        task = kind(tokenizer, most, settings["truncate"], settings)
    except BertsmithError:
        if check:
            policy = choices.truncate or kind.truncation
            ask_doctor(kind, data, tokenizer, choices.length or most, bool(choices.several), policy).stop()
        raise
    return Preparation(source, tokenizer, task, data, choices, training)


def check_metric(metric: str, task: str, names: Iterable[str]) -> None:
    """Stop where no checkpoint can be chosen by this metric."""
    known = [name for name in names if name not in LOWER_IS_BETTER]
    if metric not in known:
        raise BertsmithError(f"metric={metric!r} is not a choice for {task}; use one of {', '.join(known)}.")


def check_length(length: int | None, most: int, tokenizer: Tokenizer, source: Path) -> None:
    check_row_length(length, most, tokenizer.template.specials(False), source)


def check_row_length(length: int | None, most: int, specials: int, source: Path) -> None:
    if length is not None and length > most:
        raise BertsmithError(f"length is {length}, but the model in {source} reads at most {most} tokens.")
    if length is not None and length <= specials:
        raise BertsmithError(f"length is {length}, but {specials} special tokens alone fill such a row; give more.")


def fingerprint(data: Data) -> str:
    """The same for the same examples, whatever file they are in."""
    digest = hashlib.sha256()
    for side in (data.train, data.dev, data.test):
        for example in side:
            parts = [repr(getattr(example, part.name)) for part in fields(example) if part.name != "where"]
            digest.update("\x1f".join(parts).encode("utf-8", "surrogatepass") + b"\x1e")
        digest.update(b"\x1d")
    return digest.hexdigest()[:16]
