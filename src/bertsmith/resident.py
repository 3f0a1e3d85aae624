"""Adapters on a loaded model: any number of them on one encoder's memory, and which of them can do a job.

In: a `Model` and the name or the folder of an adapter. Out: a `Model` that shares everything but the adapter.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import MEMBERS, is_adapter
from bertsmith.models.adapters import choose_sentence, read_adapter
from bertsmith.models.files import TASK_FILE, read_json
from bertsmith.models.graph import GraphNetwork
from bertsmith.tasks.catalog import HOMES
from bertsmith.tasks.zero_shot import judges_labels

if TYPE_CHECKING:
    from bertsmith.model import Model

NAMED, DEFAULTS = "adapters", "default_for"  # in a base's bertsmith.json
DOES = "does"  # in that of a model which was an adapter: the job that it was declared for
ZERO_SHOT = "zero-shot"
# What may have a default among a base's adapters, and the task that such an adapter learnt.
JOBS = {
    "classify": "classify",
    "classify-pair": "classify",  # a pair of texts
    "follows": "classify",  # for a family without a head of its own for that
    ZERO_SHOT: ZERO_SHOT,  # labels that were never learnt, by an adapter of natural-language inference
    "score": "regress",
    "rerank": "rerank",
    "tag": "tag",
    "answer": "span",
    "choose": "choose",
    "embed": "embed",
}
HEADS = {"classify": "classify", "classify-pair": "classify", "follows": "classify", ZERO_SHOT: "classify",
         "score": "classify", "tag": "tag", "answer": "span", "choose": "choose"}  # fmt: skip


def read_trained(folder: Path) -> dict[str, Any]:
    """What a fine-tuning left about its task."""
    return read_json(folder / TASK_FILE) if (folder / TASK_FILE).exists() else {}


def list_adapters(folder: Path) -> dict[str, Path]:
    """The adapters in a model's own folder: those that its bertsmith.json names, in order, else all that lie there."""
    there = {place.name: place for place in sorted((folder / MEMBERS).glob("*")) if is_adapter(place)}
    trained = read_trained(folder)
    names = trained.get(NAMED, [*there])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BertsmithError(f"{folder / TASK_FILE} must name its adapters in a list, not as {names!r:.60}.")
    lost = [name for name in names if name not in there]
    if lost:
        raise BertsmithError(f"{folder} lacks the adapter {lost[0]!r} that its {TASK_FILE} names; copy it again.")
    check_defaults(trained.get(DEFAULTS, {}), names, folder / TASK_FILE)
    return {name: there[name] for name in names}


def check_defaults(given: object, names: Collection[str], path: Path | str) -> None:
    """Each default must be for a job that there is, and one of the adapters."""
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given.values()):
        raise BertsmithError(f"{path} must give {DEFAULTS} as the name of an adapter for each job, not {given!r:.60}.")
    for job, name in given.items():
        if job not in JOBS:
            raise BertsmithError(f"{path} has a default for {job!r}; jobs that can have one are {', '.join(JOBS)}.")
        if name not in names:
            known = ", ".join(names) or "none"
            raise BertsmithError(f"{path} names {name!r} as the default for {job}; its adapters are {known}.")


def check_able(model: "Model", defaults: Mapping[str, str]) -> None:
    """A default that could not do its job would never be asked."""
    for job, name in defaults.items():
        head, learnt = HEADS.get(job), model.adapters[name].trained.get("task")
        is_able = head in model.adapters[name].checkpoint.heads and _is_meant(model.adapters[name], JOBS[job])
        if head is not None and not is_able:
            told = f" (it was fine-tuned for {learnt})" if learnt else ""
            raise BertsmithError(f"the adapter {name!r} cannot be the default for {job}, which it did not learn{told}.")


def put_adapter(model: "Model", given: str | Path) -> "Model":
    """The model with an adapter from a folder."""
    try:
        folder = Path(given).expanduser()
        is_there = is_adapter(folder)
    except (OSError, ValueError, RuntimeError):
        is_there = False
    if not is_there:
        if not model.adapters:
            raise BertsmithError(f"{str(given)!r} is not the folder of an adapter; name one that is.")
        known = f"its adapters are {', '.join(model.adapters)}"
        raise BertsmithError(f"{model.folder} has no adapter {str(given)!r} ({known}), and there is no folder of one.")
    checkpoint = read_adapter(folder, model.checkpoint)
    checkpoint.network.pack()  # of the head, where the base is packed
    sentence = choose_sentence(folder, model.sentence)
    return type(model)(
        folder, checkpoint, sentence, model.device, model.predictor.budget, read_trained(folder), base=model
    )


def find_declared(model: "Model", job: str) -> "Model | None":
    """The adapter that the folder declares for a job, itself too; a model that was one; nobody where the model has a
    head of its own."""
    if job in model.checkpoint.heads:
        return None
    if model.trained.get(DOES) == job:
        return model
    base = model.base or model
    declared = base.adapters.get(base.trained.get(DEFAULTS, {}).get(job, ""))
    return declared if model in (base, declared) else None


def find_default_home(model: "Model", job: str) -> "Model":
    """The adapter that the folder declares for a job which the bare encoder can do too; else the model itself."""
    return find_declared(model, job) or model


def find_home(model: "Model", head: str, what: str, task: str, pairs: bool | None = None) -> "Model":
    """The model itself, or the one of its adapters that has the head; `task` is what the head was trained for.

    Of several, those count that learnt from pairs of texts, if that is asked about, or from single ones; of these the
    one that the folder declares as its default for the job.
    """
    if head in model.checkpoint.heads:
        if task == "rerank" and not rank_how(model):
            raise BertsmithError(
                f"{model.folder} was fine-tuned for {model.trained['task']!r} and cannot {what}; give a model that was "
                f"fine-tuned for that (finetune, task 'rerank')."
            )
        return model
    able = {name: other for name, other in model.adapters.items() if head in other.checkpoint.heads}
    meant = {name: other for name, other in able.items() if _is_meant(other, task)} or able
    if task == "rerank":
        how = {name: rank_how(other) for name, other in able.items()}
        meant = {name: other for name, other in able.items() if how[name] and how[name] == max(how.values())}
    if pairs is not None and len(meant) > 1:
        meant = {name: other for name, other in meant.items() if _reads_pairs(other) in (pairs, None)} or meant
    default = _find_default(model, task, pairs)
    if default in meant or len(meant) == 1:
        return meant[default] if default in meant else next(iter(meant.values()))
    if meant:
        raise BertsmithError(
            f"several adapters of {model.folder} can {what}: {', '.join(meant)}; say which (use {next(iter(meant))!r})."
        )
    there = ", ".join(name for name in model.checkpoint.heads if name != "pool") or "none"
    there += f"; of its adapters: {', '.join(model.adapters)}" if model.adapters else ""
    name = task if task in HOMES else head
    can_learn = name in HOMES and not isinstance(model.checkpoint.network, GraphNetwork)
    first = f"fine-tune it for that (finetune, task {name!r}), or " if can_learn else ""
    raise BertsmithError(f"{model.folder} has no head to {what} (heads there: {there}); {first}give another model.")


def _find_default(model: "Model", task: str, pairs: bool | None) -> str:
    defaults = model.trained.get(DEFAULTS, {})
    job = next((job for job in JOBS if JOBS[job] == task), "")
    return str(defaults.get(f"{job}-pair" if pairs and f"{job}-pair" in defaults else job, ""))


def _is_meant(model: "Model", task: str) -> bool:
    """Whether the model was trained for the task; of one that was trained elsewhere nobody knows."""
    if task == ZERO_SHOT:
        return judges_labels(model.checkpoint.labels)
    return not task or model.trained.get("task") in (task, None)


def rank_how(model: "Model") -> int:
    """How well a model of this training compares a query with a text: 3 it learnt that, or was trained elsewhere;
    2 it gives pairs of texts a number; 1 it tells two classes of pairs; 0 not at all."""
    task = model.trained.get("task")
    if task in ("rerank", None):
        return 3
    pairs = _reads_pairs(model)
    if task == "regress":
        return 0 if pairs is False else 2
    return int(task == "classify" and bool(pairs) and len(model.checkpoint.labels) <= 2)


def _reads_pairs(model: "Model") -> bool | None:
    settings = model.trained.get("settings")
    found = settings.get("pairs") if isinstance(settings, dict) else None
    return found if isinstance(found, bool) else None
