"""A corpus holds the documents that should be in it, as the tokenizer has them, and tells what it dropped."""

import codecs
import errno
import json
import random
import re
import textwrap
import unicodedata

import numpy as np
import pyarrow
import pytest
from corpus_texts import WORDS, make_bytelevel, make_documents, make_tokenizer, read_all, write_sentence
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import bertsmith
from bertsmith.data.corpus import staging
from bertsmith.data.corpus.excluding import read_strings
from bertsmith.data.corpus.settings import CorpusSettings
from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.text import load_tokenizer
from bertsmith.text.normalizing import cut_paragraphs, normalize_text
from bertsmith.text.sentences import split_sentences
from bertsmith.training.lock import FolderLock

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def build(tmp_path, tokenizer):
    def carry_out(documents, name="corpus", **given):
        path, text = tmp_path / "texts.txt", "\n\n".join(documents) + "\n"
        if not path.exists() or path.read_text() != text:  # a file that is written anew is another source
            path.write_text(text)
        given = {"tokenizer": tokenizer, "held_out": 0.0, **given}
        corpus = bertsmith.build_corpus(tmp_path / "texts.txt", out=tmp_path / name, **given)
        return corpus, json.loads((tmp_path / name / "report.json").read_text())

    return carry_out


def texts_of(corpus):
    engine = corpus.tokenizer()
    return [engine.decode(corpus.document(number)) for number in range(len(corpus))]


@pytest.mark.parametrize("make", [make_tokenizer, make_bytelevel])
def test_ids_and_bounds_are_those_of_each_document(build, tmp_path, make):
    documents = make_documents(40)
    folder = make(tmp_path / "own")
    corpus, report = build(documents, tokenizer=folder, tokens_per_character=2)
    engine = load_tokenizer(folder)
    rows = engine.encode_many(documents, specials=False)
    assert corpus.tokens.tolist() == [id for row in rows for id in row.ids]
    assert corpus.documents.tolist() == [0, *np.cumsum([len(row.ids) for row in rows])]
    assert corpus.sentences[0] == 0 and corpus.sentences[-1] == len(corpus.tokens)
    assert set(corpus.documents.tolist()) <= set(corpus.sentences.tolist())
    sentences = [sentence.strip() for document in documents for sentence in split_sentences(document)]
    found = [
        engine.decode(corpus.tokens[start:end]).strip()
        for start, end in zip(corpus.sentences, corpus.sentences[1:], strict=False)
    ]
    assert [text.replace(" ", "").lower() for text in found] == [text.replace(" ", "").lower() for text in sentences]
    first = corpus.first_sentences
    assert [int(first[n + 1] - first[n]) for n in range(40)] == [len(split_sentences(text)) for text in documents]
    assert report["dropped"] == {} and report["kept"]["train"]["documents"] == 40
    if make is make_tokenizer:  # the other has a token a byte
        assert report["disk"]["most_to_text"] < 2.5


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(CHARACTERS, max_size=60), max_size=8))
def test_any_text_is_there_as_the_tokenizer_has_it_and_nothing_crosses_a_document(tmp_path_factory, tokenizer, texts):
    place = tmp_path_factory.mktemp("any")
    lines = [json.dumps({"text": text}, ensure_ascii=draw % 2 == 0) for draw, text in enumerate([*texts, "the end"])]
    (place / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    plain = {"filters": False, "duplicates": False, "near_duplicates": False, "held_out": 0.0}
    corpus = bertsmith.build_corpus(place / "a.jsonl", tokenizer, place / "corpus", **plain)
    clean = ["\n".join(cut_paragraphs(normalize_text(text))) for text in [*texts, "the end"]]
    rows = [row.ids for row in load_tokenizer(tokenizer).encode_many(clean, specials=False)]
    assert [corpus.document(number).tolist() for number in range(len(corpus))] == [ids for ids in rows if ids]
    assert set(corpus.documents.tolist()) <= set(corpus.sentences.tolist())
    assert (np.diff(corpus.sentences) > 0).all() and (np.diff(corpus.documents) > 0).all()


def test_duplicates_go_and_the_first_stays(build):
    documents = make_documents(12, paragraphs=4)
    near = documents[3].split(" ")
    near[7] = "winter" if near[7] != "winter" else "summer"
    draw = random.Random(5)
    shared = " ".join(write_sentence(draw) for _ in range(2))
    copies = [*documents, documents[2], " ".join(near), *(f"{text}\n{shared}" for text in make_documents(3, seed=9))]
    corpus, report = build(copies)
    assert {reason: told["count"] for reason, told in report["dropped"].items()} == {
        "duplicate": 1, "near duplicate": 1, "duplicate paragraph": 2,
    }  # fmt: skip
    assert len(corpus) == 15
    assert report["dropped"]["near duplicate"]["excerpts"]
    kept, _ = build(copies, "all", duplicates=False, near_duplicates=False, filters=False)
    assert len(kept) == len(copies)


def test_filters_tell_why(build):
    good = make_documents(30)
    noise = " ".join("".join(random.Random(seed).choices("qxzjkvw", k=6)) for seed in range(80))
    headed = [f"share this page\n{text}" for text in good]
    _, report = build([*headed, "too short", noise, "the river runs. " * 60], boilerplate=20)
    assert {reason: told["count"] for reason, told in report["dropped"].items()} == {
        "too short": 1, "poor fit": 1, "repetition": 1, "boilerplate": 30,
    }  # fmt: skip
    assert report["dropped"]["boilerplate"]["excerpts"][0] == "share this page"
    corpus, report = build([*headed, "too short", noise], "all", filters=False)
    assert report["dropped"] == {} and len(corpus) == 32


def test_a_language_that_the_tokenizer_does_not_know_is_a_poor_fit_and_never_silent(build, tokenizer):
    """One unknown token a word is few tokens to a character: such text was kept, or taken for repetition."""
    good, foreign = (
        make_documents(30),
        ["Вот дом, который построил Джек. А это пшеница, которая в тёмном чулане хранится."],
    )
    foreign.append(foreign[0].replace("Джек", "Пётр") * 8)
    _, report = build([*good, *foreign])
    assert {reason: told["count"] for reason, told in report["dropped"].items()} == {"poor fit": 2}
    assert report["unknown"] == 0 and not report["notes"]
    corpus, report = build([*good, *foreign], "all", filters=False, held_out=0.0)
    ids = np.concatenate([row.ids for row in load_tokenizer(tokenizer).encode_many([*good, *foreign], specials=False)])
    unknown = float((ids == load_tokenizer(tokenizer).unk_id).mean())
    assert report["unknown"] == pytest.approx(unknown, abs=1e-12) and unknown > 0.01
    assert report["notes"][0].startswith(f"{unknown:.1%} of the tokens are the unknown one")
    assert f"The tokenizer does not know {unknown:.2%} of them." in (corpus.folder / "report.md").read_text("utf-8")
    assert bertsmith.corpus_info(corpus.folder)["unknown"] == report["unknown"]
    assert len(corpus) == 32


@pytest.mark.parametrize("chosen", [{"shortest": 10}, {"repetition": 0.9}, {"tokens_per_character": 0.4}])
def test_a_filter_that_is_left_out_cannot_be_set(chosen):
    with pytest.raises(BertsmithError, match=f"{next(iter(chosen))} is one of the filters, and those are left out"):
        CorpusSettings(filters=False, **chosen)


def test_a_small_vocabulary_may_cut_finer():
    assert CorpusSettings().most_tokens(32_768) == CorpusSettings().most_tokens(250_000) == 0.3
    assert 0.36 < CorpusSettings().most_tokens(4000) < 0.38
    assert CorpusSettings(tokens_per_character=0.25).most_tokens(4000) == 0.25


def test_chinese_fits_where_every_character_is_a_token(build, tmp_path):
    characters = [chr(0x4E00 + place) for place in range(300)]
    draw = random.Random(0)
    documents = ["".join(draw.choices(characters, k=80)) + "。" for _ in range(10)]
    folder = make_tokenizer(tmp_path / "chinese", more=[*characters, "。"])
    corpus, report = build(documents, tokenizer=folder)
    assert len(corpus) == 10 and report["dropped"] == {}
    assert corpus.document(0).tolist() == load_tokenizer(folder).encode(documents[0], specials=False).ids


def test_a_benchmark_stays_out_of_text_with_a_sentence_a_line(build, tmp_path):
    """No line has the thirteen words alone; a run ends with its document, though."""
    documents = make_documents(8, paragraphs=2)
    draw = random.Random(3)
    words = draw.choices(WORDS, k=20)
    lines = [" ".join(words[some]) + "." for some in (slice(5), slice(5, 12), slice(12, 20))]
    documents[3] += "\n".join(["", "Before it.", *lines, "Behind it."])
    documents[5] += "\n" + " ".join(words[:12])  # twelve words, and the thirteenth begins the next document
    documents[6] = " ".join(words[12:20]) + "\n" + documents[6]
    (tmp_path / "bench.txt").write_text(" ".join(words))
    corpus, report = build(documents, exclude=tmp_path / "bench.txt")
    assert [file["paragraphs"] for file in report["exclude"]] == [3] and report["dropped"]["excluded"]["count"] == 3
    found = ["".join(text.split()) for text in texts_of(corpus)]
    assert "beforeit.behindit." in found[3].lower() and "".join(words[:12]) in found[5]


def test_a_benchmark_of_another_unicode_form_stays_out_and_an_empty_one_is_told(build, tmp_path):
    """An é is one character or two; files that were written on macOS often have two, or a soft hyphen in a word."""
    documents = make_documents(8, paragraphs=2)
    question = " ".join(f"é{word}é" for word in WORDS[:13])
    documents[4] += f"\nSome {question} others."
    (tmp_path / "bench.txt").write_text(unicodedata.normalize("NFD", question).replace("\u0301", "\u0301\xad"), "utf-8")
    (tmp_path / "empty.txt").write_text("\n \n")
    _, report = build(documents, exclude=[tmp_path / "bench.txt", tmp_path / "empty.txt"])
    assert [(file["strings"], file["paragraphs"]) for file in report["exclude"]] == [(1, 1), (0, 0)]
    assert f"Nothing was kept out for {tmp_path / 'empty.txt'}: there is no text in it." in report["notes"]


@pytest.mark.parametrize("kind", ["text", "table", "squad", "lines", "tagged"])
def test_paragraphs_of_a_benchmark_stay_out(build, tmp_path, kind):
    documents = make_documents(20, paragraphs=2)
    draw = random.Random(3)
    question = " ".join(draw.choices(WORDS, k=13))
    documents[4] += f"\nSome {question.upper().replace(' ', ', ')} others."
    documents[6] += f"\nSome {question.rsplit(' ', 1)[0]} others."  # twelve words only
    files = {
        "text": ("a.txt", f"x\n{question}\n"),
        "table": ("a.tsv", f"id\tsentence\n1\t{question}\n"),
        "squad": ("a.json", json.dumps({"data": [{"paragraphs": [{"context": question, "qas": [{"id": "1"}]}]}]})),
        "lines": ("a.jsonl", json.dumps({"premise": question, "label": 1}) + "\n" + json.dumps({"x": ["y"]})),
        "tagged": ("a.conll", "".join(f"{word} O\n" for word in question.split()) + "\n"),
    }
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / files[kind][0]).write_text(files[kind][1])
    corpus, report = build(documents, exclude=tmp_path / "bench")
    assert report["dropped"]["excluded"]["count"] == 1
    assert [file["paragraphs"] for file in report["exclude"]] == [1]
    found = ["".join(text.split()) for text in texts_of(corpus)]
    assert len(found) == 20 and "others" not in found[4] and "others" in found[6]


def test_strings_of_files_as_others_write_them(tmp_path):
    """Parquet as the Hub has it, with lists in it; JSON with a byte-order mark and escaped letters."""
    rows = [{"question": "wer da", "answers": {"text": ["日本", "x"]}, "label": 1}, {"question": None, "answers": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert sorted(read_strings(tmp_path / "a.parquet")) == ["wer da", "x", "日本"]
    (tmp_path / "a.json").write_bytes(codecs.BOM_UTF8 + json.dumps([{"text": "日本 é\nx"}]).encode())
    assert list(read_strings(tmp_path / "a.json")) == ["日本 é\nx"]


def test_a_build_takes_nothing_from_one_before_it_in_this_process(build, tmp_path):
    """The same folder with another tokenizer and another benchmark, whose files lie where the last ones lay."""
    documents = make_documents(20)
    for name, text in (("none", "quite other words " * 5), ("first", documents[0])):
        (tmp_path / f"{name}.txt").write_text(text)
    one = make_bytelevel(tmp_path / "one")
    build(documents, tokenizer=one, tokens_per_character=2, exclude=tmp_path / "none.txt")
    corpus, report = build(documents, exclude=tmp_path / "first.txt", overwrite=True)
    fresh, wanted = build(documents, "fresh", exclude=tmp_path / "first.txt")
    assert report["dropped"]["excluded"] == wanted["dropped"]["excluded"]
    assert corpus.tokens.tolist() == fresh.tokens.tolist() and len(corpus) == len(fresh) == 19


def test_a_build_that_another_process_is_at_is_left_alone(build, tmp_path):
    """Before it has done its first part, too."""
    place = tmp_path / ".corpus.building"
    place.mkdir()
    (place / "work").touch()
    theirs = FolderLock(place)
    theirs.take()
    with pytest.raises(BertsmithError, match="is being written by another process"):
        build(make_documents(3))
    assert (place / "work").exists()
    theirs.release()


def test_the_held_out_part_is_apart_and_depends_on_the_document_alone(build):
    documents = make_documents(300)
    corpus, report = build(documents, held_out=0.2)
    held = Corpus.open(corpus.folder, "held-out")
    train, apart = texts_of(corpus), texts_of(held)
    assert not set(train) & set(apart) and len(train) + len(apart) == 300
    assert 30 < len(apart) < 95  # 60 ± 5 standard deviations
    again, _ = build(documents[::-1], "again", held_out=0.2)
    assert set(texts_of(Corpus.open(again.folder, "held-out"))) == set(apart)
    assert report["kept"]["held-out"]["documents"] == len(apart)


def test_codes_are_a_corpus_too(tmp_path):
    rows = [[1, 5, 7], list(range(60)), [70_000, 3], list(range(60)), [1, 5, 7]]
    lines = [json.dumps(rows[0]), json.dumps({"codes": rows[1]}), "70000 3", ",".join(map(str, rows[3])), "1 5 7"]
    (tmp_path / "codes.jsonl").write_text("\n".join(lines))
    corpus = bertsmith.build_corpus(tmp_path / "codes.jsonl", out=tmp_path / "c", codes=True, field="codes", held_out=0)
    assert [corpus.document(number).tolist() for number in range(len(corpus))] == rows[:3]
    assert corpus.tokens.dtype == np.uint32 and corpus.vocabulary == 70_001 + 5
    assert corpus.specials["mask"] == 70_005 and corpus.tokenizer() is None
    assert corpus.sentences.tolist() == corpus.documents.tolist()
    for line, sentence in [
        ("1 -2", "the code -2 is not between 0 and 9; correct the row."),
        ("1 10", "the code 10 is not between 0 and 9; correct the row, or raise --vocabulary."),
        ("1 b", "'b' is not a whole number; a row of codes has whole numbers with spaces or commas between."),
        ("[1, 2.5]", "2.5 is not a whole number; a row"), ("[1, null]", "null is not a whole number; a row"),
        ('{"x": 1}', 'there is no field "text" (fields: "x"); name it with --field.'),
        ('{"text": 1}', "a row of codes is a list of whole numbers, not 1; write it as [1, 2, 3]."),
        ("[1,", "not JSON (Expecting value: line 1 column 4 (char 3)); write a row as [1, 2, 3] on one line."),
    ]:  # fmt: skip
        (tmp_path / "bad.txt").write_text(f"1 2\n\n{line}\n")
        with pytest.raises(BertsmithError, match=re.escape(f"{tmp_path / 'bad.txt'}, line 3: {sentence}")):
            bertsmith.build_corpus(tmp_path / "bad.txt", out=tmp_path / "d", codes=True, vocabulary=10)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "The sources hold no text"),
        (b" \n\n \n", "The sources hold no text"),
        (b"short", "Of 1 document nothing is left to train on"),
        (b"\x89PNG\0\0", "a picture, not text"),
        (b"good\n\n" + "Köln".encode("latin-1"), "is not UTF-8"),
    ],
)
def test_bad_sources_are_a_sentence_and_write_nothing(tmp_path, tokenizer, content, sentence):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(BertsmithError, match=sentence):
        bertsmith.build_corpus(tmp_path / "a.txt", tokenizer=tokenizer, out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_documents_without_text_are_counted(tmp_path, tokenizer):
    """Records and files in which there is nothing, and no more of them: blank lines part documents of a text."""
    texts = tmp_path / "texts"
    texts.mkdir()
    (long,) = make_documents(1)
    records = [{"text": long}, {"text": ""}, {"text": None}, {"text": " \n"}]
    (texts / "a.jsonl").write_text("\n\n".join(map(json.dumps, records)))
    (texts / "b.json").write_text(json.dumps([{"text": ""}]))
    (texts / "c.md").write_text(" \n\n")
    (texts / "d.txt").write_text("\n\n\n")
    corpus = bertsmith.build_corpus(texts, tokenizer=tokenizer, out=tmp_path / "corpus", held_out=0)
    report = json.loads((corpus.folder / "report.json").read_text())
    assert report["read"]["documents"] == 6 and report["kept"]["train"]["documents"] == 1
    assert report["dropped"] == {"empty": {"count": 5, "characters": 0, "excerpts": []}}
    page = (corpus.folder / "report.md").read_text()
    assert page.splitlines()[2].startswith("4 files, 6 documents, ") and "| 5 documents |" in page
    (texts / "a.jsonl").write_text(json.dumps(records[1]))
    with pytest.raises(BertsmithError, match="The sources hold no text"):
        bertsmith.build_corpus(texts, tokenizer=tokenizer, out=tmp_path / "none")


def test_one_of_each_is_not_told_as_several(tmp_path, tokenizer):
    (long,) = make_documents(1)
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [{"text": long}, {"text": ""}])))
    bertsmith.build_corpus(tmp_path / "a.jsonl", tokenizer=tokenizer, out=tmp_path / "corpus", held_out=0)
    page = (tmp_path / "corpus" / "report.md").read_text()
    assert page.splitlines()[2].startswith("1 file, 2 documents, ")
    assert " s with 1 process, " in page and "| 1 document |" in page


def test_files_that_are_no_texts_and_lines_that_were_filled_are_told(tmp_path, tokenizer):
    texts = tmp_path / "texts"
    texts.mkdir()
    words = random.Random(0)
    books = [textwrap.fill(" ".join([*words.choices(WORDS, k=90), "End."]), 70) for _ in range(20)]
    (texts / "a.txt").write_text("\n\n".join(books))
    (texts / "b.pdf").write_bytes(b"%PDF-1.4")
    corpus = bertsmith.build_corpus(texts, tokenizer=tokenizer, out=tmp_path / "corpus", held_out=0, filters=False)
    report = json.loads((corpus.folder / "report.json").read_text())
    assert report["unread"] == {".pdf": 1} and report["read"]["filled"] == 20
    told, filled = report["notes"]
    assert told.startswith("1 file in the folders was not read") and "(1 .pdf)" in told
    assert filled.startswith("20 of the 20 documents are one paragraph whose lines were filled")
    assert f"- {told}" in (corpus.folder / "report.md").read_text()
    whole = bertsmith.build_corpus(texts, tokenizer=tokenizer, out=tmp_path / "whole", held_out=0, unit="file")
    assert len(whole) == 1 and len(corpus) == 20
    ends = [np.diff(each.sentences).tolist() for each in (corpus, whole)]
    assert len(ends[0]) == 20 and ends[0] == ends[1]


def test_one_giant_line_becomes_a_corpus(build):
    corpus, report = build([" ".join(random.Random(0).choices(WORDS, k=1_200_000))])
    assert len(corpus) == 2 and report["read"]["cut"] == 1
    assert len(corpus.tokens) == 1_200_000
    assert "longer than 4 MiB" in report["notes"][0]


def test_a_folder_is_never_lost(build, tmp_path):
    documents = make_documents(20)
    build(documents)
    before = read_all(tmp_path / "corpus")
    said = []
    build(documents, say=said.append, processes=1)
    assert said == [f"{tmp_path / 'corpus'} is finished already; nothing was done."]
    with pytest.raises(BertsmithError, match=r"shortest was 50 and is now 60; give another folder, or --overwrite"):
        build(documents, shortest=60)
    assert read_all(tmp_path / "corpus")["corpus.json"] == before["corpus.json"]
    build(make_documents(25), overwrite=True)
    assert len(Corpus.open(tmp_path / "corpus")) == 25
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("dear to me")
    with pytest.raises(BertsmithError, match="is not empty and is not a corpus"):
        build(documents, "mine", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "mine", "texts.txt"]


def test_a_full_disk_is_a_sentence_and_the_same_call_goes_on(build, tmp_path, monkeypatch):
    documents = make_documents(50)
    wanted = read_all(build(documents)[0].folder)
    (tmp_path / "corpus").rename(tmp_path / "wanted")

    def fail(self, name, array):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(staging.Staged, "add", fail)
        with pytest.raises(BertsmithError, match="is full; make room, and the same command goes on"):
            build(documents)
    assert not (tmp_path / "corpus").exists()
    build(documents)
    found = read_all(tmp_path / "corpus")
    assert {name: found[name] for name in found if name.endswith((".bin", "corpus.json"))} == {
        name: wanted[name] for name in wanted if name.endswith((".bin", "corpus.json"))
    }


def test_settings_are_checked(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "none").mkdir()
    for changed, sentence in [
        ({"held_out": 0.9}, "held_out must be between 0 and 0.5"), ({"unit": "page"}, "unit 'page' is not known"),
        ({"vocabulary": 5}, "vocabulary is for codes"), ({"engine": "spark"}, "engine 'spark' is not known"),
        ({"processes": 0}, "processes is 0; it must be a whole number of at least 1"),
        ({"held_out": "a"}, "held_out is 'a'; it must be a number"), ({"field": 3}, "field is 3; it must be a string"),
        ({"gram": 2.5}, "gram is 2.5; it must be a whole number"), ({"gram": 5}, "gram is for what is excluded"),
        ({"shortest": None}, "shortest is None; it must be a whole number"), ({"out": ""}, "name of a folder to write"),
        ({"similarity": 0.9, "near_duplicates": False}, "similarity is for near duplicates, and those are left in"),
        ({"field": "body"}, "field is for JSON and Parquet, and the sources are plain text"),
        ({"exclude": [tmp_path / "none"]}, "none holds no file; name the files or folders"),
        ({"codes": True}, "leave the tokenizer out"),
        ({"tokenizer": None}, "give the folder of a tokenizer"), ({"exclude": ["none"]}, "none is not there"),
    ]:  # fmt: skip
        with pytest.raises(BertsmithError, match=sentence):
            bertsmith.build_corpus(tmp_path / "a.txt", **{"tokenizer": tokenizer, "out": tmp_path / "o", **changed})


@pytest.mark.parametrize("chosen", [{"unit": "line"}, {"shortest": 3}, {"exclude": "a.jsonl"}])
def test_what_is_for_text_is_not_for_codes(tmp_path, monkeypatch, chosen):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('[1, 2]\n{"rows": [3, 1]}\n')
    with pytest.raises(BertsmithError, match=f"^{next(iter(chosen))} is for text, and codes are rows of numbers"):
        bertsmith.build_corpus("a.jsonl", out="o", codes=True, field="rows", **chosen)
    bertsmith.build_corpus("a.jsonl", out="o", codes=True, field="rows", filters=False)


def test_what_ends_a_text_is_not_for_records(tmp_path, tokenizer):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(BertsmithError, match="unit is for plain text, and here each record is a document"):
        bertsmith.build_corpus(tmp_path / "a.jsonl", tokenizer, tmp_path / "o", unit="line")
