"""`classify`, `tag` and `answer`: texts, standard input and files; against transformers and against the texts."""

import json

import pytest
import transformers


@pytest.fixture
def terminal(monkeypatch):
    for verb in ("classify", "tag", "answer"):
        monkeypatch.setattr(f"bertsmith.cli.{verb}.wants_json", lambda asked: asked)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def ask(real, place):
    """Asks the model that was fine-tuned on a file of the place."""
    return lambda verb, *words, model, stdin=b"": real(
        verb, *words, "--model", place / model, "--threads", 1, stdin=stdin
    )


def test_classify_says_what_transformers_says(ask, place):
    texts = ["the film was good", "a sad plot", ""]
    ran = ask("classify", *texts, model="reviews")
    assert ran.status == 0 and ran.err == "" and [record["input"] for record in ran.records] == texts
    theirs = transformers.pipeline("text-classification", model=str(place / "reviews"), top_k=None)
    for record, scores in zip(ran.records, theirs(texts), strict=True):
        assert [answer["label"] for answer in record["answers"]] == [score["label"] for score in scores]
        assert [a["score"] for a in record["answers"]] == pytest.approx([s["score"] for s in scores], abs=1e-5)
        assert record["truncated"] == 0
    (record,) = ask("classify", texts[0], "--top-k", 1, model="reviews").records
    assert len(record["answers"]) == 1 and record["answers"][0] == pytest.approx(ran.records[0]["answers"][0])


def test_pairs_come_by_a_flag_by_tabs_and_from_a_file(ask, place):
    first, second = "the film was good", "it was bad"
    (flagged,) = ask("classify", first, "--pair", second, model="pairs").records
    tabbed = ask("classify", "-", model="pairs", stdin=f"{first}\t{second}\n{second}\t{first}\n".encode()).records
    filed = ask("classify", "--in", place / "pairs.jsonl", model="pairs").records
    assert [(record["input"], record["pair"]) for record in (flagged, *tabbed)] == [
        (first, second), (first, second), (second, first),
    ]  # fmt: skip
    records = map(json.loads, (place / "pairs.jsonl").read_text().splitlines())
    asked = [(record["premise"], record["hypothesis"]) for record in records]
    assert [(record["input"], record["pair"]) for record in filed] == asked
    for same in (tabbed[0], filed[asked.index((first, second))]):
        assert [a["label"] for a in same["answers"]] == [a["label"] for a in flagged["answers"]]
        assert same["answers"][0] == pytest.approx(flagged["answers"][0])


@pytest.mark.parametrize(
    "lines, sentence, answered",
    [
        ("a\nb\tc\n", "line 2: 2 tab-separated columns, but line 1 has 1.", 1),
        ("a\tb\n", "line 1: the model was trained on single texts, but this is a pair; leave the second text out.", 0),
        ("a\tb\tc\n", "line 1: 3 tab-separated columns, where a text or a text and its pair are needed.", 0),
    ],
)
def test_lines_with_and_without_a_pair_do_not_mix(ask, lines, sentence, answered):
    ran = ask("classify", "-", model="reviews", stdin=lines.encode())
    assert (ran.status, ran.err, len(ran.records)) == (1, f"error: {sentence}\n", answered)


def test_a_file_has_its_columns_found_or_named(ask, place, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("number,what\n1,the film was good\n2,the plot was sad\n")
    named = ask("classify", "--in", path, "--text", "what", model="reviews")
    assert [record["input"] for record in named.records] == ["the film was good", "the plot was sad"]
    assert len(ask("classify", "--in", place / "reviews.csv", model="reviews").records) == 48
    lines = ask("classify", "--in", "-", model="reviews", stdin=b"the film was good\nthe plot was sad\n")
    assert [record["answers"] for record in lines.records] == [record["answers"] for record in named.records]


def test_what_was_cut_is_said_with_the_policy_of_the_model(ask):
    long = "good " * 100
    ran = ask("classify", long, "bad", model="reviews")
    assert [record["truncated"] for record in ran.records] == [38, 0]
    assert ran.err == "cut: 1 of 2 inputs, 38 tokens (policy head; --truncate error|tail|head+tail|windows to change)\n"
    assert ask("classify", long, "--truncate", "windows", model="reviews").err == ""
    refused = ask("classify", "bad", long, "--truncate", "error", model="reviews")
    assert refused.status == 1 and refused.err.startswith("error: text 2: the input has 102 tokens")
    assert len(refused.records) == 1


def test_tag_gives_slices_of_the_text_and_a_tag_a_word(ask):
    text = "Ann lives in New York, and Bob met Eve."
    (record,) = ask("tag", text, model="train").records
    assert record["answers"] and len(record["tags"]) == 11
    for answer in record["answers"]:
        assert text[answer["start"] : answer["end"]] == answer["word"]
    (pieces,) = ask("tag", text, "--aggregation", "none", model="train").records
    assert all(set(answer) >= {"entity", "index"} for answer in pieces["answers"])


def test_tag_takes_the_words_of_a_file_as_they_are(ask, place, tmp_path):
    (tmp_path / "words.jsonl").write_text(json.dumps({"words": ["Ann", "New-York's", "U.S."]}) + "\n")
    (record,) = ask("tag", "--in", tmp_path / "words.jsonl", model="train").records
    assert record["input"] == "Ann New-York's U.S." and len(record["tags"]) == 3
    tagged = ask("tag", "--in", place / "train.conll", model="train").records
    assert len(tagged) == 30 and [len(record["tags"]) for record in tagged] == [
        len(record["input"].split()) for record in tagged
    ]
    long = tmp_path / "long.jsonl"
    long.write_text(json.dumps({"words": ["good"] * 100}) + "\n")
    refused = ask("tag", "--in", long, "--truncate", "error", model="train")
    assert refused.status == 1 and refused.err.count("long.jsonl") == 1


def test_answers_are_slices_of_the_context(ask, tmp_path):
    context = "Ann lives in Paris and works at the river ."
    (tmp_path / "context.txt").write_text(context)
    (record,) = ask("answer", "who lives here", "--context", context, "--top-k", 3, model="squad").records
    assert "context" not in record and len(record["answers"]) == 3 and 0 <= record["no_answer"] <= 1
    for answer in record["answers"]:
        assert context[answer["start"] : answer["end"]] == answer["answer"]
    two = ask(
        "answer", "who lives here", "where is the town", "--context", f"@{tmp_path / 'context.txt'}", model="squad"
    )
    assert two.records[0]["answers"][0] == pytest.approx(record["answers"][0])
    tabbed = ask("answer", "-", model="squad", stdin=f"who lives here\t{context}\n".encode())
    assert tabbed.records[0]["context"] == context
    assert tabbed.records[0]["answers"][0] == pytest.approx(record["answers"][0])
    (tmp_path / "asked.jsonl").write_text(json.dumps({"id": "q7", "question": "who lives here", "context": context}))
    (filed,) = ask("answer", "--in", tmp_path / "asked.jsonl", model="squad").records
    assert filed["id"] == "q7" and filed["answers"][0] == pytest.approx(record["answers"][0])


@pytest.mark.parametrize(
    "verb, words, status, sentence",
    [
        ("classify", [], 2, "give a text, - for standard input, or --in FILE"),
        ("answer", ["x", "--context", "-"], 2, "--context is a text or @FILE"),
        ("classify", ["x", "--in", "reviews.csv"], 2, "not both"),
        ("classify", ["x", "--text", "review"], 2, "give --in FILE too"),
        ("tag", ["x", "--aggregation", "last"], 2, "--aggregation"),
        ("answer", ["Who?"], 2, "--context TEXT"),
        ("answer", ["Who?", "--context", "@nothing.txt"], 1, "nothing.txt cannot be read: No such file"),
        ("answer", ["Who?", "--context", "x", "--truncate", "head+tail"], 2, "--truncate"),
        ("classify", ["x", "--model", "train"], 1, "has no head to classify texts"),
        ("tag", ["x", "--model", "squad"], 1, "has no head to tag words"),
        ("answer", ["x", "--context", "y", "--model", "reviews"], 1, "has no head to answer questions"),
        ("classify", ["--in", "reviews.csv", "--text", "nothing", "--model", "reviews"], 1, 'no column "nothing"'),
        ("answer", ["--in", "reviews.csv", "--model", "squad"], 1, "question"),
    ],
)
def test_refusals(real, place, monkeypatch, verb, words, status, sentence):
    monkeypatch.chdir(place)
    ran = real(verb, *words)
    assert ran.status == status and sentence in ran.err and ran.out == "" and "Traceback" not in ran.err


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_tables(ask):
    assert "the film  |  it" in ask("classify", "the film", "--pair", "it", model="pairs").out
    (record,) = ask("tag", "Ann runs", "--json", model="train").records
    marked = ask("tag", "Ann runs", model="train").out
    for answer in record["answers"]:
        assert f"[{answer['word']}]({answer['entity_group']})" in marked
    context = "it was very fine and very good in the town . Ann lives in Paris and works at the river , very happy ."
    shown = ask("answer", "who lives here", "--context", context, "--top-k", 9, model="squad").out
    assert "(no answer)" in shown and "…" in shown and "in the text" in shown
    assert r"\x1b[31m" in ask("tag", "Ann \x1b[31m", model="train").out


def test_the_name_of_a_file_in_place_of_a_text(ask, tmp_path, monkeypatch):
    """It was classified as a text, and nothing was said."""
    monkeypatch.chdir(tmp_path)
    for name in ("my reviews.csv", "good"):
        (tmp_path / name).write_text("text\nthe film was good\n")
    ran = ask("classify", "my reviews.csv", "good", "no.csv", model="reviews")
    assert ran.status == 0 and [record["input"] for record in ran.records] == ["my reviews.csv", "good", "no.csv"]
    told = "my reviews.csv is a file, and its name was asked about; --in 'my reviews.csv' asks about its rows.\n"
    assert ran.err == told
