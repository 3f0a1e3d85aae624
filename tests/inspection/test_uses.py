"""Words found whole in texts, and their vectors against the reference's hidden states."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tasks.made import (
    CLOSE,
    SENTENCES,
    bert_pieces,
    bytelevel_files,
    open_both,
    sentencepiece_files,
    wordpiece_files,
)

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.inspection.uses import WordPattern

FILES = {
    "bert": lambda: wordpiece_files(bert_pieces()),
    "roberta": bytelevel_files,
    "albert": sentencepiece_files,
}


@pytest.fixture(scope="module", params=FILES)
def both(request, tmp_path_factory, one_thread):
    return open_both(tmp_path_factory.mktemp(request.param), request.param, "mask", FILES[request.param]())


@pytest.fixture(scope="module")
def bert(tmp_path_factory, one_thread):
    return open_both(tmp_path_factory.mktemp("bert"), "bert", "mask", FILES["bert"]())


@given(st.text("bankB _-'’.,é9ß\n", max_size=40), st.sampled_from(["bank", "an", "b", "ab-b", "a a"]))
def test_whole_words_as_a_regular_expression_finds_them(text, word):
    spelled = re.sub(" ", r"\\s+", re.escape(word).replace(r"\ ", " "))
    expected = [found.span() for found in re.finditer(rf"(?<!\w){spelled}(?!\w)", text, re.IGNORECASE)]
    assert WordPattern(word, is_folded=True).find(text) == expected


@given(
    st.lists(st.sampled_from(["bank", "Bank", "banks", "riverbank", "bank\u0301", "é", "!", "🙂", "a_bank", "银行"]))
)
def test_every_word_that_stands_alone_is_found(words):
    text, place, expected = " ".join(words), 0, []
    for word in words:
        if word.casefold() == "bank":
            expected.append((place, place + 4))
        place += len(word) + 1
    assert WordPattern("bank", is_folded=True).find(text) == expected


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("bank", "The bank's bank-bank (bank)", ["bank"] * 4),
        ("bank", "banker embank bank2 _bank", []),
        ("C++", "C++ and C++11, not AC++", ["C++", "C++"]),
        ("New  York", "in New York, in New\nYork", ["New York", "New\nYork"]),
        ("café", "cafe\u0301 or café", ["cafe\u0301", "café"]),
        ("银行", "我去银行取钱", ["银行"]),
        ("a.c", "abc a.c", ["a.c"]),
        ("bank", "🙂bank🙂", ["bank"]),
    ],
)
def test_words_in_their_places(word, text, found):
    pattern = WordPattern(word, is_folded=False)
    assert [text[start:end] for start, end in pattern.find(text)] == found


def test_case_counts_where_the_tokenizer_tells_it_apart(both):
    text = "The fox and THE dog, the cat."
    found = bertsmith.inspect.word_vectors(both.ours, "the", [text])
    is_cased = both.reference.config.model_type == "roberta"
    assert [text[use.start : use.end] for use in found.uses] == (["the"] if is_cased else ["The", "THE", "the"])


@pytest.mark.parametrize(
    ("word", "text"), [("walking", SENTENCES[2]), ("capital", SENTENCES[0]), ("Berlin", SENTENCES[3])]
)
def test_means_of_the_reference_states(both, word, text):
    found = bertsmith.inspect.word_vectors(both.ours, word, [text])
    row = both.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    spans = row.pop("offset_mapping")[0].tolist()
    start = text.index(word)
    at = [i for i, (s, e) in enumerate(spans) if s < start + len(word) and e > start and text[s:e].strip()]
    if both.reference.config.model_type == "albert":  # its lone "▁" claims the letter behind it
        at = [i for i in at if row["input_ids"][0, i] != both.tokenizer.convert_tokens_to_ids("▁")]
    with torch.no_grad():
        states = torch.cat(both.reference(**row, output_hidden_states=True).hidden_states)
    assert found.vectors.shape == (1, 4, 48)
    assert found.vectors.dtype == np.float32
    assert np.abs(found.vectors[0] - states[:, at].mean(dim=1).numpy()).max() < CLOSE
    assert list(found.uses[0].pieces) == both.tokenizer.convert_ids_to_tokens(row["input_ids"][0, at])


def test_every_use_and_only_these_layers(bert):
    sentences = ["the dog and the cat", {"text": "is the fox", "label": 7}, {"sentence": "the", "label": None}]
    found = bertsmith.inspect.word_vectors(bert.ours, "the", sentences, layers=[-1, 0])
    whole = bertsmith.inspect.word_vectors(bert.ours, "the", sentences)
    assert [(use.number, use.start, use.label) for use in found.uses] == [
        (0, 0, None), (0, 12, None), (1, 3, "7"), (2, 0, None),
    ]  # fmt: skip
    assert found.layers == [3, 0]
    assert np.array_equal(found.vectors, whole.vectors[:, [3, 0]])


def test_a_long_sentence_is_read_around_the_word(bert):
    """Both uses lie beyond what a row holds; each is read in the window in which it is most central."""
    text = "dog " * 100 + "paris " + "cat " * 100 + "paris"
    found = bertsmith.inspect.word_vectors(bert.ours, "paris", [text], layers=[3])
    windows = bert.ours.tokenizer.windows(text, length=64, overlap=31)
    paris = bert.ours.tokenizer.id("paris")
    unseen = 0
    for use, vector in zip(found.uses, found.vectors, strict=True):
        places = []
        for window in windows:
            for place, (id, span) in enumerate(zip(window.ids, window.offsets, strict=True)):
                if id == paris and span == (use.start, use.end):
                    places.append((min(place, len(window) - 1 - place), place, window.ids))
        _, place, ids = max(places)
        unseen += 204 - len(ids)
        with torch.no_grad():
            state = bert.reference(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0, place]
        assert np.abs(vector[0] - state.numpy()).max() < CLOSE
    assert found.truncated == unseen


@pytest.mark.parametrize(
    ("word", "sentences", "message"),
    [
        ("cat", ["the dog"], r"sentence 1 \('the dog'\) does not hold 'cat'; leave it out"),
        ("cat", ["the cat", "the cats"], "sentence 2 .* as a word of its own"),
        (" ", ["the cat"], "word is empty"),
        (None, ["the cat"], "word is None; it must be a string"),
        ("cat", "the cat", "sentences is a list of texts, not str"),
        ("cat", [3], "sentence 1 must be a text, .* not int"),
        ("cat", [{"label": "x"}], "sentence 1 must be a text"),
        ("\u200b\u200b", ["a \u200b\u200b b"], "leaves nothing of"),
    ],
)
def test_mistakes_in_a_sentence(bert, word, sentences, message):
    with pytest.raises(BertsmithError, match=message):
        bertsmith.inspect.word_vectors(bert.ours, word, sentences)
