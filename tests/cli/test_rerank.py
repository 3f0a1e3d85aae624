"""`rerank` and `similar`: texts of the command, of a file, of standard input; tables; wrong commands."""

import pytest

import bertsmith

TEXTS = ["the film was good", "the song was bad", "oslo is a town"]


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    from whole.tiny import make_encoder

    return make_encoder(tmp_path_factory.mktemp("judge") / "model", "ForSequenceClassification", num_labels=1)


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "table.csv").write_text("number,what\n" + "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS)))
    return tmp_path


def wanted(folder, verb):
    model = bertsmith.load(folder, device="cpu")
    return (model.rerank if verb == "rerank" else model.similar)("a good film", TEXTS).answers


@pytest.mark.parametrize("verb", ["rerank", "similar"])
def test_texts_come_from_the_command_a_file_or_a_pipe(real, judge, lines, verb):
    model = ["--model", judge, "--threads", 1]
    answers = [
        real(verb, "a good film", *TEXTS, *model),
        real(verb, "a good film", "--texts", lines / "lines.txt", *model),
        real(verb, "a good film", "--texts", lines / "table.csv", "--text", "what", *model),
        real(verb, "a good film", "--texts", "-", *model, stdin="\n".join(TEXTS).encode()),
        real(verb, "a good film", "-", *model, stdin="\n".join(TEXTS).encode()),
    ]
    for ran in answers:
        assert ran.status == 0 and ran.err == ""
        (record,) = ran.records
        assert record["input"] == "a good film" and record["truncated"] == 0
        for answer, expected in zip(record["answers"], wanted(judge, verb), strict=True):
            assert answer == {**expected, "score": pytest.approx(expected["score"], abs=1e-5)}
    (record,) = real(verb, "a good film", *TEXTS, "--top-k", 1, *model).records
    assert len(record["answers"]) == 1


@pytest.mark.parametrize("verb", ["rerank", "similar"])
def test_an_index_counts_the_lines_that_are_empty_too(real, judge, tmp_path, verb):
    content = "\n" + "\n \n".join(TEXTS) + "\n"
    (tmp_path / "lines.txt").write_text(content)
    model = ["--model", judge, "--threads", 1]
    for words, stdin in ((["--texts", tmp_path / "lines.txt"], b""), (["-"], content.encode())):
        (record,) = real(verb, "a good film", *words, *model, stdin=stdin).records
        assert len(record["answers"]) == len(TEXTS)
        assert all(content.split("\n")[answer["index"]] == answer["text"] for answer in record["answers"])


@pytest.mark.parametrize("verb", ["rerank", "similar"])
def test_a_terminal_gets_a_table(real, judge, verb, monkeypatch):
    monkeypatch.setattr(f"bertsmith.cli.{verb}.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "100")
    ran = real(verb, "a good film", *TEXTS, "--model", judge, "--threads", 1)
    assert "index" in ran.out and all(text in ran.out for text in TEXTS) and "{" not in ran.out


@pytest.mark.parametrize(
    "words, status, sentence",
    [
        (["rerank", "x"], 2, "give the texts behind the query or as --texts FILE, one of the two"),
        (["rerank", "x", "a", "--texts", "f"], 2, "give the texts behind the query or as --texts FILE, one of the two"),
        (["similar", "x"], 2, "give the other texts behind the first or as --texts FILE, one of the two"),
        (["similar", "x", "-", "a"], 2, "- is standard input and stands alone, without other texts"),
        (["similar", "x", "a", "--text", "c"], 2, "a column was named, but no file; give --texts FILE too"),
        (["rerank", " ", "a"], 1, "the query is empty"),
        (["rerank", "x", "--texts", "nowhere.txt"], 1, "nowhere.txt does not exist"),
        (["rerank", "x", "the " * 99, "--truncate", "error"], 1, "tokens but at most 64 fit"),
    ],
)
def test_wrong_commands(real, judge, words, status, sentence):
    ran = real(*words, "--model", judge, "--threads", 1)
    assert ran.status == status and sentence in " ".join(ran.err.split())


def test_what_is_cut_is_said(real, judge):
    ran = real("rerank", "x", "the " * 99, "--model", judge, "--threads", 1)
    assert ran.err.startswith("cut: 1 of 1 input") and "policy head; --truncate error|tail|head+tail" in ran.err


def test_the_demo_model_says_what_to_do(real, demo_model):
    ran = real("rerank", "x", "a", "--model", demo_model, "--threads", 1)
    assert ran.status == 1 and "has no head to rerank texts" in ran.err and "task 'rerank'" in ran.err
    (record,) = real("embed", "x", "--dims", 7, "--model", demo_model, "--threads", 1).records
    assert len(record["vector"]) == 7
