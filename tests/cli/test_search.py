"""`bertsmith search`: JSON lines in a pipe, two columns on a terminal, a sentence for each mistake."""

import pytest
from serving.models import LEARN, TAGS
from whole.tiny import make_encoder

import bertsmith

TEXTS = "The river runs through Oslo.\nAnn lives at the river.\nBob works in the town.\n"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("searched") / "encoder")


@pytest.fixture
def ask(real, encoder, tmp_path):
    """Runs `bertsmith search *words` over a folder of three sentences."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "rivers.txt").write_text(TEXTS)

    def run(*words, stdin=b"", place=folder):
        options = ("--in", place, "--model", encoder, "--device", "cpu", "--threads", "1")
        return real("search", *words, *options, stdin=stdin)

    run.folder = folder
    return run


def test_a_pipe_gets_one_record_a_query(ask):
    ran = ask("-", "--top-k", "2", stdin=b"the river\nBob\n")
    assert ran.status == 0 and [record["input"] for record in ran.records] == ["the river", "Bob"]
    for record in ran.records:
        assert list(record) == ["input", "answers", "truncated"] and len(record["answers"]) == 2
        for answer in record["answers"]:
            assert list(answer) == ["document", "start", "end", "text", "score"]
            assert TEXTS[answer["start"] : answer["end"]] == answer["text"]


def test_before_stands_beside_it(ask, monkeypatch):
    (record,) = ask("who works", "--before", "--how", "dense").records
    assert [answer["text"] for answer in record["before"]] == ["Bob works in the town."]
    assert len(record["answers"]) == 3
    monkeypatch.setattr("bertsmith.cli.search.wants_json", lambda asked: asked)
    ran = ask("who works", "--before", "--how", "dense")
    assert ran.status == 0 and "before (bm25)" in ran.out and "after (dense)" in ran.out
    assert ran.out.count("rivers.txt") == 4 and ran.out.count("[53:75]") == 2
    assert "(nothing found)" in ask("zzz", "--how", "bm25").out


def test_the_index_lies_where_one_says_and_notes_go_to_standard_error(ask, tmp_path):
    (ask.folder / "picture.txt").write_bytes(b"\x89PNG\0\xff")
    ran = ask("river", "--index", tmp_path / "elsewhere")
    assert ran.status == 0 and len(ran.records) == 1
    assert ran.err.startswith("note: picture.txt")
    assert (tmp_path / "elsewhere" / "index.json").exists() and not (ask.folder / ".bertsmith-index").exists()


def test_only_the_files_called_so_are_searched(ask):
    (ask.folder / "notes.md").write_text("The river is a song.\n")
    found = ask("river", "--only", "*.md", "--how", "dense").records[0]["answers"]
    assert [answer["document"] for answer in found] == ["notes.md"]


def test_a_cross_encoder_reranks(ask, tmp_path):
    judge = make_encoder(tmp_path / "judge", "ForSequenceClassification", num_labels=1)
    answers = ask("the river", "--rerank-model", judge).records[0]["answers"]
    scores = [answer["score"] for answer in answers]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True) and all(0 < score < 1 for score in scores)


def test_an_adapter_makes_the_vectors_and_leaves_the_cross_encoder_alone(ask, encoder, tmp_path):
    judge = make_encoder(tmp_path / "judge", "ForSequenceClassification", num_labels=1)
    bertsmith.finetune("tag", TAGS, TAGS, out=tmp_path / "names", model=encoder, check=False, **LEARN)
    plain = ask("the river", "--rerank-model", judge).records[0]["answers"]
    ran = ask("the river", "--rerank-model", judge, "--use", tmp_path / "names")
    assert ran.status == 0 and ran.records[0]["answers"] == plain


def test_mistakes_are_sentences(ask, tmp_path):
    ran = ask("-", stdin=b"river\n\n")
    assert ran.status == 1 and len(ran.records) == 1
    assert ran.err == "error: line 2: the query is empty; give some words to search for.\n"
    assert "error: the query is empty" in ask(" ").err
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = ask("river", place=empty)
    assert ran.status == 1 and "holds no text to search" in ran.err and ran.out == ""
    assert "is not there" in ask("river", place=tmp_path / "nowhere").err
    assert ask("river", "--how", "magic").status == 2
