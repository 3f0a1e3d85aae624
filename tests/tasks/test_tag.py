"""Tagging by made models: the same entities as the reference's pipeline, and what it gets wrong."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks.made import CLOSE, SENTENCES, Both, bert_pieces, bytelevel_files, open_both, sentencepiece_files
from tasks.made import wordpiece_files as wordpiece

import bertsmith
from bertsmith.data.examples import TagExample
from bertsmith.data.schemes import allowed, read_spans
from bertsmith.errors import BertsmithError
from bertsmith.tasks.aggregation import MODES
from bertsmith.tasks.alignment import split_text
from bertsmith.tasks.tag import Tag

IOB = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
IOBES = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC"))]
TEXTS = [
    *SENTENCES,
    "Paris",
    "  two   spaces\tand\na line  ",
    "naïve café, Zürich; 東京 and москва!",
    "unaffable walking playing xylophone " * 2,
    "(a) U.S. don't - 3.14% e-mail/post",
]


def open_tagger(factory, family: str, files, labels: list[str], **more) -> Both:
    """A made model whose labels all occur: by themselves such models say the same of nearly every piece."""
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    folder = factory.mktemp(family)
    both = open_both(folder, family, "tag", files, num_labels=len(labels), **named, **more)
    with torch.no_grad():
        scores = torch.cat([both.reference(**both.tokenizer(text, return_tensors="pt")).logits[0] for text in TEXTS])
        both.reference.classifier.bias -= scores.mean(dim=0)
        for parameter in both.reference.classifier.parameters():
            parameter *= (2 / scores.std(dim=0)).view(-1, *[1] * (parameter.ndim - 1))
    both.reference.save_pretrained(folder)
    return Both(bertsmith.load(folder, device="cpu"), both.reference, both.tokenizer)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return open_tagger(tmp_path_factory, "bert", wordpiece(bert_pieces()), IOB)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    return open_tagger(tmp_path_factory, "roberta", bytelevel_files(), IOB)


@pytest.fixture(scope="module")
def albert(tmp_path_factory):
    return open_tagger(tmp_path_factory, "albert", sentencepiece_files(), IOB)


@pytest.fixture(scope="module")
def bert_iobes(tmp_path_factory):
    return open_tagger(tmp_path_factory, "bert", wordpiece(bert_pieces()), IOBES)


@pytest.fixture(params=["bert", "roberta", "albert"])
def tagger(request) -> Both:
    return request.getfixturevalue(request.param)


def make_task(both: Both, aggregation: str = "first", limit: int = 64, truncate: str = "windows", **changes) -> Tag:
    labels = [both.reference.config.id2label[i] for i in range(both.reference.config.num_labels)]
    return Tag(both.ours.tokenizer, limit, truncate, Tag.settings_from(labels, None) | changes, aggregation)


def tag(both: Both, example: str | TagExample, aggregation: str = "first", **more):
    given = split_text(example) if isinstance(example, str) else example
    return both.ours.predictor.predict(make_task(both, aggregation, **more), [given])[0]


@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
def ask_reference(both: Both, text: str, aggregation: str) -> list[dict]:
    pipeline = transformers.pipeline(
        "token-classification", model=both.reference, tokenizer=both.tokenizer, aggregation_strategy=aggregation
    )
    found = pipeline(text)
    for answer in found:  # the reference counts the spaces around a sentencepiece in
        covered = text[answer["start"] : answer["end"]]
        answer["start"] += len(covered) - len(covered.lstrip())
        answer["end"] -= len(covered) - len(covered.rstrip())
    return found


def assert_same(ours: list[dict], theirs: list[dict]) -> None:
    assert [{k: v for k, v in a.items() if k not in ("score", "word")} for a in ours] == [
        {k: v for k, v in a.items() if k not in ("score", "word")} for a in theirs
    ]
    np.testing.assert_allclose([a["score"] for a in ours], [a["score"] for a in theirs], atol=CLOSE)


@pytest.mark.parametrize("aggregation", MODES)
def test_answers_are_those_of_the_reference_for_wordpieces(bert, aggregation):
    found = 0
    for text in TEXTS:
        ours, theirs = tag(bert, text, aggregation), ask_reference(bert, text, aggregation)
        assert_same(ours.answers, theirs)
        found += len(theirs)
    assert found > 20


@pytest.mark.parametrize("aggregation", ["none", "simple"])
def test_pieces_are_those_of_the_reference_for_any_tokenizer(tagger, aggregation):
    for text in TEXTS:
        theirs = [
            a for a in ask_reference(tagger, text, aggregation) if a["end"] > a["start"] and a["word"].strip("▁ ")
        ]
        ours = tag(tagger, text, aggregation).answers
        if aggregation == "simple" and tagger.reference.config.model_type == "albert":
            # There a group that ends in a piece for a space reaches to the next word; ours ends with its last word.
            assert all(a["end"] <= b["end"] for a, b in zip(ours, theirs, strict=True))
            theirs = [b | {"end": a["end"]} for a, b in zip(ours, theirs, strict=True)]
        assert_same(ours, theirs)


@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
@pytest.mark.parametrize("aggregation", ["first", "average", "max"])
@pytest.mark.parametrize("text", ["the quick fox walking", "Paris is a capital city", "a naïve café in Berlin"])
def test_words_are_those_of_the_reference_where_spaces_part_them(roberta, text, aggregation):
    assert_same(tag(roberta, text, aggregation).answers, ask_reference(roberta, text, aggregation))


@pytest.mark.parametrize("aggregation", MODES)
def test_a_word_is_a_slice_of_the_text(tagger, aggregation):
    for text in TEXTS:
        result = tag(tagger, text, aggregation)
        assert result.truncated == 0
        assert len(result.tags) == len(split_text(text).spans)
        for answer in result:
            assert answer["word"] == text[answer["start"] : answer["end"]] != ""
            assert answer["word"] == answer["word"].strip()


def test_entities_and_tags_say_the_same(tagger):
    for text in TEXTS:
        example, result = split_text(text), tag(tagger, text)
        spans = read_spans(result.tags, "iob2")
        assert [(a["start"], a["end"], a["entity_group"]) for a in result] == [
            (example.spans[first][0], example.spans[end - 1][1], kind) for first, end, kind in spans
        ]
        assert all(allowed(a, b, "iob2") for a, b in pairwise([None, *result.tags, None]))


@pytest.mark.parametrize("aggregation", ["first", "average", "max"])
def test_the_trained_scheme_is_decoded_under_its_rules(bert, bert_iobes, aggregation):
    """Where the folder says that it is iob2 or iobes, the best allowed path is taken: all paths are tried."""
    differs = 0
    for both, scheme in ((bert, "iob2"), (bert_iobes, "iobes")):
        labels = make_task(both).labels
        for text in ("Paris is the capital", "walking fox dog", "a naïve dog", "unaffable cat !", "he is lazy"):
            task = make_task(both, aggregation, scheme=scheme, label_scheme=scheme)
            result = both.ours.predictor.predict(task, [split_text(text)])[0]
            chances = reference_words(both, text, aggregation)
            scores = {}
            for path in np.ndindex(*[len(labels)] * len(chances)):
                names = [None, *(labels[i] for i in path), None]
                if all(allowed(a, b, scheme) for a, b in pairwise(names)):
                    scores[path] = sum(np.log(c[i]) for c, i in zip(chances, path, strict=True))
            best = max(scores, key=scores.__getitem__)
            assert result.tags == [labels[i] for i in best]
            differs += list(best) != [int(c.argmax()) for c in chances]
            sure = [c[i] for c, i in zip(chances, best, strict=True)]
            means = [np.mean(sure[a:b]) for a, b, _ in read_spans(result.tags, scheme)]
            np.testing.assert_allclose([a["score"] for a in result], means, atol=CLOSE)
    assert differs > 0


def reference_words(both: Both, text: str, aggregation: str) -> list[np.ndarray]:
    """The reference's probabilities of each word, of BERT's words."""
    read = both.tokenizer(text, return_tensors="pt")
    chances = both.reference(**read).logits[0].softmax(dim=-1).detach().numpy()
    numbers = read.word_ids()
    words = [
        chances[[i for i, n in enumerate(numbers) if n == w]]
        for w in range(max(n for n in numbers if n is not None) + 1)
    ]
    pick = {"first": lambda c: c[0], "average": lambda c: c.mean(axis=0), "max": lambda c: c[c.max(axis=1).argmax()]}
    return [pick[aggregation](c) for c in words]


def test_iobes_labels_are_joined_which_the_reference_does_not(bert_iobes):
    result = tag(bert_iobes, SENTENCES[0])
    steps = pairwise([None, *result.tags, None])
    assert all(allowed(before, after, "iobes") for before, after in steps)
    assert [a["entity_group"] for a in result] == [kind for _, _, kind in read_spans(result.tags, "iobes")]


def test_words_as_given_are_kept_whatever_their_punctuation(tagger):
    words = ["U.S.", "e-mail", "don't", "...", "walking"]
    spans, text = [], ""
    for word in words:
        spans.append((len(text), len(text) + len(word)))
        text += word + " "
    result = tag(tagger, TagExample(text.rstrip(), tuple(spans)))
    assert len(result.tags) == 5
    edges = {edge for span in spans for edge in span}
    assert all({a["start"], a["end"]} <= edges for a in result)


@pytest.mark.parametrize("aggregation", MODES)
def test_nothing_to_tag(tagger, aggregation):
    for text in ("", "   ", "\n\n"):
        result = tag(tagger, text, aggregation)
        assert (list(result.tags), result.truncated) == ([], 0)
        assert not [a for a in result if a["word"].strip()]


@pytest.mark.parametrize("aggregation", MODES)
def test_a_word_without_a_piece_is_outside_and_moves_no_other(bert, aggregation):
    with_hole = TagExample("paris \u200b\x07 london", ((0, 5), (6, 8), (9, 15)))
    without = TagExample("paris    london", ((0, 5), (9, 15)))
    result, other = tag(bert, with_hole, aggregation), tag(bert, without, aggregation)
    assert result.tags[1] == "O"
    rows = make_task(bert).rows([with_hole])[0]
    assert rows[0].words == [0, 2]
    assert [t.partition("-")[2] for t in result.tags[::2]] == [t.partition("-")[2] for t in other.tags]


def test_plain_tags_give_an_answer_a_word(tmp_path_factory):
    both = open_tagger(tmp_path_factory, "bert", wordpiece(bert_pieces()), ["NOUN", "VERB", "DET"])
    task = make_task(both)
    assert (task.metric, task.scheme) == ("accuracy", "plain")
    result = both.ours.predictor.predict(task, [split_text(SENTENCES[0])])[0]
    assert [a["entity_group"] for a in result] == result.tags
    assert [a["word"] for a in result] == split_text(SENTENCES[0]).words
    chances = reference_words(both, SENTENCES[0], "first")
    np.testing.assert_allclose([a["score"] for a in result], [c.max() for c in chances], atol=CLOSE)


HOSTILE = [
    "paris",
    "Zürich",
    "e\u0301te\u0301",
    "🙂",
    "👩\u200d👧",
    "東京",
    "\u200b",
    "\ufeff",
    "…",
    "...",
    "a.b",
    "\ufb01",
]
HOSTILE += ["\ufb01", "ﷺ", "\x00", "\x85", "Ⅷ", "½", "\ud800", "[SEP]", "<s>", "▁", "Ġ", "ß", "İ", "\u3000"]
hostile = st.lists(st.sampled_from(HOSTILE), max_size=8)


@settings(max_examples=60)
@given(parts=hostile, gaps=st.lists(st.sampled_from(["", " ", "  ", "\t", "\n", "\u00a0"]), min_size=8, max_size=8))
@pytest.mark.parametrize("aggregation", ["first", "simple", "average"])
def test_any_text_keeps_its_words_and_offsets(bert, roberta, albert, aggregation, parts, gaps):
    text = "".join(part + gap for part, gap in zip(parts, gaps, strict=False))
    example = split_text(text)
    for both in (bert, roberta, albert):
        result = tag(both, example, aggregation)
        assert len(result.tags) == len(example.spans)
        starts, ends = ({span[side] for span in example.spans} for side in (0, 1))
        for answer in result:
            assert answer["word"] == text[answer["start"] : answer["end"]] != ""
            assert aggregation == "simple" or (answer["start"] in starts and answer["end"] in ends)


def test_an_unknown_aggregation_is_refused(bert):
    with pytest.raises(BertsmithError, match="none, simple, first, average, max"):
        make_task(bert, "best")
