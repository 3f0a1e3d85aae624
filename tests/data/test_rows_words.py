"""Which pieces begin a word is what `tokenizers` says of the words that pieces belong to."""

import random

import pytest
from corpus_texts import SPECIALS, WORDS, make_documents
from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bertsmith.data.rows_words import begins_word
from bertsmith.errors import BertsmithError
from bertsmith.text.templates import read_template
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.tokenizing import train_tokenizer

NAMES = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIALS, strict=True))


def wrap(engine):
    return Tokenizer(engine, read_template(engine), NAMES)


def train(form):
    if form == "wordpiece":
        engine = Engine(models.WordPiece(unk_token="[UNK]"))
        engine.normalizer, engine.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=90, special_tokens=SPECIALS, show_progress=False)
    elif form == "bytes":
        engine = Engine(models.BPE())
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        trainer = trainers.BpeTrainer(vocab_size=90, special_tokens=SPECIALS, show_progress=False)
    else:
        engine = Engine(models.Unigram())
        engine.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=90, special_tokens=SPECIALS, show_progress=False, unk_token="[UNK]"
        )
    engine.train_from_iterator(make_documents(40), trainer)
    return engine


@pytest.mark.parametrize("form", ["wordpiece", "bytes", "sentencepiece"])
def test_a_piece_begins_a_word_where_the_word_changes(form):
    engine = train(form)
    row = engine.encode(" ".join([*WORDS, "housefield", "watertown"]), add_special_tokens=False)
    begins = begins_word(wrap(engine))
    assert len(begins) == engine.get_vocab_size()
    changes = [place == 0 or row.word_ids[place] != row.word_ids[place - 1] for place in range(len(row.ids))]
    assert begins[row.ids].tolist() == changes and 0 < sum(changes) < len(changes)
    assert begins[[engine.token_to_id(token) for token in SPECIALS]].all()


def test_a_mark_that_is_only_a_character_of_the_text_is_no_mark():
    vocabulary = [*SPECIALS, "▁", "Ġthe", "Ġa", "b"]
    engine = Engine(models.BPE({piece: id for id, piece in enumerate(vocabulary)}, []))
    assert begins_word(wrap(engine)).tolist()[5:] == [False, True, True, False]


def test_without_marks_each_piece_is_a_word():
    engine = Engine(models.WordLevel({piece: id for id, piece in enumerate([*SPECIALS, "x", "y"])}, unk_token="[UNK]"))
    assert begins_word(wrap(engine)).all()


def test_marks_at_the_end_of_words_are_refused():
    vocabulary = {piece: id for id, piece in enumerate([*SPECIALS, "a", "a</w>"])}
    engine = Engine(models.BPE(vocabulary, [], end_of_word_suffix="</w>"))
    with pytest.raises(BertsmithError, match="marks where words end"):
        begins_word(wrap(engine))


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
@pytest.mark.parametrize("letters", ["欧洲中部时间侦察集群离开其余", "กขคงจฉชซญดตถทธนบ", "あいうえおかきくけこさしす"])
def test_where_no_spaces_divide_words_each_piece_is_one(kind, letters, tmp_path):
    """By spaces, whole sentences of such a script were words: a row had a few, and one of them was all of it."""
    draw = random.Random(1)
    lines = ["".join(draw.choices(letters, k=40)) for _ in range(200)]
    (tmp_path / "text.txt").write_text("\n".join([*lines, "the house of watertown stands\n" * 50]), "utf-8")
    made = train_tokenizer(tmp_path / "text.txt", tmp_path / "pieces", kind=kind, size=400, threads=1)
    begins, text = begins_word(made.tokenizer), "".join(draw.choices(letters, k=40))
    row = made.tokenizer.encode(text, specials=False)
    ends = [0, *(end for _, end in row.offsets)]
    whole = [start >= end for (start, _), end in zip(row.offsets, ends[:-1], strict=True)]  # not the rest of a letter
    assert begins[row.ids].tolist() == whole and sum(whole) > 10
    row = made.tokenizer.encode("the house of watertown stands", specials=False)
    assert sum(begins[row.ids[1:]]) == 4  # what stands behind a special token begins a word anyway
