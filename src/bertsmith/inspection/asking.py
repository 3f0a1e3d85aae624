"""Every job as aims: which row was read, and which of the head's numbers made its answer.

In: a model, the job's name and what it is asked, as the method of that name takes it. Out: an `Asked`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.data.examples import NumberExample, TextExample
from bertsmith.errors import BertsmithError
from bertsmith.inspection.aims import Able, Aim, Asked, pick, see
from bertsmith.inspection.asking_places import ask_answer, ask_fill, ask_tag
from bertsmith.resident import find_declared
from bertsmith.tasks.choose import Choose, offer
from bertsmith.tasks.classes import positive_label
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.embed import Embed, dress_texts
from bertsmith.tasks.follows import Follows
from bertsmith.tasks.regress import Regress
from bertsmith.tasks.rerank import Rerank, ask_ranks
from bertsmith.tasks.task import Row, Task
from bertsmith.tasks.zero_shot import ZeroShot
from bertsmith.text.encoding import Encoding


def ask(
    model: Able, job: str, given: Sequence[Any], *, target: Any = None, at: int | str | None = None,
    labels: Sequence[str] | None = None,
) -> Asked:  # fmt: skip
    """`given` is what the model's method of that name takes; see `attribution.attribute`."""
    if job not in JOBS:
        raise BertsmithError(f"job={job!r} is not a choice; use one of {', '.join(JOBS)}.")
    fewest, most, wants = COUNTS[job]
    if not fewest <= len(given) <= most:
        raise BertsmithError(f"{job} takes {wants}, but {len(given)} {'was' if len(given) == 1 else 'were'} given.")
    texts = [each for each in given if each is not None]
    wrong = next((each for each in texts[: 1 if job in LISTS else None] if not isinstance(each, str)), None)
    if wrong is not None:
        raise BertsmithError(f"{job} is explained for one input at a time: {wants}, not {type(wrong).__name__}.")
    if at is not None and job not in ("fill", "tag"):
        raise BertsmithError(f"at names a mask (fill) or a word (tag), which {job} has no use for; leave it out.")
    if labels is not None:
        if job != "classify" or len(texts) != 1:
            raise BertsmithError("labels are judged by classify for one text; leave them out, or leave the pair out.")
        return _ask_labels(model, texts[0], labels, target)
    return JOBS[job](model, texts, target, at)


def _ask_classify(model: Able, texts: list[str], target: Any, at: Any) -> Asked:
    home, task = _open(model, Classify, "classify texts", len(texts) > 1)
    encoding, row = _lay(task, task.rows([TextExample(*_split(texts))])[0], *texts)
    number = pick(target, task.labels, "label", see(home, task, [row])[0][0])
    aim = Aim(_name(texts), tuple(texts), encoding, row, task, _take(number))
    return Asked("classify", home, task.labels[number], f"the raw score (logit) of {task.labels[number]!r}", [aim])


def _ask_score(model: Able, texts: list[str], target: Any, at: Any) -> Asked:
    _refuse_target(target, "score gives one number")
    home, task = _open(model, Regress, "give a number", len(texts) > 1)
    encoding, row = _lay(task, task.rows([NumberExample(*_split(texts))])[0], *texts)

    def number(scores: Tensor) -> Tensor:
        return scores[0, 0] * task.spread + task.mean

    aim = Aim(_name(texts), tuple(texts), encoding, row, task, number)
    return Asked("score", home, "score", "the number that the model gives", [aim])


def _ask_follows(model: Able, texts: list[str], target: Any, at: Any) -> Asked:
    home = _find_declared(model, "follows")
    if home is not None:  # a class of pairs, on an adapter
        return replace(_ask_classify(home, texts, target, at), job="follows")
    home = model.need("follows", "tell whether one text follows another")
    task = Follows(model.tokenizer, model.limit, "head", home.checkpoint.heads["follows"].labels)
    encoding, row = _lay(task, task.rows([(texts[0], texts[1])])[0], *texts)
    number = pick(target, task.labels, "label", see(home, task, [row])[0][0])
    aim = Aim("both texts", tuple(texts), encoding, row, task, _take(number))
    return Asked("follows", home, task.labels[number], f"the raw score (logit) of {task.labels[number]!r}", [aim])


def _ask_labels(model: Able, text: str, labels: Sequence[str], target: Any) -> Asked:
    """A class that was never learnt: how far the text entails its hypothesis."""
    home = model.need("classify", "judge labels by inference", "zero-shot")
    task = ZeroShot(model.tokenizer, model.limit, "head", home.checkpoint.labels, labels)
    rows = task.rows([text])[0]
    entailed = torch.stack([scores[0, task.entails] for scores in see(home, task, rows)])
    number = pick(target, task.labels, "label", entailed)
    pair = (text, task.hypotheses[number])
    aim = Aim("text and hypothesis", pair, *_lay(task, [rows[number]], *pair), task, _take(task.entails))
    explained = f"the raw score (logit) that the text entails {task.hypotheses[number]!r}"
    return Asked("classify", home, task.labels[number], explained, [aim])


def _ask_choose(model: Able, texts: list[Any], target: Any, at: Any) -> Asked:
    home, task = _open(model, Choose, "choose")
    (example,) = offer(texts[0], texts[1])
    rows = task.rows([example])[0]
    scores = torch.stack([scores[0, 0] for scores in see(home, task, rows)])
    number = pick(target, example.choices, "choice", scores)
    pair = (example.prompt, example.choices[number])
    aim = Aim("prompt and choice", pair, *_lay(task, [rows[number]], *pair), task, _take(0))
    return Asked("choose", home, pair[1], "the raw score (logit) of this choice", [aim])


def _ask_rerank(model: Able, texts: list[Any], target: Any, at: Any) -> Asked:
    home, task = _open(model, Rerank, "rerank texts")
    (example,) = ask_ranks(texts[0], texts[1])
    yes = positive_label(task.labels) if len(task.labels) == 2 else 0

    def number(scores: Tensor) -> Tensor:
        return scores[0, yes] - scores[0, 1 - yes] if len(task.labels) == 2 else scores[0, 0]

    rows = task.rows([example])[0]
    chosen = pick(target, example.texts, "text", torch.stack([number(each) for each in see(home, task, rows)]))
    pair = (example.query, example.texts[chosen])
    aim = Aim("query and text", pair, *_lay(task, [rows[chosen]], *pair), task, number)
    return Asked("rerank", home, pair[1], "the raw score (logit) of this text for the query", [aim])


def _ask_similar(model: Able, texts: list[str], target: Any, at: Any) -> Asked:
    """Either text is explained while the other stays as it is: both as nothing at all would be alike."""
    _refuse_target(target, "similar gives one number")
    home: Any = _find_declared(model, "embed") or model
    sentence = home.sentence
    task = Embed(home.tokenizer, home.limit, "head", sentence.pooling, normalize=True)
    name = sentence.default_prompt
    before = sentence.prompts.get(name, name) if name else ""
    dressed = dress_texts(texts, before, sentence.lower)
    rows = [some[0] for some in task.rows(dressed)]
    vectors = see(home, task, rows)
    aims = [
        Aim(side, (text,), *_lay(task, [row], text), task, _compare(other))
        for side, text, row, other in zip(("first text", "second text"), dressed, rows, vectors[::-1], strict=True)
    ]
    cosine = float(_compare(vectors[1])(vectors[0]))
    return Asked("similar", home, f"cosine {cosine:.3f}", "the cosine of the two vectors", aims)


def _compare(other: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda vector: F.cosine_similarity(vector, other.to(vector), dim=-1)


def _take(number: int) -> Callable[[Tensor], Tensor]:
    return lambda scores: scores[0, number]


def _find_declared(model: Any, job: str) -> Any:
    """Who answers where the bare encoder could, as the model's method of that name chooses."""
    return find_declared(model, job)


def _open(model: Able, kind: Any, what: str, pairs: bool | None = None) -> tuple[Any, Any]:
    """The model or adapter that has the head, and the task; windows, which are many rows, give way to one cut row."""
    home = model.need(kind.head, what, kind.name, pairs)
    settings = home.task_settings(kind)
    policy = "head" if settings["truncate"] == "windows" else settings["truncate"]
    return home, kind(model.tokenizer, model.limit, policy, settings)


def _lay(task: Task[Any, Any], rows: Sequence[Row], *texts: str) -> tuple[Encoding, Row]:
    """The task's own row, and the encoding that tells its words."""
    encoding = task.tokenizer.encode(*texts, length=getattr(task, "length", task.limit), truncate=task.truncate)
    assert list(encoding.ids) == list(rows[0].ids)
    return encoding, rows[0]


def _split(texts: Sequence[str]) -> tuple[str, str | None]:
    return texts[0], texts[1] if len(texts) > 1 else None


def _name(texts: Sequence[str]) -> str:
    return "text" if len(texts) == 1 else "both texts"


def _refuse_target(target: Any, why: str) -> None:
    if target is not None:
        raise BertsmithError(f"{why}, so that there is no target to choose; leave it out.")


JOBS: dict[str, Callable[[Able, list[Any], Any, Any], Asked]] = {
    "fill": ask_fill, "follows": _ask_follows, "classify": _ask_classify, "score": _ask_score, "tag": ask_tag,
    "answer": ask_answer, "choose": _ask_choose, "rerank": _ask_rerank, "similar": _ask_similar,
}  # fmt: skip
LISTS = ("choose", "rerank")  # whose second is a list
COUNTS = {
    "fill": (1, 1, "one text with a mask"), "follows": (2, 2, "two texts"),
    "classify": (1, 2, "a text or a pair of texts"), "score": (1, 2, "a text or a pair of texts"),
    "tag": (1, 1, "one text"), "answer": (2, 2, "a question and a context"),
    "choose": (2, 2, "a prompt and a list of choices"), "rerank": (2, 2, "a query and a list of texts"),
    "similar": (2, 2, "two texts"),
}  # fmt: skip
