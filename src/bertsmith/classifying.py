"""What heads of classes say of texts: classes that they learnt, labels that inference judges, numbers, and whether one
text follows another.

In: a `Model` and what it is asked. Out: `Result`s.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bertsmith.answering import answer_given, answer_texts, take_head
from bertsmith.data.examples import NumberExample, TextExample
from bertsmith.errors import BertsmithError
from bertsmith.resident import ZERO_SHOT, find_declared
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.follows import Follows, FollowsByClass
from bertsmith.tasks.regress import Regress
from bertsmith.tasks.texts import pair_up
from bertsmith.tasks.zero_shot import HYPOTHESIS, ZeroShot

if TYPE_CHECKING:
    from bertsmith.model import Model

HEAD = "classify", "classify texts"


def classify_texts(
    model: "Model", text: Any, pair: Any, top_k: int | None, raw: bool, apply: str | None, truncate: str | None
) -> Any:  # fmt: skip
    """By the classes of a head."""
    home = model.need(*HEAD, Classify.name, pair is not None)
    task = Classify(*take_head(home, *HEAD, Classify, truncate), top_k, raw, apply)
    texts, single = pair_up("classify", text, pair)
    return answer_given(home, task, [TextExample(a, b) for a, b in texts], single)


def refuse_mixture(judged: bool, pair: Any, hypothesis: str, several: bool, raw: bool, apply: str | None) -> None:
    """What is for labels that are judged, and what for classes that were learnt, is never given with the other."""
    if judged and (raw or apply is not None):
        raise BertsmithError("labels are judged by their chances; raw and apply are for a model's own classes.")
    if judged and pair is not None:
        raise BertsmithError("labels are judged for a text, whose pair is the hypothesis; leave the pair out.")
    if not judged and (several or hypothesis != HYPOTHESIS):
        raise BertsmithError("hypothesis and several say how labels are judged; give those too.")


def judge_labels(
    model: "Model", text: str | Sequence[str], labels: Sequence[str], hypothesis: str, several: bool,
    top_k: int | None, truncate: str | None,
) -> Any:  # fmt: skip
    """Classes that were never learnt, by a head of natural-language inference."""
    home = model.need("classify", "judge labels by inference", ZERO_SHOT)
    outputs = home.checkpoint.labels
    policy = "head" if truncate is None else truncate
    task = ZeroShot(model.tokenizer, model.limit, policy, outputs, labels, hypothesis, several, top_k)
    return answer_texts(home, task, text)


def score_texts(model: "Model", text: Any, pair: Any, truncate: str | None) -> Any:
    """By a head that learnt numbers, the one output of which is read as it is."""
    head = "classify", "give a number"
    home = model.need(*head, Regress.name, pair is not None)
    task = Regress(*take_head(home, *head, Regress, truncate))
    texts, single = pair_up("score", text, pair)
    return answer_given(home, task, [NumberExample(a, b) for a, b in texts], single)


def follow_texts(model: "Model", a: Any, b: Any, truncate: str) -> Any:
    """By the adapter that is declared for it, or by the head of pretraining."""
    declared = find_declared(model, "follows")
    pairs, single = pair_up("follows", a, b)
    if declared is not None:
        by_class = FollowsByClass(*take_head(declared, *HEAD, Classify, truncate))
        return answer_given(declared, by_class, [TextExample(a, b) for a, b in pairs], single)
    home = model.need("follows", "tell whether one text follows another")
    task = Follows(model.tokenizer, model.limit, truncate, home.checkpoint.heads["follows"].labels)
    return answer_given(model, task, pairs, single)
