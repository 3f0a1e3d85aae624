"""Broken data, and the sentence each gets, through the doors of `bertsmith check` and of fine-tuning.

`python tests/whole/test_bad_data.py` writes the table as docs/bad-data.md.
"""

import contextlib
import json
import math
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from bertsmith.checking import check
from bertsmith.cli.check import check as check_verb
from bertsmith.cli.options import spread
from bertsmith.errors import BertsmithError
from bertsmith.finetuning import finetune

PAGE = Path(__file__).parents[2] / "docs/bad-data.md"
REVIEWS = [f"the {noun} was {word}" for word in ("good", "bad", "fine", "dull") for noun in
           ("film", "plot", "cast", "end", "score", "pace")]  # fmt: skip
LABELS = ["pos", "neg"] * 12


@dataclass(frozen=True)
class Case:
    """`files` are written into an empty folder; `data` is the one to check (the first unless said), or records."""

    name: str
    level: str = ""  # refused: it cannot be read; error, warning, note: what the doctor says; read: it is good
    expected: str = ""  # the doctor's whole sentence, or how a reader's begins
    files: dict[str, bytes | str] = field(default_factory=dict)
    data: Any = None
    dev: Any = None
    options: dict[str, Any] = field(default_factory=dict)


def lines(*rows: str) -> str:
    return "".join(row + "\n" for row in rows)


def rows(texts=REVIEWS, labels=LABELS, header="text,label", delimiter=","):
    pairs = [f"{text}{delimiter}{label}" for text, label in zip(texts, labels, strict=True)]
    return lines(*([header] if header else []), *pairs)


def with_row(number: int, row: str, given: str = "") -> str:
    """Good reviews with this row, counted as an editor does, changed."""
    given = (given or rows()).splitlines()
    given[number - 1] = row
    return lines(*given)


def jsonl(records) -> str:
    return lines(*(json.dumps(record) for record in records))


def records(**changes):
    given = [{"text": text, "label": label} for text, label in zip(REVIEWS, LABELS, strict=True)]
    given[4] = {**given[4], **changes}
    return given


def squad(answers=None, *, count=24, **changes) -> str:
    context = "The river Seine runs through Paris and Rouen."
    qas = [{"id": f"q{n}", "question": f"Which town, {n}?", "answers": [{"text": "Paris", "answer_start": 29}]}
           for n in range(1, count + 1)]  # fmt: skip
    if answers is not None:
        qas[6]["answers"] = answers
    qas[6].update(changes)
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": qas}]}]})


NAMES = ["Ann", "Bob", "Cyd", "Dan", "Eve", "Fay"]
SENTENCES = [[f"{name} B-PER", "lives O", f"in{n} O", "Oslo B-LOC"] for n in range(4) for name in NAMES]


def conll(changed: list[str] | None = None) -> str:
    given = [*SENTENCES[:2], *([changed] if changed else []), *SENTENCES[2:]]
    return "\n".join(lines(*sentence) for sentence in given)


GOOD = rows()
OTHERS = rows([f"a very {text}" for text in REVIEWS])
THREE = rows([f"{number},{text}" for number, text in enumerate(REVIEWS)], header="id,text,label")

CASES: list[Case] = [
    # Files as such.
    Case("a file that is not there", "refused",
         "review.csv does not exist",
         {"reviews.csv": GOOD}, data="review.csv"),
    Case("an empty file", "refused",
         "reviews.csv is empty.",
         {"reviews.csv": ""}),
    Case("only a header", "refused",
         "reviews.csv holds a header and no rows.",
         {"reviews.csv": "text,label\n"}),
    Case("a folder without a train file", "refused",
         "corpus holds no file for train (train.*, training.*, trn.*)",
         {"corpus/notes.txt": "hello\n"}, data="corpus"),
    Case("a folder with two train files", "refused",
         "corpus holds 2 files that may be train: train.csv, train.tsv",
         {"corpus/train.csv": GOOD, "corpus/train.tsv": GOOD}, data="corpus"),
    Case("dev is a folder", "refused",
         "more is a folder",
         {"reviews.csv": GOOD, "more/dev.csv": OTHERS}, dev="more"),
    Case("an Excel workbook", "refused",
         "reviews.csv is a zip archive or an Excel workbook",
         {"reviews.csv": b"PK\x03\x04\x14\x00\x06\x00"}),
    Case("compressed with gzip", "refused",
         "reviews.csv is compressed with gzip",
         {"reviews.csv": b"\x1f\x8b\x08\x00\x00"}),
    # Bytes.
    Case("UTF-8 with a byte order mark", "read", "",
         {"reviews.csv": b"\xef\xbb\xbf" + GOOD.encode()}),
    Case("UTF-16 with its mark", "read", "",
         {"reviews.csv": GOOD.encode("utf-16")}),
    Case("UTF-16 without its mark", "refused",
         "reviews.csv looks like UTF-16 without its mark",
         {"reviews.csv": GOOD.encode("utf-16-le")}),
    Case("Latin-1", "refused",
         "reviews.csv, line 4: byte 7 of the line (0xe9) is not UTF-8",
         {"reviews.csv": with_row(4, "le café était bon,pos").encode("latin-1")}),
    Case("a NUL byte", "refused",
         "reviews.csv, line 5: character 10 of the line is a NUL byte, so the file is damaged or is not text",
         {"reviews.csv": with_row(5, "the film \0 was odd,pos")}),
    Case("CRLF line ends", "read", "",
         {"reviews.csv": GOOD.replace("\n", "\r\n")}),
    Case("CR line ends, as old Macs wrote", "read", "",
         {"reviews.csv": GOOD.replace("\n", "\r")}),
    Case("no line end at the end", "read", "",
         {"reviews.csv": GOOD.rstrip()}),
    Case("blank lines between rows", "read", "",
         {"reviews.csv": GOOD.replace("\n", "\n\n")}),
    # Rows and cells.
    Case("a line break inside quotes", "read", "",
         {"reviews.csv": with_row(3, '"the plot\nwas ""bad"", really",neg')}),
    Case("three columns, then four", "refused",
         "reviews.csv, row 6: 4 columns where the first row has 3, cut at each comma",
         {"reviews.csv": with_row(6, "5,the pace, at last,pos", THREE)}),
    Case("two columns, then one", "refused",
         "reviews.csv, row 6: 1 column where the first row has 2, cut at each comma",
         {"reviews.csv": with_row(6, "the pace was fine")}),
    Case("a quote that is never closed", "refused",
         'reviews.csv, line 8: a cell that begins with a quote mark (") in this row is never closed',
         {"reviews.csv": with_row(8, '"the pace was fine,pos')}),
    Case("a quote closed too early", "refused",
         'reviews.csv, line 8: a cell begins with a quote mark (") in this row and is closed before its end',
         {"reviews.csv": with_row(8, '"the pace" was fine,pos')}),
    Case("semicolons instead of commas", "read", "",
         {"reviews.csv": rows(header="text;label", delimiter=";")}),
    Case("Excel's first line sep=;", "read", "",
         {"reviews.csv": "sep=;\r\n" + rows(header="text;label", delimiter=";")}),
    Case("two columns of one name", "refused",
         'reviews.csv, row 1: columns 1 and 2 are both called "text"',
         {"reviews.csv": rows(header="text,text")}),
    # Columns.
    Case("no header", "note",
         'Took column "column 2" as label and "column 1" as text because',
         {"reviews.csv": rows(header="")}),
    Case("no label column", "refused",
         "reviews.csv has no column known as label",
         {"reviews.csv": lines("text", *REVIEWS)}),
    Case("a column of 0 and 1 for each label", "refused",
         "reviews.csv has no column known as label",
         {"reviews.csv": rows(labels=[f"{n % 2},{n % 3 // 2}" for n in range(24)], header="text,good,long")}),
    Case("those columns named", "read", "",
         {"reviews.csv": rows(labels=[f"{n % 2},{n % 3 // 2}" for n in range(24)], header="text,good,long")},
         options={"columns": {"label": "good,long"}}),
    Case("what is neither 0 nor 1 in one of them", "refused",
         'reviews.csv, row 2, column "long": 1 or 0 is needed in a column that is a label, not a text (-1)',
         {"reviews.csv": rows(labels=[f"{n % 2},{n % 3 - 1}" for n in range(24)], header="text,good,long")},
         options={"columns": {"label": "good,long"}}),
    Case("two columns that may be the text", "refused",
         'reviews.csv has 2 columns that may be the text: "review", "comment"',
         {"reviews.csv": rows([f"{t},{t}" for t in REVIEWS], header="review,comment,label")}),
    Case("a chosen column that is not there", "refused",
         'reviews.csv has no column "lable", which was chosen as label',
         {"reviews.csv": GOOD}, options={"columns": {"label": "lable"}}),
    Case("unknown names, two columns", "note",
         'Took column "how" as label and "what" as text because',
         {"reviews.csv": rows(header="what,how")}),
    # Texts and labels.
    Case("an empty text", "warning",
         "1 text of 24 is empty (reviews.csv, row 7).",
         {"reviews.csv": with_row(7, ",pos")}),
    Case("all texts empty", "error",
         "24 texts of 24 are empty: is this the right column (reviews.csv, rows 2, 3, 4 and 21 more)?",
         {"reviews.csv": rows([" "] * 24)}),
    Case("a label missing", "refused",
         'reviews.csv, row 7, column "label": the label is empty',
         {"reviews.csv": with_row(7, "the film was odd,")}),
    Case("a label that is null", "refused",
         'train, row 5, column "label": the label is empty',
         data=records(label=None)),
    Case("a label that is NaN", "refused",
         'train, row 5, column "label": the label is empty',
         data=records(label=math.nan)),
    Case("one label that is a list", "warning",
         "Only 1 example of 24 has none or several labels: is one label each meant (train, row 5)?",
         data=records(label=["pos", "neg"])),
    Case("a text that is a number", "refused",
         'train, row 5, column "text": a text is needed here, not a number (12).',
         data=records(text=12)),
    Case("a text that is a list", "refused",
         "train, row 5, column \"text\": a text is needed here, not a list (['a', 'b']).",
         data=records(text=["a", "b"])),
    Case("labels 0 and 1 as numbers", "read", "",
         data=[{"text": t, "label": int(label == "pos")} for t, label in zip(REVIEWS, LABELS, strict=True)]),
    Case("numbers and words as labels", "warning",
         'Fewer than 5 examples of 1 label: "1" (1); too few to learn or to measure (train, row 5).',
         data=records(label=1)),
    Case("one class", "error",
         'Every example has the label "pos": with one class there is nothing to learn; is this the right '
         "column (reviews.csv, row 2)?",
         {"reviews.csv": rows(labels=["pos"] * 24)}),
    Case("a label only in dev", "error",
         'Dev has the label "mixed", which train never shows, so 1 dev answer can never be right (dev.csv, row '
         "2).",
         {"reviews.csv": GOOD, "dev.csv": "text,label\nso so,mixed\nwell done,pos\nnot much,neg\n"}, dev="dev.csv"),
    Case("dev is train", "error",
         "All 24 dev texts (100 %) stand in train too: the score would measure memory, not skill; give dev "
         "texts that train does not hold (reviews.csv, rows 2, 3, 4 and 21 more).",
         {"reviews.csv": GOOD}, dev="reviews.csv"),
    Case("some of train in dev", "warning",
         "1 of 25 dev texts (4.0 %) stands in train too: the score will be too good by them (dev.csv, row 26).",
         {"reviews.csv": GOOD, "dev.csv": OTHERS + "the film was good,pos\n"}, dev="dev.csv"),
    Case("the same text with two labels", "warning",
         "The same text with different labels, 1 time: at most one can be right (reviews.csv, rows 2 and 26).",
         {"reviews.csv": GOOD + "the film was good,neg\n"}),
    Case("a misspelt label", "warning",
         'The label "positve" (1 time) and "positive" (45) differ by one letter: are they one (reviews.csv, '
         "row 92)?",
         {"reviews.csv": rows([f"text {n}" for n in range(91)], ["positive", "negative"] * 45 + ["positve"])}),
    Case("a label in two cases", "warning",
         'The label "Pos" (1 time) and "pos" (12) differ only by case: are they one (reviews.csv, row 9)?',
         {"reviews.csv": with_row(9, "the film was odd,Pos")}),
    Case("one number written in two ways", "warning",
         'The label "1.0" (6 times) and "1" (6) differ only in how a number is written: are they one (reviews.csv, '
         "rows 4, 8, 12 and 3 more)?",
         {"reviews.csv": rows(labels=["1", "0", "1.0", "0"] * 6)}),
    Case("a label that means none", "warning",
         'The label "-" often means that there is none, and would be learnt as a class: take these rows out unless it '
         "is one (reviews.csv, rows 4, 7, 10 and 5 more).",
         {"reviews.csv": rows(labels=["pos", "neg", "-"] * 8)}),
    Case("ids as labels", "error",
         '24 different labels in 24 examples, such as "u0", "u1": that is an id or a text, not a class; choose '
         "another label column (reviews.csv, row 2).",
         {"reviews.csv": rows(labels=[f"u{n}" for n in range(24)])}),
    Case("measurements as classes", "error",
         "The labels are 24 different numbers such as 0.000, 0.125, 0.250: predicting a number is regression, "
         "not classify; say --task regress, choose another label column, or group the numbers into classes "
         "(reviews.csv, row 2).",
         {"reviews.csv": rows(labels=[f"{n / 8:.3f}" for n in range(24)])}, options={"task": "classify"}),
    Case("NaN among measurements", "refused",
         'reviews.csv, row 2, column "label": the label is empty',
         {"reviews.csv": rows(labels=["NaN", *(f"{n / 8:.3f}" for n in range(23))])}),
    Case("several labels in one cell", "warning",
         '1 label such as "pos;neg" is made of other labels and ";": if these are several labels a text, give '
         "--several (reviews.csv, rows 4, 7, 10 and 5 more).",
         {"reviews.csv": rows(labels=["pos", "neg", "pos;neg"] * 8)}),
    Case("the text column chosen as label too", "error",
         "The text is the label itself in 24 examples: is one column used for both (reviews.csv, rows 2, 3, 4 "
         "and 21 more)?",
         {"reviews.csv": GOOD}, options={"columns": {"text": "label", "label": "label"}}),
    Case("a document of 40,000 words", "warning",
         "1 text of more than 10,240 tokens, the longest of 40,002, where the model reads 512 at a time: is "
         "that one text each (reviews.csv, row 5)?",
         {"reviews.csv": with_row(5, "word " * 40_000 + ",pos")}),
    Case("text from a wrong encoding", "warning",
         "1 example (4.2 %) with characters such as â€™ or � that come from a wrong encoding (reviews.csv, row "
         "5).",
         {"reviews.csv": with_row(5, "itâ€™s good,pos")}),
    Case("what a spreadsheet could not compute", "warning",
         "1 example (4.2 %) with a spreadsheet's error such as #REF! or #N/A in place of a text (reviews.csv, row 5).",
         {"reviews.csv": with_row(5, "#REF!,pos")}),
    Case("half a surrogate pair", "refused",
         'reviews.jsonl, line 5, column "text": character 9 is half of a surrogate pair (\\ud83d), which is no '
         "character",
         {"reviews.jsonl": jsonl(records(text="so good \ud83d"))}),
    # JSON.
    Case("a broken line in JSONL", "refused",
         "reviews.jsonl, line 1: not JSON",
         {"reviews.jsonl": jsonl(records()).replace('"pos"}', '"pos"', 1)}),
    Case("JSONL with changing keys", "refused",
         'reviews.jsonl, line 25, column "text": the text is missing',
         {"reviews.jsonl": jsonl([*records(), {"review": "so good", "label": "pos"}])}),
    Case("a JSON array of texts", "refused",
         'reviews.json, record 1: a dict is needed as in {"text": …, "label": …}, not str.',
         {"reviews.json": json.dumps(REVIEWS)}),
    Case("a JSON number", "refused",
         "reviews.json holds a int",
         {"reviews.json": "12\n"}),
    Case("JSON that ends too soon", "refused",
         "reviews.json, line 1: not JSON",
         {"reviews.json": json.dumps(records())[:-9]}),
    Case("records that are texts", "refused",
         'train, row 1: a dict is needed as in {"text": …, "label": …}, not str.',
         data=REVIEWS),
    # Questions.
    Case("SQuAD without paragraphs", "refused",
         "squad.json has no column known as question",
         {"squad.json": json.dumps({"data": [{"title": "Paris"}]})}, options={"task": "span"}),
    Case("SQuAD without a question", "refused",
         'squad.json, article 1, paragraph 1, question 7: a text "question" is needed here, as SQuAD has it.',
         {"squad.json": squad(question=None)}),
    Case("an answer that is not in the text", "refused",
         'squad.json, question 7 (id q7), column "answers": the answer "Lyon" does not stand at character 29, '
         'where "Pari" stands',
         {"squad.json": squad([{"text": "Lyon", "answer_start": 29}])}),
    Case("an answer's place off by one", "refused",
         'squad.json, question 7 (id q7), column "answers": the answer "Paris" does not stand at character 28, '
         'where " Pari" stands',
         {"squad.json": squad([{"text": "Paris", "answer_start": 28}])}),
    Case("an answer's place beyond the text", "refused",
         'squad.json, question 7 (id q7), column "answers": the answer "Paris" does not stand at character '
         "2,900, where nothing stands",
         {"squad.json": squad([{"text": "Paris", "answer_start": 2900}])}),
    Case("an answer without a place", "read", "",
         {"squad.json": squad([{"text": "Paris"}])}),
    Case("an empty answer", "refused",
         'squad.json, question 7 (id q7), column "answers": an answer is empty',
         {"squad.json": squad([{"text": "", "answer_start": 0}])}),
    Case("an answer that is a text", "read", "",
         {"squad.json": squad(["Paris"])}),
    Case("one id for two questions", "warning",
         '1 id of more than one question, such as "q3": predictions by id will overwrite each other '
         "(squad.json, questions 3 and 7).",
         {"squad.json": squad(id="q3")}),
    Case("questions without any answer", "error",
         "No train question has an answer: there is nothing to learn (squad.json, question 1 (id q1)).",
         {"squad.json": squad([], count=7).replace('[{"text": "Paris", "answer_start": 29}]', "[]")}),
    # Tags.
    Case("CoNLL with one column", "error",
         "2 train examples without tags (train.conll, lines 1 and 4).",
         {"train.conll": lines("Ann", "lives", "", "Bob", "sees")}),
    Case("CoNLL with changing columns", "refused",
         "train.conll, line 11: 3 columns where line 1 has 2",
         {"train.conll": conll(["Gus NNP B-PER", "runs O"])}),
    Case("tags and words of different counts", "refused",
         "train, row 1: 2 words but 1 tag",
         data=[{"words": ["Ann", "runs"], "tags": ["B-PER"]}]),
    Case("words that are a number", "refused",
         'train, row 1, column "words": a text is needed here, not a number (5).',
         data=[{"words": 5, "tags": ["B-PER"]}]),
    Case("a tag that is null", "refused",
         'train, row 1, column "tags": the tag of word 2 is empty.',
         data=[{"words": ["Ann", "runs"], "tags": ["B-PER", None]}]),
    Case("I- after O in iob2", "warning",
         "The tags look like iob2 (B- begins every chunk), but I- begins 1 chunk (train.conll, line 11).",
         {"train.conll": conll(["the O", "Nile I-LOC"])}),
    Case("a tag without its prefix", "error",
         'The tags look like iob2, but "LOC" has no prefix: is a B- or I- missing (train.conll, line 11)?',
         {"train.conll": conll(["the O", "Nile LOC"])}),
    Case("a zero for an O", "error",
         'The tags look like iob2, but "0" has no prefix: the letter O may be meant (train.conll, line 11).',
         {"train.conll": conll(["the 0", "Nile B-LOC"])}),
    Case("nothing but O", "error",
         "Every word has the tag O: there is nothing to learn; is this the right column (train.conll, line 1)?",
         {"train.conll": "\n".join(lines("a O", f"b{n} O") for n in range(24))}),
    Case("a type only in dev", "error",
         'Dev has the type "ORG", which train never shows, so 1 dev answer can never be right (dev.conll, line '
         "1).",
         {"train.conll": conll(), "dev.conll": lines("Gus B-ORG", "runs O")}, dev="dev.conll"),
    Case("sentences without blank lines", "error",
         "All 1,152 words are one sentence: put a blank line between sentences (train.conll, line 1).",
         {"train.conll": conll().replace("\n\n", "\n") * 12}),
]  # fmt: skip


def outcome(case: Case) -> tuple[str, list[str]]:
    """What became of it: "refused" and the error, or "read" and the findings as "level: sentence"."""
    for name, content in case.files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    data = next(iter(case.files), None) if case.data is None else case.data
    try:
        found = check(data, case.dev, **case.options)
    except BertsmithError as error:
        return "refused", [str(error)]
    return "read", [f"{finding.level}: {finding.sentence}" for finding in found.findings]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_gets_its_sentence(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state, sentences = outcome(case)
    if case.level == "refused":
        assert state == "refused" and sentences[0].startswith(case.expected)
        assert sentences[0].endswith((".", "?")) and "\n" not in sentences[0]
    else:
        assert state == "read"
        errors = [sentence for sentence in sentences if sentence.startswith("error")]
        assert bool(errors) == (case.level == "error")
        if case.expected:
            assert any(sentence.startswith(f"{case.level}: {case.expected}") for sentence in sentences)
        else:
            assert not [sentence for sentence in sentences if sentence.startswith("warning")]


def test_the_verb_says_the_same_and_its_status_tells(tmp_path, monkeypatch):
    app = typer.Typer()
    app.command()(spread(check_verb))
    for case in CASES:
        if case.data is not None and not isinstance(case.data, str):
            continue
        folder = tmp_path / str(CASES.index(case))
        folder.mkdir()
        monkeypatch.chdir(folder)
        outcome(case)  # writes the files
        words = [case.data or next(iter(case.files)), *(["--dev", case.dev] if case.dev else [])]
        for name, value in {**case.options, **case.options.get("columns", {})}.items():
            words += [] if name == "columns" else [f"--{name}", value]
        ran = CliRunner().invoke(app, words)
        if case.level == "refused":
            assert isinstance(ran.exception, BertsmithError) and str(ran.exception).startswith(case.expected)
        else:
            assert ran.exit_code == (case.level == "error")
            found = json.loads(ran.stdout)
            assert found["errors"] == sum(finding["level"] == "error" for finding in found["findings"])
            sentences = [finding["sentence"] for finding in found["findings"]]
            assert not case.expected or any(sentence.startswith(case.expected) for sentence in sentences)


def finetune_outcome(case: Case, model: Path) -> tuple[str, list[str]]:
    """What fine-tuning says before its first step: "stopped" and the sentence, or "planned" and all of them."""
    data = next(iter(case.files), None) if case.data is None else case.data
    name = str(data) if isinstance(data, str) else ""
    words = not name and isinstance(data[0], dict) and "words" in data[0]
    task = "span" if name.endswith("squad.json") else "tag" if name.endswith(".conll") or words else "classify"
    said: list[str] = []
    try:
        finetune(task, data, case.dev, out="never", model=model, dry_run=True, device="cpu", say=said.append,
                 **case.options.get("columns", {}))  # fmt: skip
    except BertsmithError as error:
        return "stopped", [str(error)]
    return "planned", said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fine_tuning_stops_at_what_would_waste_it(case, tmp_path, monkeypatch, demo_model):
    monkeypatch.chdir(tmp_path)
    outcome(case)  # writes the files
    state, sentences = finetune_outcome(case, demo_model)
    if case.level in ("refused", "error"):
        assert state == "stopped" and "\n" not in sentences[0]
    else:
        assert state == "planned", sentences
        assert not Path("never").exists()
    if case.level == "refused":
        assert sentences[0].startswith(case.expected)
    elif case.dev and case.level in ("error", "warning"):
        assert case.expected.rstrip(".?") in " ".join(sentences)


def test_there_are_enough_of_them():
    assert len(CASES) >= 60 and len({case.name for case in CASES}) == len(CASES)


def make_page() -> str:
    shown = {"refused": "cannot be read", "error": "stops the run", "warning": "warning", "note": "note",
             "read": "is read as it is"}  # fmt: skip
    rows = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            _, sentences = outcome(case)
        said = next((s for s in sentences if case.expected and case.expected in s), "")
        cell = said.removeprefix(f"{case.level}: ").replace("|", "\\|")
        rows.append(f"| {case.name} | {shown[case.level]} | {cell} |\n")
    return HEAD + "".join(rows)


HEAD = """# Bad data, and the sentence it gets

What `bertsmith check` says to each of these files, and `bertsmith finetune` before it trains. What cannot be read, and
what would waste the run, ends with that sentence; a warning is said and training goes on. Written by
`python tests/whole/test_bad_data.py`; a test compares it.

| data | what happens | the sentence |
|---|---|---|
"""


def test_the_page_is_current():
    assert PAGE.read_text("utf-8") == make_page()


if __name__ == "__main__":
    os.environ.pop("BERTSMITH_MODEL", None)
    PAGE.write_text(make_page(), "utf-8", newline="\n")
