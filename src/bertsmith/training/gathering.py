"""Several tasks before their first step: each member's examples, rows and task, and the study that they make together.

In: members as a person describes them, and a base model. Out: a `Mix`.
"""

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bertsmith.data.columns import find_roles
from bertsmith.data.findings import counted
from bertsmith.data.labels import text_examples
from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import MEMBERS, find_encoder, is_member
from bertsmith.models.families import find_family
from bertsmith.models.files import read_settings
from bertsmith.models.members import Wanted
from bertsmith.models.tokenizer import find_tokenizer
from bertsmith.tasks.catalog import HOMES, find_task
from bertsmith.tasks.task import Row
from bertsmith.tasks.text_rows import lay_out
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.devices import Ranks, choose_precision
from bertsmith.training.masking import MaskStudy
from bertsmith.training.members import MASK, Member
from bertsmith.training.mixing import TEMPERATURE, MixStudy, choose_mixing
from bertsmith.training.preparing import (
    Preparation,
    Say,
    check_length,
    check_metric,
    fingerprint,
    prepare,
    read_data,
)
from bertsmith.training.schedule import count_steps
from bertsmith.training.settings import Training
from bertsmith.training.study import Study, TaskStudy


@dataclass
class Mix:
    """Everything that is known before the first step."""

    source: Path
    tokenizer: Tokenizer
    members: dict[str, Member]
    training: Training
    mixing: str = ""
    temperature: float = TEMPERATURE
    tasks: dict[str, Preparation] = field(default_factory=dict)  # of the members with a task
    rows: dict[str, list[list[Row]]] = field(default_factory=dict)
    texts: dict[str, list[Row]] = field(default_factory=dict)  # of the members that predict masked tokens

    def wanted(self) -> dict[str, Wanted]:
        """The head of each member, in their order."""
        found = {}
        for name in self.members:
            task = self.tasks[name].task if name in self.tasks else None
            found[name] = Wanted(MASK) if task is None else Wanted(str(type(task).head), task.labels)
        return found

    @cached_property
    def study(self) -> MixStudy:
        studies: dict[str, Study] = {}
        for name, member in self.members.items():
            if name in self.tasks:
                studies[name] = TaskStudy(self.tasks[name].task, self.rows[name], member.training)
            else:
                assert self.tokenizer.mask_id is not None
                hidden = (self.tokenizer.special_ids, self.tokenizer.mask_id, self.tokenizer.size)
                studies[name] = MaskStudy(self.texts[name], *hidden, member.training, head=name)
        weights = {name: member.weight for name, member in self.members.items()}
        return MixStudy(studies, weights, self.mixing, self.training.seed, self.temperature, list(self.tasks))

    def examples(self, name: str) -> tuple[int, int, int]:
        """How many of train, dev and test a member has."""
        if name not in self.tasks:
            return len(self.texts[name]), 0, 0
        data = self.tasks[name].data
        return len(data.train), len(data.dev), len(data.test)

    def fingerprint(self, name: str) -> str:
        """The same for the same examples, whatever file they are in."""
        if name in self.tasks:
            return fingerprint(self.tasks[name].data)
        rows = repr([(list(row.ids), list(row.segments)) for row in self.texts[name]])
        return hashlib.sha256(rows.encode()).hexdigest()[:16]

    def check_metric(self) -> None:
        """`metric` of a mix is a member's name, for its main one, or NAME/METRIC."""
        asked = self.training.metric
        if asked is None:
            return
        name, _, metric = asked.partition("/")
        if name not in self.tasks:
            raise BertsmithError(
                f"metric={asked!r} is not a choice for a mix; use a member that is scored ({', '.join(self.tasks)}), "
                f"or one of its metrics as in {next(iter(self.tasks))}/METRIC."
            )
        task, dev = self.tasks[name].task, self.tasks[name].data.dev
        if metric and type(task).name in HOMES:
            check_metric(metric, f"the member {name}", task.metrics(dev))

    def plan(self, ranks: Ranks, say: Say) -> None:
        study, training = self.study, self.training
        total, shares = count_steps(study.steps_an_epoch(), training), study.shares()
        for name, member in self.members.items():
            one = self.tasks.get(name)
            counts = counted(len(self.texts[name]), "text") if one is None else one.tell_counts()
            labels = "" if one is None else f" ({counted(len(one.task.labels), 'label')})"
            steps = f"{member.training.batch} a step in {100 * shares[name]:.1f} % of the steps"
            say(f"{name:>16}: {member.task}{labels}, {counts}, weight {member.weight:g}, {steps}")
        an_epoch = study.steps_an_epoch()
        heat = f" at {self.temperature:g}" if self.mixing == "temperature" else ""
        facts = {
            "model": self.source,
            "mixing": self.mixing + heat,
            "steps": f"{total:,}, {an_epoch:,} an epoch, on {ranks.count} × {ranks.device}",
            "epochs": f"{total / an_epoch:.4g}",
            "rate": f"{training.peak:g} at most, {training.schedule}",
            "precision": choose_precision(training.precision, ranks.device),
            "chosen by": training.metric or "the mean of the members' main metrics",
        }
        for name, fact in facts.items():
            say(f"{name:>16}: {fact}")


def refuse_settings(training: Training, mixing: str | None, temperature: float | None) -> None:
    """What was chosen for the run and cannot be followed by several tasks."""
    choose_mixing(mixing, [])
    if temperature is not None and mixing != "temperature":
        raise BertsmithError('temperature is for mixing = "temperature"; give that too, or leave it out.')
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if temperature is not None and not (is_number and 0 < temperature < math.inf):
        raise BertsmithError(f"temperature is {temperature!r}; it must be a number above 0.")
    for name, is_on in (("lora", training.lora), ("features", training.features != "none")):
        if is_on:
            raise BertsmithError(f"{name} is for one task; several train the whole encoder: leave {name} out.")
    if training.spread == "fsdp":
        raise BertsmithError("spread=fsdp is for one task; several members are spread by ddp: leave it out.")


def gather_mix(
    members: dict[str, Member], source: Path, training: Training, mixing: str | None, temperature: float | None,
    check: bool, say: Say,
) -> Mix:  # fmt: skip
    """Read and lay out every member; what one cannot be made of is said with its name."""
    tokenizer, most = find_tokenizer(source)
    assert tokenizer is not None and most is not None
    mix = Mix(source, tokenizer, members, training, temperature=temperature or TEMPERATURE)
    for name, member in members.items():
        if member.task != MASK:
            with_name = _prefixed(name, say)
            mix.tasks[name] = _named(name, _prepare_task, member, source, check, with_name)
            mix.rows[name] = _named(name, mix.tasks[name].lay_out, with_name)
    for name, member in members.items():
        if member.task == MASK:
            mix.texts[name] = _named(name, _gather_texts, member, mix, most)
    _refuse_missing_heads(mix)
    _refuse_twins(mix)
    mix.check_metric()
    _warn_shared(mix, say)
    mix.mixing = choose_mixing(mixing, [len(mix.rows[name]) for name in mix.tasks])
    return mix


def _prepare_task(member: Member, source: Path, check: bool, say: Say) -> Preparation:
    kind = find_task(member.task)
    if kind.head is None:
        raise BertsmithError(f"{kind.name} trains the encoder itself and has no head, so it cannot be a member.")
    choices, training = member.choices, member.training
    sides = (member.train, member.dev, member.test)
    data = read_data(kind, *sides, choices, member.columns, member.format, training.seed)
    check = check and member.task in HOMES
    own = source / MEMBERS / member.name  # of a model that learnt this member before
    preparation = prepare(kind, own if is_member(own) else source, data, choices, training, say, check)
    preparation.task.head = member.name
    if check:
        preparation.examine(say)
    preparation.refuse_unfit()
    return preparation


def _gather_texts(member: Member, mix: Mix, most: int) -> list[Row]:
    """The rows whose tokens are hidden: of its own texts, or those that the other members train on, each once."""
    tokenizer, choices = mix.tokenizer, member.choices
    if tokenizer.mask_id is None:
        raise BertsmithError("the model's tokenizer has no mask token, so nothing can be hidden; leave it out.")
    check_length(choices.length, most, tokenizer, mix.source)
    length = min(choices.length or most, most)
    if member.train is not None:
        table = read_table(member.train, name="" if isinstance(member.train, str | Path) else "train",
                           format=member.format)  # fmt: skip
        (roles,) = find_roles([table], ("text", "pair"), member.columns, ("text",))
        examples = text_examples(table, roles, gold=False)
        laid = lay_out(tokenizer, examples, [None] * len(examples), length, choices.truncate or "windows")
        rows = [row for some in laid for row in some]
    else:
        rows = [_cut(row, length) for laid in mix.rows.values() for some in laid for row in some]
    once = {(tuple(row.ids), tuple(row.segments)): row for row in rows}
    found = [row for row in once.values() if set(row.ids) - tokenizer.special_ids]
    if not found:
        raise BertsmithError("there is no text whose tokens could be hidden; give train.")
    return found


def _cut(row: Row, length: int) -> Row:
    return row if len(row.ids) <= length else Row(row.ids[:length], row.segments[:length])


def _refuse_missing_heads(mix: Mix) -> None:
    encoder = find_encoder(mix.source)
    if not (encoder / "config.json").exists():  # of the first TensorFlow release: BERT, which has them all
        return
    settings = read_settings(encoder)
    family = find_family(settings.get("model_type"))
    for name, wanted in mix.wanted().items():
        if wanted.kind not in family.heads(settings):
            raise BertsmithError(f"member {name}: the family {family.name} has no head for {wanted.kind}.")


def _refuse_twins(mix: Mix) -> None:
    """Two members that learn the same from the same examples would be one with another weight."""
    seen: dict[Any, str] = {}
    for name, member in mix.members.items():
        other = seen.setdefault((member.task, mix.fingerprint(name)), name)
        if other != name:
            raise BertsmithError(
                f"the members {other} and {name} learn the same task ({member.task}) from the same examples; leave "
                "one of them out, or give one another column or file."
            )


def _warn_shared(mix: Mix, say: Say) -> None:
    """Texts that one member is scored on and another is trained on: it may know them, though by other labels."""
    seen = {name: {_content(example) for example in one.data.train} for name, one in mix.tasks.items()}
    for name, one in mix.tasks.items():
        for side, examples in (("dev", one.data.dev), ("test", one.data.test)):
            for other in seen:
                only_there = seen[other] - seen[name]  # the doctor knows of those in its own
                shared = sum(_content(example) in only_there for example in examples)
                if shared:
                    say(f"warning: {shared:,} of {len(examples):,} texts of {name}'s {side} are in {other}'s train.")


def _content(example: Any) -> tuple[Any, Any]:
    if hasattr(example, "context"):
        return example.context, example.question
    return example.text, getattr(example, "pair", None)


def _named(name: str, call: Any, *given: Any) -> Any:
    try:
        return call(*given)
    except BertsmithError as error:
        raise BertsmithError(f"member {name}: {error}") from error


def _prefixed(name: str, say: Say) -> Say:
    return lambda sentence: say(f"{name}: {sentence}")
