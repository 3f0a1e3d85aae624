"""What the jobs of a `Model` share: what a task is made from, and its examples through the network.

In: a `Model`, a task and its examples. Out: one answer for one input, a list for several.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from bertsmith.errors import BertsmithError
from bertsmith.tasks.texts import is_iterable, list_texts
from bertsmith.tasks.trained import TrainedTask
from bertsmith.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bertsmith.model import Model

VERBS = {"span": "answer", "regress": "score"}  # tasks that are called otherwise where they are asked
log_cuts = logging.getLogger("bertsmith.cuts")


def answer_all(model: "Model", task: Any, examples: Sequence[Any], called: str = "") -> list[Any]:
    """An answer for each example, by the model or the adapter on it that has the head; one warning for all cuts.

    An example at fault is `called` by its number, as in "text 2", where it is one of several.
    """
    home = model.need(task.head, "do that", task.name) if task.head else model
    try:
        answers: list[Any] = home.predictor.predict(task, examples)
    except BertsmithError:
        if called and len(examples) > 1:
            _name_fault(task, examples, called)
        raise
    cut = [answer.truncated for answer in answers if answer.truncated]
    if cut:
        log_cuts.warning(
            "%s: %d of %d inputs were longer than %d tokens; %d tokens were cut (truncate=%r)",
            VERBS.get(task.name, task.name), len(cut), len(examples), getattr(task, "length", home.limit), sum(cut),
            task.truncate,
        )  # fmt: skip
    return answers


def _name_fault(task: Any, examples: Sequence[Any], called: str) -> None:
    """The error of the first example that cannot be asked about, if it is the examples' fault at all."""
    for number, example in enumerate(examples, 1):
        try:
            next(task.talk(example, *task.rows([example])), None)
        except BertsmithError as error:
            raise BertsmithError(f"{called} {number}: {error}") from None


def answer_given(model: "Model", task: Any, examples: Sequence[Any], is_single: bool, called: str = "text") -> Any:
    """The answer where one input was given, as the only example; else all of them."""
    answers = answer_all(model, task, examples, called)
    return answers[0] if is_single else answers


def answer_texts(model: "Model", task: Any, given: str | Sequence[str]) -> Any:
    """For a task whose examples are plain texts."""
    is_single = isinstance(given, str)
    return answer_given(model, task, [given] if is_single else list_texts(given), is_single)


def list_examples(kind: type[TrainedTask[Any, Any]], given: Any) -> list[Any]:
    """The examples of a task, which says of what class they are (`TrainedTask[Example, Answer]`) or takes any."""
    if isinstance(given, str | bytes | Mapping) or not is_iterable(given):
        raise BertsmithError(f"give a list of examples, not {type(given).__name__}.")
    bases = [base for one in kind.__mro__ for base in getattr(one, "__orig_bases__", ())]
    wanted = next((inner[0] for inner in map(get_args, bases) if inner and isinstance(inner[0], type)), object)
    listed = list(given)
    for number, example in enumerate(listed, 1):
        if not isinstance(example, wanted):
            raise BertsmithError(
                f"example {number} of {kind.name} must be a {wanted.__name__}, not {type(example).__name__}."
            )
    return listed


def take_head(
    model: "Model", head: str, what: str, kind: type[TrainedTask[Any, Any]], truncate: str | None
) -> tuple[Tokenizer, int, str, dict[str, Any]]:
    """What a task of this kind is made from."""
    settings = model.need(head, what, kind.name).task_settings(kind)
    return model.tokenizer, model.limit, settings["truncate"] if truncate is None else truncate, settings


def answer_kind(model: "Model", kind: type[TrainedTask[Any, Any]], examples: Any, truncate: str | None) -> list[Any]:
    """For any task that the model was fine-tuned for, a person's own too."""
    given = list_examples(kind, examples)
    if kind.head is None:
        settings = model.task_settings(kind)
        policy = settings["truncate"] if truncate is None else truncate
        return answer_all(model, kind(model.tokenizer, model.limit, policy, settings), given)
    task = kind(*take_head(model, kind.head, f"answer {kind.name}", kind, truncate))
    return answer_all(model, task, given)
