"""Whether B follows A: BERT's next-sentence and ALBERT's sentence-order head against the reference."""

import pytest
import torch
from tasks.made import CLOSE, Both

from bertsmith.errors import BertsmithError

PAIRS = [
    ("Paris is the capital of France.", "London is not."),
    ("it", "the quick brown fox " * 2),
    ("", "dog"),
    ("dog", "  "),
]


def test_two_empty_texts(bert_pairs):
    assert sum(answer["score"] for answer in bert_pairs.ours.follows("", "")) == pytest.approx(1)


def chances(both: Both, a: str, b: str) -> list[float]:
    row = both.tokenizer(a, b, return_tensors="pt", return_token_type_ids=True)
    with torch.no_grad():
        found = both.reference(**row)
    logits = found.sop_logits if hasattr(found, "sop_logits") else found.seq_relationship_logits
    return logits.softmax(dim=-1)[0].tolist()


@pytest.mark.parametrize(
    ("model", "labels"), [("bert_pairs", ("follows", "random")), ("albert_pairs", ("follows", "swapped"))]
)
def test_probabilities(request, model, labels):
    both = request.getfixturevalue(model)
    results = both.ours.follows([a for a, _ in PAIRS], [b for _, b in PAIRS])
    for (a, b), result in zip(PAIRS, results, strict=True):
        found = {answer["label"]: answer["score"] for answer in result}
        assert found == pytest.approx(dict(zip(labels, chances(both, a, b), strict=True)), abs=CLOSE)
        assert result[0]["score"] >= result[1]["score"]
        alone = both.ours.follows(a, b)
        assert [x["label"] for x in alone] == [x["label"] for x in result]


def test_the_order_matters(bert_pairs):
    a, b = PAIRS[0]
    scores = [{x["label"]: x["score"] for x in bert_pairs.ours.follows(*pair)}["follows"] for pair in ((a, b), (b, a))]
    assert abs(scores[0] - scores[1]) > 100 * CLOSE


def test_a_model_without_the_head(bert):
    with pytest.raises(BertsmithError, match=r"no head to tell whether one text follows another \(heads there: mask\)"):
        bert.ours.follows("a", "b")


def test_one_text_and_a_list(bert_pairs):
    with pytest.raises(BertsmithError, match="two texts or two lists"):
        bert_pairs.ours.follows("a", ["b"])


def test_unequal_lists(bert_pairs):
    with pytest.raises(BertsmithError, match="2 first texts and 1 second"):
        bert_pairs.ours.follows(["a", "b"], ["b"])
    assert bert_pairs.ours.follows([], []) == []
