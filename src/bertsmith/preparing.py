"""What fine-tuning knows before its first step: the examples, what the doctor says of them, the task they make.

In: data as a person gives it, and choices. Out: a `Preparation`.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bertsmith.checking import count_tokens, describe, find_roles, find_tokenizer, read_sides
from bertsmith.choices import TaskChoices
from bertsmith.data.columns import Columns
from bertsmith.data.doctor import diagnose
from bertsmith.data.findings import Diagnosis
from bertsmith.data.labels import read_label_names
from bertsmith.data.reading import read_table
from bertsmith.data.splits import split_off
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError
from bertsmith.models.sentence import read_sentence
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.devices import Ranks
from bertsmith.training.settings import Training

Say = Callable[[str], None]


@dataclass
class Data:
    """The examples of a run, and what the doctor said of them."""

    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any]
    tables: list[Table]
    columns: list[Columns]
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    notes: list[str] = field(default_factory=list)


def read_data(
    kind: type[TrainedTask[Any, Any]], train: Any, dev: Any, test: Any, choices: TaskChoices, columns: dict[str, str],
    format: str | None, seed: int,
) -> Data:  # fmt: skip
    tables = read_sides(train, dev, format)
    if test is not None:
        tables.append(read_table(test, name="" if isinstance(test, str | Path) else "test", format=format))
    found = find_roles(tables, kind, columns)
    given = asdict(choices)
    if choices.label_names is not None:
        given["label_names"] = read_label_names(choices.label_names)
    examples = [kind.examples(table, roles, given) for table, roles in zip(tables, found, strict=True)]
    notes = [note for roles in found for note in roles.notes]
    tested = examples.pop() if test is not None else []
    if len(examples) == 2:
        return Data(examples[0], examples[1], tested, tables, found, notes=notes)
    split = split_off(examples[0], choices.dev_share, seed)
    notes += [split.note] if split.note else []
    return Data(split.train, split.dev, tested, tables, found, notes=notes)


@dataclass
class Preparation:
    """Everything that is known before the first step."""

    source: Path
    tokenizer: Tokenizer
    task: TrainedTask[Any, Any]
    data: Data
    choices: TaskChoices
    training: Training

    def examine(self, choices: TaskChoices, say: Say) -> None:
        """Ask the doctor; stop at what would waste the run."""
        lengths = partial(count_tokens, self.tokenizer)
        several = bool(self.task.settings.get("several"))
        limit = self.task.settings.get("length") or self.task.limit
        kind: Any = self.task.name
        found = diagnose(self.data.train, self.data.dev, kind, lengths=lengths, limit=limit, several=several)
        describe(found, self.data.tables[:2], self.data.columns[:2])
        self.data.diagnosis = found
        found.stop()
        for finding in found.findings:
            if finding.level == "warning":
                say(f"warning: {finding.sentence}")

    def plan(self, training: Training, ranks: Ranks, say: Say) -> None:
        steps = -(-len(self.data.train) // training.batch)
        total = training.max_steps or max(1, round(training.epochs * steps))
        facts = {
            "task": self.task.name,
            "model": self.source,
            "labels": ", ".join(self.task.labels[:12]) + (" …" if len(self.task.labels) > 12 else ""),
            "train, dev, test": f"{len(self.data.train):,}, {len(self.data.dev):,}, {len(self.data.test):,} examples",
            "long inputs": f"{self.task.truncate} at {self.task.settings.get('length') or self.task.limit} tokens",
            "steps": f"{total:,} of {training.batch} examples, {steps:,} an epoch, on {ranks.count} × {ranks.device}",
            "chosen by": training.metric or self.task.metric,
        }
        for name, fact in facts.items():
            say(f"{name:>16}: {fact}")


def prepare(
    kind: type[TrainedTask[Any, Any]], source: Path, data: Data, choices: TaskChoices, training: Training, say: Say
) -> Preparation:
    for note in data.notes:
        say(f"{note[:1].upper()}{note[1:].removesuffix('.')}.")
    if not data.train:
        raise BertsmithError(f"{data.tables[0].name} holds no example to train on.")
    encoder = read_sentence(source).encoder  # not the folder: a sentence encoder's shorter limit is not the model's
    tokenizer, most = find_tokenizer(encoder)
    assert tokenizer is not None and most is not None
    given = {name: value for name, value in asdict(choices).items() if value is not None}
    if choices.length is not None and choices.length > most:
        raise BertsmithError(f"length is {choices.length}, but the model in {source} reads at most {most} tokens.")
    settings = kind.settle(data.train, given)
    task = kind(tokenizer, most, settings["truncate"], settings)
    return Preparation(source, tokenizer, task, data, choices, training)


def fingerprint(data: Data) -> str:
    """The same for the same examples, whatever file they are in."""
    digest = hashlib.sha256()
    for side in (data.train, data.dev, data.test):
        for example in side:
            parts = [repr(getattr(example, name)) for name in type(example).__slots__ if name != "where"]
            digest.update("\x1f".join(parts).encode("utf-8", "surrogatepass") + b"\x1e")
        digest.update(b"\x1d")
    return digest.hexdigest()[:16]
