"""Rows of corpora that were built: special tokens stand where the tokenizer of the corpus puts them."""

import json

import numpy as np
import pytest
from corpus_texts import make_documents, make_tokenizer
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, pre_tokenizers

import bertsmith
from bertsmith.data.pair_rows import PairRows
from bertsmith.data.rows_plan import Phase, open_passes
from bertsmith.data.rows_single import SingleRows
from bertsmith.data.shards import Corpus

ANGLE = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def make_roberta(folder):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine = Engine(models.BPE({piece: id for id, piece in enumerate([*ANGLE, *alphabet])}, []))
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    engine.add_special_tokens(ANGLE)
    model = json.loads(engine.to_str())["model"]
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "RobertaTokenizer"}')
    return folder


@pytest.fixture(scope="module", params=[make_tokenizer, make_roberta])
def corpus(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("rows")
    (place / "a.txt").write_text("\n\n".join(make_documents(60)))
    request.param(place / "tokenizer")
    bertsmith.build_corpus(
        place / "a.txt", tokenizer=place / "tokenizer", out=place / "corpus", held_out=0, filters=False
    )
    return Corpus.open(place / "corpus")


def test_a_row_stands_as_the_tokenizer_writes_one(corpus):
    template, length = corpus.tokenizer().template, 600
    for kind, slots in (("single", template.single), ("order", template.pair)):
        rows = open_passes(corpus, [Phase(length)], 4 * length, kind)[0].rows_of(0)
        of_two = np.full(len(rows.lengths), kind == "single") if rows.pairs is None else rows.pairs >= 0
        row = int(np.flatnonzero(of_two)[0])
        begin = sum(rows.lengths[:row])
        ids, segments = (column[begin : begin + rows.lengths[row]] for column in (rows.ids, rows.segments))
        is_special = np.isin(ids, [slot.id for slot in slots if slot.sequence is None])
        assert ids[is_special].tolist() == [slot.id for slot in slots if slot.sequence is None]
        seen = [(None, int(segments[0]))]
        for place in range(1, len(ids)):  # runs of text are one slot
            if is_special[place] or is_special[place - 1]:
                seen.append((None if is_special[place] else "text", int(segments[place])))
        assert seen == [(None if slot.sequence is None else "text", slot.segment) for slot in slots]


def test_rows_of_mapped_shards_hold_all_of_them(corpus):
    assert isinstance(corpus.tokens, np.memmap)
    stream = SingleRows(corpus, 32)
    unit = stream.unit(0)
    rows = stream.layout.lay(corpus.tokens, unit.spans, stream.total, 32, paired=False)
    assert rows.ordinary + int(stream.layout.is_special[corpus.tokens].sum()) == len(corpus.tokens)
    assert sum(rows.lengths) == stream.total == len(corpus.tokens) + 2 * len(rows.lengths)


def test_the_text_of_a_pair_is_sentences_of_the_corpus(corpus):
    stream = PairRows(corpus, 4000, "order", short=0)
    begins, ends = (set(part.tolist()) for part in (corpus.sentences[:-1], corpus.sentences[1:]))
    spans = stream.unit(0).spans
    assert len(spans) == len(corpus)  # each document fits into a row
    for first, size, second, more, _ in zip(*(column.tolist() for column in spans), strict=True):
        assert first in begins and first + size in ends and (not more or (second in begins and second + more in ends))
