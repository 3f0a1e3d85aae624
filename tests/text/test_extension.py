"""A tokenizer with more pieces: old ids, texts without new pieces, what others open, what the new ones were before."""

import hashlib
import json
import random
from functools import cache
from pathlib import Path

import corpus_texts
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from text.corpora import make_lines
from tokenizers import Tokenizer as Engine

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.text import load_tokenizer
from bertsmith.text.extension import cut_new_pieces, find_difference

KINDS = ("wordpiece", "bpe", "unigram")
FIELD = ("cardiomyopathy", "cardiology", "hepatocytes", "hepatitis", "angiography", "Naïve", "electrocardiogram")
OLD = [line for line in make_lines(200) if line.strip()]


def write_field(path: Path) -> Path:
    draw = random.Random(1)
    common = OLD[0].split()
    lines = [" ".join(draw.choice(FIELD + tuple(common)) for _ in range(9)) + "." for _ in range(120)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """A trained tokenizer, the same with thirty pieces more, and the text that these are from."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "old.txt").write_text("\n".join(OLD), encoding="utf-8")
    bertsmith.train_tokenizer(folder / "old.txt", folder / "old", kind=request.param, size=400, special=["[A]"])
    extended = bertsmith.extend_tokenizer(folder / "old", write_field(folder / "new.txt"), folder / "new", add=30)
    return folder, extended


def test_old_pieces_keep_their_ids_and_new_ones_stand_behind(both):
    folder, extended = both
    old, new = (Engine.from_file(str(folder / name / "tokenizer.json")) for name in ("old", "new"))
    known, grown = old.get_vocab(), new.get_vocab()
    assert {piece: grown[piece] for piece in known} == known
    added = sorted(set(grown) - set(known), key=grown.get)
    assert added == extended.added and 0 < len(added) <= 30
    assert [grown[piece] for piece in added] == list(range(len(known), len(known) + len(added)))
    assert extended.pieces == len(grown)
    assert (folder / "new" / "vocab.txt").read_text("utf-8").splitlines()[-len(added) :] == added


def test_tokens_are_saved_as_told(both):
    folder, extended = both
    text = (folder / "new.txt").read_text("utf-8").strip()
    for name, told in (("old", extended.tokens_per_word_before), ("new", extended.tokens_per_word)):
        tokens = len(load_tokenizer(folder / name).encode(text, specials=False))
        assert told == pytest.approx(tokens / len(text.split()), rel=1e-9)
    assert extended.tokens_per_word < 0.5 * extended.tokens_per_word_before


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*" ".join(OLD).split()[:300], *FIELD, "cardio", "hep", "zz", "[A]", "漢", "é."])))
def test_a_text_without_new_pieces_is_cut_as_before(both, words):
    folder, _ = both
    old, new = load_cached(folder / "old"), load_cached(folder / "new")
    text = " ".join(words)
    ids = new.encode(text).ids
    if max(ids, default=0) < old.size:
        assert ids == old.encode(text).ids
    assert new.decode(ids) == old.decode(old.encode(text).ids)


@cache
def load_cached(folder):
    return load_tokenizer(folder)


def test_transformers_opens_it_and_agrees(both):
    folder, extended = both
    theirs = transformers.AutoTokenizer.from_pretrained(folder / "new")
    assert len(theirs) == extended.pieces
    for text in ["Cardiology and hepatitis, angiography!", OLD[0], *(folder / "new.txt").read_text().splitlines()[:9]]:
        assert theirs(text)["input_ids"] == extended.tokenizer.encode(text).ids
        assert theirs(text, OLD[1])["input_ids"] == extended.tokenizer.encode(text, OLD[1]).ids


def test_it_is_the_same_bytes_each_time(both, tmp_path):
    folder, _ = both
    bertsmith.extend_tokenizer(folder / "old", folder / "new.txt", tmp_path / "again", add=30, threads=2)
    for path in sorted((folder / "new").iterdir()):
        again = tmp_path / "again" / path.name
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(again.read_bytes()).digest(), path.name


def test_new_pieces_were_old_ones_that_spell_them(both):
    folder, extended = both
    old, new = load_tokenizer(folder / "old"), load_tokenizer(folder / "new")
    cuts = cut_new_pieces(old, new)
    assert [new.piece(id) for id in cuts] == extended.added
    for id, parts in cuts.items():
        first, *rest = (old.piece(part) for part in parts)
        assert first + "".join(piece.removeprefix("##") for piece in rest) == new.piece(id)
        assert all(piece.startswith("##") for piece in rest) or extended.kind != "wordpiece"
    assert cut_new_pieces(old, old) == {} and find_difference(new, old) is not None


def test_an_extension_is_extended(both, tmp_path):
    folder, _ = both
    (tmp_path / "more.txt").write_text("photosynthesis phytoplankton\n" * 9)
    more = bertsmith.extend_tokenizer(folder / "new", tmp_path / "more.txt", tmp_path / "more", add=5)
    old = load_tokenizer(folder / "old")
    assert list(cut_new_pieces(old, more.tokenizer)) == list(range(old.size, more.pieces))


def test_the_tokenizer_of_an_adapter_is_its_bases(tmp_path):
    house = bertsmith.load()
    folder, field = house.use("names").folder, write_field(tmp_path / "new.txt")
    extended = bertsmith.extend_tokenizer(folder, field, tmp_path / "new", add=9)
    assert not (folder / "tokenizer.json").exists() and extended.pieces == house.tokenizer.size + len(extended.added)


def test_tokens_beside_the_model_keep_their_ids(tmp_path):
    """As transformers writes them for a person who adds tokens."""
    (tmp_path / "text.txt").write_text("\n".join(OLD))
    bertsmith.train_tokenizer(tmp_path / "text.txt", tmp_path / "old", size=300)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "old")
    theirs.add_tokens(["<gene>", "<drug>"])
    theirs.save_pretrained(tmp_path / "added")
    field = write_field(tmp_path / "new.txt")
    extended = bertsmith.extend_tokenizer(tmp_path / "added", field, tmp_path / "out", add=9)
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert again.convert_tokens_to_ids(["<gene>", "<drug>"]) == [300, 301]
    assert again.convert_tokens_to_ids(extended.added) == list(range(302, 302 + len(extended.added)))
    text = "a <gene> in cardiology<drug>"
    assert again(text)["input_ids"] == extended.tokenizer.encode(text).ids
    assert {300, 301} <= set(again(text)["input_ids"])


@pytest.mark.parametrize("change", ["lowercase", "swap", "gap"])
def test_what_is_no_extension_says_why(tmp_path, change):
    (tmp_path / "text.txt").write_text("\n".join(OLD))
    bertsmith.train_tokenizer(tmp_path / "text.txt", tmp_path / "old", size=300)
    bertsmith.extend_tokenizer(tmp_path / "old", write_field(tmp_path / "new.txt"), tmp_path / "new", add=9)
    path = tmp_path / "new" / "tokenizer.json"
    parts = json.loads(path.read_text())
    vocabulary = parts["model"]["vocab"]
    if change == "lowercase":
        parts["normalizer"]["lowercase"] = False
    elif change == "swap":
        vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    else:
        parts["model"]["max_input_chars_per_word"] = 7
    path.write_text(json.dumps(parts))
    sentence = {"lowercase": "ways to clean a text differ", "swap": "the piece 'a' has the id", "gap": "in other ways"}
    with pytest.raises(BertsmithError, match=sentence[change]):
        cut_new_pieces(load_tokenizer(tmp_path / "old"), load_tokenizer(tmp_path / "new"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"add": 0}, "--add 0 must be a whole number above zero"),
        ({"add": 5, "min_count": 10**6}, "no piece of the text occurs 1000000 times"),
        ({"add": 5, "sources": "empty.txt"}, "there are no words to train on"),
        ({"add": 5, "model": "gone"}, "gone"),
        ({"add": 5, "out": "text.txt"}, "is a file; name a folder"),
    ],
)
def test_mistakes(tmp_path, options, sentence):
    (tmp_path / "text.txt").write_text("\n".join(OLD))
    (tmp_path / "empty.txt").write_text("\n")
    bertsmith.train_tokenizer(tmp_path / "text.txt", tmp_path / "old", size=300)
    given_ = {"model": "old", "sources": "text.txt", "out": "new", **options}
    model, sources, out = (tmp_path / given_.pop(name) for name in ("model", "sources", "out"))
    with pytest.raises(BertsmithError, match=sentence):
        bertsmith.extend_tokenizer(model, sources, out, **given_)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_characters_that_were_unknown_are_learned(kind, tmp_path):
    """They begin as the unknown token was; what is too rare stays unknown, and is told."""
    (tmp_path / "old.txt").write_text("\n".join(OLD))
    (tmp_path / "new.txt").write_text("β βαγ γαβ\n" * 20 + "ჱ\n")
    bertsmith.train_tokenizer(tmp_path / "old.txt", tmp_path / "old", kind=kind, size=300)
    extended = bertsmith.extend_tokenizer(tmp_path / "old", tmp_path / "new.txt", tmp_path / "new", add=24)
    old, new = load_tokenizer(tmp_path / "old"), extended.tokenizer
    assert old.unk_id in old.encode("βαγ").ids and new.unk_id not in new.encode("β βαγ γαβ").ids
    assert len(new.encode("γαβ", specials=False)) == 1 and new.decode(new.encode("βαγ").ids) == "βαγ"
    assert "stay unknown" in extended.notes[-1] and new.unk_id in new.encode("ჱ").ids
    cuts = cut_new_pieces(old, new)
    single = {new.piece(id): parts for id, parts in cuts.items() if len(new.piece(id).removeprefix("##")) == 1}
    assert single and all(set(parts) == {old.unk_id} for parts in single.values())
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "new")
    assert theirs("β βαγ γαβ ჱ")["input_ids"] == new.encode("β βαγ γαβ ჱ").ids


def test_whole_words_come_before_their_parts(tmp_path):
    """Few pieces asked for: not the steps on the way to a word, but the word, and as many as there is use for."""
    words = ["lecture", "lagoon", "voyage", "dissertation", "crocodile", "photosynthesis"]
    (tmp_path / "words.txt").write_text("\n".join(" ".join(words) for _ in range(50)) + "\n")
    folder = corpus_texts.make_tokenizer(tmp_path / "tokenizer")
    for add in (2, 4, 6):
        found = bertsmith.extend_tokenizer(folder, tmp_path / "words.txt", tmp_path / f"more-{add}", add=add)
        assert len(found.added) == add
    assert set(found.added) == set(words) and found.tokens_per_word == 1.0
