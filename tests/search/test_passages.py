"""Passages are spans of their document that lose nothing and stay near their length."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.search import passages
from bertsmith.search.passages import cut_passages, find_blocks

WORDS = ["the", "river", "town", "was", "good", "very", "atom", "1861", "naïve", "café", "東京都", "don't", "x", "🎉"]
MARKS = [". ", "! ", "\n", "\n\n", " \r\n\r\n", "# ", "```\n", "---\n", "\t", "\x00", "。", "\ud800"]
PIECES = st.sampled_from([*WORDS, *MARKS])
TEXTS = st.lists(PIECES, max_size=200).map(lambda parts: " ".join(parts).replace("  ", " "))


def texts_of(text, tokenizer, tokens, **options):
    return [text[start:end] for start, end in cut_passages(text, tokenizer, tokens, **options)]


@settings(max_examples=150)
@given(TEXTS, st.integers(4, 40), st.booleans())
def test_every_character_but_spaces_is_in_exactly_one_passage(tokenizer, text, tokens, markdown):
    spans = cut_passages(text, tokenizer, tokens, markdown)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert all(start < end and text[start:end] == text[start:end].strip() for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


@settings(max_examples=80)
@given(TEXTS, st.integers(4, 40))
def test_no_passage_is_longer_than_asked(encoder, text, tokens):
    """WordPiece cuts a word alike wherever it stands; other vocabularies may need a piece more without its space."""
    for passage in texts_of(text, encoder.tokenizer, tokens):
        assert len(encoder.tokenizer.encode(passage).ids) <= max(tokens, 3)


def test_a_file_without_an_end_of_line_is_cut_in_parts(tokenizer, monkeypatch):
    monkeypatch.setattr(passages, "LONGEST", 100)
    text = "the river was good " * 100 + "x" * 350
    found = texts_of(text, tokenizer, 30)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(len(tokenizer.encode(passage).ids) <= 32 for passage in found)


def test_short_paragraphs_go_together_and_long_ones_apart(tokenizer):
    text = "the river\n\nthe town\n\n" + "the film was good. " * 12 + "\n\nvery happy\n"
    found = texts_of(text, tokenizer, 22)
    assert found[0] == "the river\n\nthe town"
    assert found[-1] == "very happy"
    assert all(passage.endswith("good.") for passage in found[1:-1])
    assert max(map(len, found[1:-1])) <= 2 * min(map(len, found[1:-1]))


def test_a_text_a_line_is_a_passage_a_line(tokenizer):
    text = "The film was good.\nThe song was “bad!”\nWho lives in Oslo?\n"
    assert texts_of(text, tokenizer, 60) == text.strip().split("\n")
    wrapped = "The film was\ngood and the song\nwas not.\n"
    assert texts_of(wrapped, tokenizer, 60) == [wrapped.strip()]


def test_markdown_keeps_front_matter_apart_code_whole_and_headings_with_their_text(tokenizer):
    text = "---\ntitle: x\n---\n# River\n\nthe river\n## Town\nthe town\n\n```\na = 1\n\n# b\n```\nvery\n\nfine\n"
    blocks = [text[block.start : block.end] for block in find_blocks(text, markdown=True)]
    assert blocks == [
        "---\ntitle: x\n---", "# River\n\nthe river", "## Town\nthe town", "```\na = 1\n\n# b\n```\nvery", "fine",
    ]  # fmt: skip
    found = texts_of(text, tokenizer, 60, markdown=True)
    assert found[0] == "---\ntitle: x\n---" and "# River" in found[1]


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff".strip("\ufeff")])
def test_nothing_gives_nothing(tokenizer, text):
    assert cut_passages(text, tokenizer, 32) == []
