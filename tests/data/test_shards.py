"""A corpus opens as it was written, at once whatever its size, and refuses what does not belong to it."""

import json
import shutil

import numpy as np
import pytest
from corpus_texts import make_bytelevel, make_documents, make_tokenizer

import bertsmith
from bertsmith.data.shards import Corpus, choose_dtype, tokenizer_digest
from bertsmith.errors import BertsmithError
from bertsmith.text import load_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("shards")
    (place / "a.txt").write_text("\n\n".join(make_documents(60)))
    make_tokenizer(place / "tokenizer")
    bertsmith.build_corpus(place / "a.txt", tokenizer=place / "tokenizer", out=place / "corpus", held_out=0.1)
    return place


def test_what_is_opened_is_a_map_of_what_was_written(folder):
    tokenizer = load_tokenizer(folder / "tokenizer")
    corpus = Corpus.open(folder / "corpus", tokenizer=tokenizer)
    assert isinstance(corpus.tokens, np.memmap) and corpus.tokens.dtype == np.uint16
    assert corpus.vocabulary == tokenizer.size
    assert corpus.specials == {role: tokenizer.id(token) for role, token in tokenizer.specials.items()}
    assert tokenizer_digest(corpus.tokenizer()) == tokenizer_digest(tokenizer) == corpus.header["tokenizer"]
    assert not corpus.tokens.flags.writeable
    corpus.verify()
    held = Corpus.open(folder / "corpus", "held-out")
    assert len(corpus) + len(held) == 60
    facts = bertsmith.corpus_info(folder / "corpus", check=True)
    assert facts["splits"]["train"]["tokens"] == len(corpus.tokens)


def test_the_ids_of_another_tokenizer_are_refused(folder, tmp_path):
    for other in (make_tokenizer(tmp_path / "other", more=["zebra"]), make_bytelevel(tmp_path / "bytes")):
        with pytest.raises(BertsmithError, match=r"was made with another tokenizer .* or build the corpus again"):
            Corpus.open(folder / "corpus", tokenizer=load_tokenizer(other))


@pytest.mark.parametrize(
    "harm, sentence",
    [
        (lambda place: (place / "train" / "tokens.bin").write_bytes(b"12"), "has 2 bytes where .* belong"),
        (lambda place: (place / "train" / "sentences.bin").unlink(), "cannot be read: No such file"),
        (lambda place: (place / "corpus.json").write_text("{"), "is damaged"),
        (lambda place: (place / "corpus.json").write_text('{"format": 1}'), "is damaged"),
        (lambda place: (place / "corpus.json").write_text('{"format": 9}'), "is of format 9"),
        (lambda place: (place / "corpus.json").unlink(), "is not a corpus"),
    ],
)
def test_damage_is_a_sentence(folder, tmp_path, harm, sentence):
    place = shutil.copytree(folder / "corpus", tmp_path / "copy")
    harm(place)
    with pytest.raises(BertsmithError, match=sentence):
        Corpus.open(place)


def test_a_changed_byte_is_found_by_its_checksum(folder, tmp_path):
    place = shutil.copytree(folder / "corpus", tmp_path / "copy")
    raw = bytearray((place / "train" / "tokens.bin").read_bytes())
    raw[100] ^= 1
    (place / "train" / "tokens.bin").write_bytes(raw)
    with pytest.raises(BertsmithError, match=r"tokens\.bin is not what was written"):
        bertsmith.corpus_info(place, check=True)
    with pytest.raises(BertsmithError, match="no split 'test'"):
        Corpus.open(place, "test")
    with pytest.raises(BertsmithError, match="is not there; make one with `bertsmith corpus build`"):
        Corpus.open(tmp_path / "none")


def test_the_kind_of_the_ids_is_the_smallest_that_holds_them():
    assert choose_dtype(65_536) == np.uint16 and choose_dtype(65_537) == np.uint32


def test_the_report_is_for_machines_and_for_people(folder):
    report = json.loads((folder / "corpus" / "report.json").read_text())
    assert report["read"]["documents"] == 60 and report["speed"]["megabytes_per_second"] > 0
    page = (folder / "corpus" / "report.md").read_text()
    assert "MB/s" in page and f"{report['kept']['train']['tokens']:,} tokens to train on" in page
