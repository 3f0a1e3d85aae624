"""Labels that were never learnt, against the reference's zero-shot pipeline on made models of inference."""

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import SENTENCES, WORDS, bert_pieces, bytelevel_files, open_both, wordpiece_files

from bertsmith.errors import BertsmithError

NAMES = {
    "usual": ["contradiction", "neutral", "entailment"],
    "backwards": ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"],
    "two": ["entailment", "not_entailment"],
}
LABELS = ["city", "a lazy dog", "not good"]


def make(folder, family, names):
    files = wordpiece_files(bert_pieces()) if family == "bert" else bytelevel_files()
    named = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    made = open_both(folder, family, "classify", files, num_labels=len(names), **named)
    made.pipeline = transformers.pipeline("zero-shot-classification", model=made.reference, tokenizer=made.tokenizer)
    return made


@pytest.fixture(scope="module", params=["bert usual", "bert backwards", "bert two", "roberta usual"])
def both(request, tmp_path_factory):
    family, names = request.param.split()
    return make(tmp_path_factory.mktemp("nli"), family, NAMES[names])


@pytest.fixture(scope="module")
def nli(tmp_path_factory):
    return make(tmp_path_factory.mktemp("nli"), "bert", NAMES["usual"])


def scores(result):
    return {answer["label"]: answer["score"] for answer in result}


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("labels", [LABELS, LABELS[:1]])
@pytest.mark.parametrize("hypothesis", ["This example is {}.", "{} it is"])
def test_scores_are_those_of_the_pipeline(both, several, labels, hypothesis):
    found = both.ours.classify(SENTENCES, labels=labels, hypothesis=hypothesis, several=several)
    theirs = both.pipeline(SENTENCES, labels, hypothesis_template=hypothesis, multi_label=several)
    for ours, wanted in zip(found, theirs, strict=True):
        assert scores(ours) == pytest.approx(dict(zip(wanted["labels"], wanted["scores"], strict=True)), abs=1e-5)
        assert [answer["label"] for answer in ours] == wanted["labels"] and ours.truncated == 0


def test_a_long_text_is_cut_and_the_hypothesis_is_not(nli):
    long = "the fox is quick and " * 40
    ours = nli.ours.classify(long, labels=LABELS)
    nli.tokenizer.model_max_length = 64
    theirs = nli.pipeline(long, LABELS)
    assert scores(ours) == pytest.approx(dict(zip(theirs["labels"], theirs["scores"], strict=True)), abs=1e-5)
    assert ours.truncated > 0
    with pytest.raises(BertsmithError, match=r"at most 64 fit; choose truncate='head', 'tail' or 'head\+tail',"):
        nli.ours.classify(long, labels=LABELS, truncate="error")


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_the_order_of_labels_changes_nothing(nli, data):
    labels = data.draw(st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=5, unique=True))
    several = data.draw(st.booleans())
    one = nli.ours.classify(SENTENCES[0], labels=labels, several=several)
    two = nli.ours.classify(SENTENCES[0], labels=data.draw(st.permutations(labels)), several=several)
    assert scores(one) == pytest.approx(scores(two), abs=1e-6)
    if not several and len(labels) > 1:
        assert sum(scores(one).values()) == pytest.approx(1)


def test_one_text_a_list_and_the_best_few(nli):
    alone, (listed,) = nli.ours.classify(SENTENCES[0], labels=LABELS), nli.ours.classify(SENTENCES[:1], labels=LABELS)
    assert alone.answers == listed.answers
    assert nli.ours.classify([], labels=LABELS) == []
    best = nli.ours.classify(SENTENCES[0], labels=LABELS, top_k=1)
    assert best.answers == alone.answers[:1]


@pytest.mark.parametrize(
    ("given_labels", "more", "why"),
    [
        ([], {}, "labels must name one class or more, none of them empty."),
        (["a", " "], {}, "labels must name one class or more, none of them empty."),
        (["a", "b", "a "], {}, "the label 'a' is there twice; give each once."),
        ("a,b", {}, "labels must be a list, as in ['sport', 'politics'], not 'a,b'."),
        (["a"], {"hypothesis": "This is it."}, "hypothesis is 'This is it.'; it must hold {} once"),
        (["a"], {"hypothesis": "{} or {}"}, "hypothesis is '{} or {}'; it must hold {} once"),
        (["a"], {"pair": "b"}, "labels are judged for a text, whose pair is the hypothesis; leave the pair out."),
        (["a"], {"truncate": "windows"}, "classify has no meaning for truncate='windows'"),
        (["a"], {"top_k": 0}, "top_k is 0; it must be a whole number of at least 1."),
    ],
)
def test_bad_requests(nli, given_labels, more, why):
    with pytest.raises(BertsmithError) as error:
        nli.ours.classify("x", labels=given_labels, **more)
    assert str(error.value).startswith(why)


def test_a_model_of_other_classes_says_so(tmp_path, bert):
    other = make(tmp_path, "bert", ["pos", "neg"])
    with pytest.raises(BertsmithError, match=r"no one label for entailment \(its labels: pos, neg\).*trained on NLI"):
        other.ours.classify("x", labels=LABELS)
    with pytest.raises(BertsmithError, match="has no head to judge labels by inference"):
        bert.ours.classify("x", labels=LABELS)
