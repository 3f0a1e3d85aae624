"""The members of a mix as a person describes them: a task each, its data, its weight, choices of its own.

In: a TOML file or a dict. Out: a `Member` for each name; what contradicts itself or is not known ends in a sentence.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from bertsmith.errors import BertsmithError
from bertsmith.training.choices import COLUMNS, USED_BY, TaskChoices, refuse_unused, sort_choices, suggest
from bertsmith.training.settings import Training

MASK = "mask"  # the member that predicts masked tokens of the texts
DATA = ("train", "dev", "test")
OWN = ("task", *DATA, "texts", "weight", "format")
# Settings of training that a member may have of its own: what its step holds and what a mistake costs.
LEARNS = ("batch", "class_weights", "focal", "smoothing", "r_drop", "adversarial", "adversarial_reach", "metric")
OF_MASK = ("length", "truncate")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Member:
    name: str
    task: str
    train: Any
    dev: Any
    test: Any
    weight: float
    format: str | None
    choices: TaskChoices
    columns: dict[str, str]
    training: Training

    def asked(self) -> dict[str, Any]:
        """What it is known by: another value makes it another run."""
        learns = {name: getattr(self.training, name) for name in LEARNS}
        known = {"task": self.task, "weight": self.weight, **asdict(self.choices), **learns}
        return {f"{self.name}.{key}": value for key, value in known.items()}


def read_mix(path: str | Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """A TOML file: the settings of the run, and the table of each member; paths are taken from where the file lies."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BertsmithError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BertsmithError(f"{path} is not valid TOML: {error}.") from error
    members = content.pop("members", None)
    if not isinstance(members, dict) or not all(isinstance(table, dict) for table in members.values()):
        raise BertsmithError(f"{path} has no members; give each a table, as in [members.intent].")
    settings = {name.replace("-", "_"): value for name, value in content.items()}
    table = next((name for name, value in settings.items() if isinstance(value, dict)), None)
    if table is not None:
        raise BertsmithError(f"{path} has a table [{table}]; only members have tables, as in [members.{table}].")
    found = {name: {key.replace("-", "_"): value for key, value in table.items()} for name, table in members.items()}
    for given in found.values():
        given |= {key: _place(path.parent, given[key]) for key in (*DATA, "texts", "label_names") if key in given}
    return settings, found


def _place(folder: Path, given: Any) -> Any:
    return str(folder / given) if isinstance(given, str) and given != "-" else given


def sort_members(members: Any, shared: Mapping[str, Any], training: Training) -> dict[str, Member]:
    """`shared` are choices about tasks that were made for all; a member that has its own keeps it."""
    if not isinstance(members, Mapping):
        raise BertsmithError(f"members must be a dict, name to description, not {type(members).__name__}.")
    if len(members) < 2:
        there = f"there is only {next(iter(members))!r}" if members else "there are none"
        raise BertsmithError(f"a mix needs at least two members, but {there}; for one task leave members out.")
    found = {}
    for name, given in members.items():
        check_name(name)
        if not isinstance(given, Mapping):
            raise BertsmithError(f"member {name}: give a dict with task and train, not {type(given).__name__}.")
        try:
            found[name] = _sort(name, dict(given), shared, training)
        except BertsmithError as error:
            raise BertsmithError(f"member {name}: {error}") from error
    if all(member.task == MASK for member in found.values()):
        raise BertsmithError("all members are masked tokens; give at least one with a task of its own.")
    return found


def check_name(name: Any) -> None:
    """A member's name is that of a folder, of a head and of a metric."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name == "mean" or hasattr(nn.ModuleDict, name):
        raise BertsmithError(f"{name!r} cannot be a member's name; use another, of letters, digits, - and _.")


def _sort(name: str, given: dict[str, Any], shared: Mapping[str, Any], training: Training) -> Member:
    own = {key: given.pop(key) for key in OWN if key in given}
    _refuse_unknown(given)
    learns = {key: given.pop(key) for key in LEARNS if key in given}
    task = own.get("task")
    if not isinstance(task, str):
        raise BertsmithError('task is missing; say what it learns, as in task = "classify".')
    usable = {key: value for key, value in shared.items() if key not in given and _is_used(task, key)}
    choices, _, columns = sort_choices({**usable, **given})
    if task == MASK:
        _refuse_on_mask(own, given, learns)
        own["train"] = own.get("train", own.get("texts"))
    else:
        refuse_unused(task, choices)
        if own.get("train") is None:
            raise BertsmithError("train is missing; give the file it learns from.")
        if "texts" in own:
            raise BertsmithError('texts are for task = "mask" alone; give train.')
    return Member(
        name, task, own.get("train"), own.get("dev"), own.get("test"), _weight(own.get("weight", 1.0)),
        own.get("format"), choices, columns, replace(training, **{"metric": None, **learns}),
    )  # fmt: skip


def _is_used(task: str, choice: str) -> bool:
    return choice in OF_MASK if task == MASK else task in USED_BY.get(choice, (task,))


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    of_run = [field.name for field in fields(Training) if field.name not in LEARNS]
    known = [*OWN, *LEARNS, *COLUMNS, *(field.name for field in fields(TaskChoices))]
    for key in given:
        if key in of_run:
            raise BertsmithError(f"{key} is a setting of the whole run; give it outside of the members.")
        if key not in known:
            raise BertsmithError(f"{key} is not a setting of a member{suggest(key, known)}")


def _refuse_on_mask(own: Mapping[str, Any], given: Mapping[str, Any], learns: Mapping[str, Any]) -> None:
    columns = ("text", "pair")
    unfit = [key for key in (*own, *given, *learns) if key in ("dev", "test") or (
        key not in (*OWN, *OF_MASK, *columns, "batch"))]  # fmt: skip
    if unfit:
        raise BertsmithError(f"{unfit[0]} has no meaning for masked tokens; leave it out.")
    if own.get("train") is not None and own.get("texts") is not None:
        raise BertsmithError("train and texts are the same for masked tokens; give one of them.")
    if own.get("train", own.get("texts")) is None and any(key in given for key in columns):
        raise BertsmithError("a column is named, but no file of texts; give train, or leave the column out.")


def _weight(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given) or given <= 0:
        raise BertsmithError(f"weight is {given!r}; it must be a number above 0.")
    return float(given)
