"""Broken files: each gets one sentence that names the file, the place and what to do."""

import errno
import os
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError

LONG_EATEN = "text,label\n" + 'x,"a\n' + "b,c\n" * 6 + '19",d\n'
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
CASES = {
    "empty": ("a.csv", b"", "is empty"),
    "blank": ("a.jsonl", b"\n \n", "is empty"),
    "only a mark": ("a.csv", b"\xef\xbb\xbf", "is empty"),
    "only a header": ("a.csv", b"text,label\n", "holds a header and no rows"),
    "latin-1": ("a.csv", b"text,label\nok,a\ncaf\xe9,b\n", r'line 3: byte 4 .*\(0xe9\) is not UTF-8.*"é".*iconv'),
    "bad utf-16": ("a.csv", b"\xff\xfea\0b", "mark of UTF-16 but is not valid"),
    "utf-16 without mark": ("a.csv", "text,label\n".encode("utf-16-le"), "UTF-16 without its mark"),
    "nul": ("a.csv", b"text,label\nok,a\nb\0d,b\n", "line 3: character 2 of the line is a NUL"),
    "gzip": ("a.csv", b"\x1f\x8b\x08", "gunzip"),
    "excel": ("a.csv", b"PK\x03\x04", "Excel workbook.*CSV"),
    "more columns": ("a.csv", b"a,b,label\n1,2,3\n1,2,3,4\n", "row 3: 4 columns where the first row has 3.*comma"),
    "fewer columns": ("a.csv", b"a,b,label\n1,2,3\n1,2\n", "row 3: 2 columns where the first row has 3"),
    "ragged tabs": ("a.tsv", b"text\tlabel\na\tb\na\tb\tc\n", "row 3: 3 columns where the first row has 2.*tab"),
    "ragged semicolons": ("a.csv", b"text;label\na;b\na, b;c;d\n", 'row 3: 3 columns where .*cut at each ";"'),
    "two names alike": ("a.csv", b"text,label,text\n1,2,3\n", 'row 1: columns 1 and 3 are both called "text"'),
    "open quote at the end": ("a.csv", b'text,label\na,b\n"c,d\ne,f\n', "line 3: .*never closed"),
    "closed in the middle": ("a.csv", b'text,label\n"a" b,c\n', "line 2: .*closed before its end"),
    "closed far below": ("a.csv", b'text,label\n"a,b\nc,d\n"e",f\n', "line 2: .*closed in the middle of line 4"),
    "a space before a quote": ("a.csv", b'"text", "label"\n"a, b", "x"\n', r'row 1: a space .* column 2 \("label"\)'),
    "a space, no header": ("a.csv", b'"a, b"; "x"\n"c"; "y"\n', r'row 1: a space stands before .* column 2 \("x"\)'),
    "a space and a comma": ("a.csv", b'"label", "text"\n"x", "a, b"\n', r'row 1: a space .* column 2 \("text"\)'),
    "swallowed rows": ("a.csv", LONG_EATEN.encode(), "line 2: .*goes on for 8 lines and has swallowed"),
    "carriage return": ("a.csv", b'text,label\n"a",b\nc\rd,e\n', "line 3: a carriage return"),
    "json": ("a.jsonl", b'{"text": "a"}\n{"text": \n', "line 2: not JSON .*at character"),
    "json first line": ("a.json", b'{"text": "a", }\n{"text": "b"}\n', "line 1: not JSON"),
    "json array": ("a.json", b'[{"text": "a"},\n{"text" "b"}]', "line 2: not JSON"),
    "json numbers": ("a.jsonl", b'{"text": "a"}\n17\n', "line 2: each line must hold one object, not 17"),
    "json of lists": ("a.json", b"[[1, 2], [3, 4]]", "record 1: a dict is needed"),
    "json of nothing known": ("a.json", b'{"q17": "Paris"}', "an object without a known column"),
    "json too deep": ("a.json", b"[" * 200_000, "nested too deeply|not JSON"),
    "json, a number of 5,000 digits": (
        "a.json", b'[{"text": "a"},\n{"text": "b", "n": ' + b"1" * 5000 + b"}]", "not JSON .*digits"
    ),
    "jsonl, a number of 5,000 digits": (
        "a.jsonl", b'{"text": "a"}\n{"text": "b", "n": ' + b"1" * 5000 + b"}\n", "line 2: not JSON .*digits"
    ),
    "jsonl, such a number at once": (
        "b.jsonl", b'{"text": "b", "n": ' + b"1" * 5000 + b'}\n{"text": "a"}\n', "line 1: not JSON .*digits"
    ),
    "a pointer of Git LFS": ("a.csv", LFS, "a pointer of Git LFS, not the data.*git lfs pull"),
    "such a pointer as Parquet": ("a.parquet", LFS, "a pointer of Git LFS"),
    "such a pointer as lines": ("a.txt", LFS, "a pointer of Git LFS"),
    "the header again": ("a.csv", b"text,label\na,x\ntext,label\nb,y\n", "row 3: the header stands here once more"),
    "the header again with a mark": (
        "a.tsv", b"\xef\xbb\xbftext\tlabel\na\tx\n\xef\xbb\xbftext\tlabel\n", "row 3: the header stands here once more"
    ),
    "the header again, indexed": ("a.csv", b",text,label\n0,a,x\n,text,label\n", "row 3: the header stands here"),
    "the header again, spaces": ("a.csv", b'text , label\na,"x"\ntext , label\n', "row 3: the header stands here once"),
    "empty array": ("a.json", b"[]", "holds no records"),
    "squad without context": ("a.json", b'{"data": [{"paragraphs": [{"qas": []}]}]}', 'paragraph 1: a text "context"'),
    "squad without qas": ("a.json", b'{"data": [{"paragraphs": [{"context": "a"}]}]}', 'paragraph 1: a list "qas"'),
    "squad without questions": ("a.json", b'{"data": [{"paragraphs": []}]}', "holds no questions"),
    "conll ragged": ("a.conll", b"EU B-ORG\nrejects O\nGerman\n", "line 3: 1 column where line 1 has 2"),
    "conllu ragged": ("a.conllu", b"1\ta" + b"\t_" * 8 + b"\n2\tb\n", "line 2: 2 columns where CoNLL-U has 10"),
    "conll without words": ("a.conll", b"-DOCSTART- O\n\n", "holds no sentences"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "sentence"), CASES.values(), ids=CASES)
def test_sentence(tmp_path, name, raw, sentence):
    path = tmp_path / name
    path.write_bytes(raw)
    with pytest.raises(BertsmithError, match=sentence) as caught:
        read_table(path)
    message = str(caught.value)
    assert message.startswith(str(path)) and message.endswith(".") and "\n" not in message


def test_two_columns_of_one_name_in_parquet(tmp_path):
    twins = pyarrow.table([["a"], ["b"], ["x"]], names=["text", "text", "label"])
    parquet.write_table(twins, tmp_path / "a.parquet")
    with pytest.raises(BertsmithError, match=r'a\.parquet has 2 columns called "text"; rename all but one'):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("given", ["", " "])
def test_no_name_is_no_folder(given):
    """What a shell makes of a variable that is not set must not be taken for the folder one stands in."""
    with pytest.raises(BertsmithError, match="the name of the file is empty; give a path"):
        read_table(given)


def test_paths(tmp_path):
    (tmp_path / "reviews.csv").write_text("text,label\na,b\n")
    with pytest.raises(BertsmithError, match=r"did you mean .*reviews\.csv"):
        read_table(tmp_path / "review.csv")
    with pytest.raises(BertsmithError, match=r"did you mean .*reviews\.csv"):
        read_table(tmp_path / "reviews.tsv")
    (tmp_path / "p.csv").write_text("text,label\na,b\n")
    with pytest.raises(BertsmithError, match=r"nope\.csv does not exist\.$"):  # the ending alone is like that of p.csv
        read_table(tmp_path / "nope.csv")
    (tmp_path / "p.csv").unlink()
    with pytest.raises(BertsmithError, match=r"is a folder; give one of its files \(it holds reviews\.csv\)"):
        read_table(tmp_path)
    with pytest.raises(BertsmithError, match="nor does the folder"):
        read_table(tmp_path / "no" / "file.csv")


def test_a_link_to_nothing_is_not_proposed_for_itself(tmp_path):
    (tmp_path / "train.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(BertsmithError, match=r"train\.csv does not exist \(it is a link to .*gone\.csv\)\.$"):
        read_table(tmp_path / "train.csv")


def test_unreadable(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    path = tmp_path / "a.csv"
    path.write_text("text,label\na,b\n")
    monkeypatch.setattr(Path, "read_bytes", refuse)  # chmod would not stop root
    with pytest.raises(BertsmithError, match="cannot be read: Permission denied"):
        read_table(path)


@pytest.mark.parametrize("source", [17, {"text": ["a"]}, b"text", None])
def test_no_data(source):
    with pytest.raises(BertsmithError, match="give a path, a DataFrame or a list of dicts"):
        read_table(source, name="train")


def test_records_that_are_none():
    with pytest.raises(BertsmithError, match=r"train, row 2: a dict is needed .* not str"):
        read_table([{"text": "a"}, "b"], name="train")
    with pytest.raises(BertsmithError, match="train holds no records"):
        read_table([], name="train")
    with pytest.raises(BertsmithError, match="format 'xls' is not known"):
        read_table("a.xls", format="xls")


def test_two_columns_of_one_name():
    class Frame:
        columns = ("text", "label", "text")

    with pytest.raises(BertsmithError, match='train has 2 columns called "text"'):
        read_table(Frame(), name="train")
