"""Fast encoding gives the very ids of the `tokenizers` library, for any text, in every way it works."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine

from bertsmith.text import chunks
from bertsmith.text.chunk_table import LONGEST, ChunkTable
from bertsmith.text.chunks import Encoder
from bertsmith.text.normalizing import normalize_text
from bertsmith.text.sentences import sentence_ends

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCDXYZ.,!?'-[]<>#@äé中한ß"


class Standing:
    """Stands for a Tokenizer: the encoder needs its engine alone."""

    def __init__(self, engine):
        self._engine = engine


def wordpiece(**cleaning):
    words = ["the", "un", "##able", "able", "##s", "[UNK]", "[MASK]", "it", "he", "##ll", "12", "##3"]
    vocabulary = {word: id for id, word in enumerate([*words, *LETTERS, *(f"##{letter}" for letter in LETTERS)])}
    engine = Engine(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=20))
    engine.normalizer = normalizers.BertNormalizer(**cleaning)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.add_special_tokens(["[MASK]"])
    engine.add_tokens([AddedToken("C++", normalized=True), AddedToken("it's", single_word=True)])
    return engine


def bytelevel(prefix=False, **more):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "t"), ("Ġ", "it"), ("'", "s"), ("1", "2"), ("Ċ", "Ċ")]
    words = dict.fromkeys([*alphabet, *("".join(pair) for pair in merges)])
    engine = Engine(models.BPE({word: id for id, word in enumerate(words)}, merges))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    engine.decoder = decoders.ByteLevel()
    engine.normalizer = more.get("normalizer")
    engine.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    engine.add_tokens([AddedToken("  ", normalized=False)])
    return engine


def marked(scheme="always"):
    """As `bertsmith tokenizer train --kind unigram` makes it."""
    engine = unigram()
    engine.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    spaces = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme=scheme)]
    engine.pre_tokenizer = pre_tokenizers.Sequence([*spaces, pre_tokenizers.Split(Regex("[.!?]+"), "isolated")])
    engine.add_special_tokens(["[MASK]"])
    return engine


def unigram():
    engine = Engine(models.Unigram([("<unk>", 0.0), ("▁", -2.0), ("▁the", -1.0), *((c, -3.0) for c in LETTERS)], 0))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    return engine


ENGINES = {
    "uncased": (wordpiece(lowercase=True), "words"),
    "cased": (wordpiece(lowercase=False, strip_accents=False), "words"),
    "not cleaned": (wordpiece(lowercase=True, clean_text=False, handle_chinese_chars=False), "words"),
    "bytes": (bytelevel(), "bytes"),
    "bytes of NFC": (bytelevel(normalizer=normalizers.NFC()), "bytes"),
    "uncased bytes": (bytelevel(normalizer=normalizers.Lowercase()), "bytes"),
    "marked words": (marked(), "marked words"),
    "first word marked": (marked("first"), None),
    "prefixed bytes": (bytelevel(prefix=True), "prefixed bytes"),
    "unigram": (unigram(), None),
}
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["the", " the", "The", "it's", " it's", "'s", "unables", "[MASK]", "<mask>",
             " <mask>", "C++", "c++x", "123", " ", "  ", "\n", "\t", "\xa0", "\u3000", "\x1c",
             "\x85", "\0", "é", "e\u0301", "\u0301", "中", "한", "ß", "Σ", "İ", ".", "...", "。",
             "!", "\u200d", "👩‍👧", "\ufffd", "x" * 25, "'ll", "don't", "a.b", "\r\n",
             "\ud7ff"]
        ),
        st.text(max_size=5),
    ),
    max_size=25,
).map(lambda parts: "".join(parts).encode("utf-8", "replace").decode())  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), clean=st.booleans())
def test_ids_are_the_engines(name, texts, clean):
    engine, way = ENGINES[name]
    encoder = Encoder(Standing(engine))
    assert encoder.way == way
    texts = [normalize_text(text) if clean else text for text in texts]
    ends = [sentence_ends(text) for text in texts]
    for _ in range(2):  # once to learn, once from what was learnt
        ids, counts = encoder.encode(texts, ends)
        wanted = [read.ids for read in engine.encode_batch(texts, add_special_tokens=False)]
        assert ids.tolist() == [id for one in wanted for id in one]
        assert len(counts) == sum(map(len, ends)) and counts.sum() == len(ids) and (counts >= 0).all()
        bounds = [0, *np.cumsum([*map(len, ends)])]
        assert [int(counts[a:b].sum()) for a, b in pairwise(bounds)] == [len(one) for one in wanted]


@pytest.mark.parametrize("name", ENGINES)
def test_a_sentence_has_the_tokens_of_its_own_text(name):
    engine, _ = ENGINES[name]
    text = "The unable man. It's the end of it.\nHe went. 12 of them stayed!"
    ends = sentence_ends(text)
    ids, counts = Encoder(Standing(engine)).encode([text], [ends])
    offsets = engine.encode(text, add_special_tokens=False).offsets
    bounds = [0, *np.cumsum(counts)]
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        here = offsets[bounds[number] : bounds[number + 1]]
        read = text[here[0][0] : here[-1][1]]
        assert read.strip() == text[start:end].strip()
    assert bounds[-1] == len(ids)


def test_a_full_table_begins_anew_with_the_same_ids(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNKS", 5)
    engine, _ = ENGINES["uncased"]
    encoder = Encoder(Standing(engine))
    draw = random.Random(0)
    for _ in range(20):
        text = " ".join("".join(draw.choices("abctheun", k=3)) for _ in range(10))
        assert encoder.encode([text], [[len(text)]])[0].tolist() == engine.encode(text).ids


def test_an_engine_that_looks_across_spaces_is_given_whole_documents():
    for added in (AddedToken("New York"), AddedToken("x y", normalized=False)):
        engine = wordpiece(lowercase=True)
        engine.add_tokens([added])
        assert Encoder(Standing(engine)).way is None
    engine = bytelevel()
    engine.add_tokens([AddedToken("<r>", rstrip=True)])
    assert Encoder(Standing(engine)).way is None
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(use_regex=False)
    assert Encoder(Standing(engine)).way is None


def test_the_table_finds_a_chunk_or_says_that_it_does_not_know_it():
    draw = random.Random(0)
    letters = "abcdeä中"
    chunks = [""] + ["".join(draw.choices(letters, k=draw.randint(1, 8))) for _ in range(150_000)]
    known = list(dict.fromkeys(chunk.encode() for chunk in chunks))
    table = ChunkTable()
    for start in range(0, len(known), 40_000):
        table.add(known[start : start + 40_000])
    others = [chunk + b"x" for chunk in known[:2000]]
    asked = [*known, *others]
    text = b" ".join(asked)
    lengths = np.array([len(chunk) for chunk in asked])
    found = table.find(text, np.cumsum(lengths + 1) - lengths - 1, lengths)
    assert (found[len(known) :] == -1).all()
    numbers = found[: len(known)]
    assert ((numbers == np.arange(len(known))) | (numbers == -1)).all()
    short = lengths[: len(known)] <= LONGEST
    assert (numbers[~short] == -1).all() and (numbers[short] >= 0).mean() > 0.98
