"""Every format against the standard library's own readers, and the numbers of the rows against an editor's."""

import csv
import io
import json
import sys

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bertsmith.data.delimited import _quoted_rows
from bertsmith.data.reading import read_table
from bertsmith.data.streaming import open_rows
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

RECORDS = [
    {"text": "plain", "label": "pos"},
    {"text": 'with "quotes", a comma', "label": "neg"},
    {"text": "two\nlines and a\ttab", "label": "pos"},
    {"text": "Grüße, 你好 🎉\u2028\x85 all one line", "label": "neg"},
    {"text": " spaces stay ", "label": "pos"},
    {"text": "", "label": "neg"},
]


def write_csv(records, delimiter=",", end="\r\n"):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(records[0]), delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()


def write_lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


WRITERS = {
    "a.csv": lambda: write_csv(RECORDS),
    "b.csv": lambda: write_csv(RECORDS, end="\n"),
    "c.csv": lambda: write_csv(RECORDS, ";"),
    "d.csv": lambda: write_csv(RECORDS, "\t"),
    "a.tsv": lambda: write_csv(RECORDS, "\t"),
    "a.tab": lambda: write_csv(RECORDS, "\t", "\n"),
    "a.txt": lambda: write_csv(RECORDS),
    "b.txt": lambda: write_csv(RECORDS, "\t"),
    "a.jsonl": lambda: write_lines(RECORDS),
    "a.ndjson": lambda: write_lines(RECORDS).replace("\n", "\r\n"),
    "a.json": lambda: json.dumps(RECORDS),
    "b.json": lambda: json.dumps(RECORDS, indent=1),
    "c.json": lambda: write_lines(RECORDS),
    "d.json": lambda: json.dumps({"version": 1, "data": RECORDS}),
    "e.json": lambda: "\n\n" + write_lines(RECORDS).replace("\n", "\n\n"),
    "c.txt": lambda: write_lines(RECORDS),
    "noextension": lambda: json.dumps(RECORDS, indent=4),
}
MARKS = {"plain": "utf-8", "mark": "utf-8-sig", "utf16": "utf-16", "utf32": "utf-32"}


@pytest.mark.parametrize("encoding", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("name", WRITERS)
def test_formats(tmp_path, name, encoding):
    path = tmp_path / name
    path.write_bytes(WRITERS[name]().encode(encoding))
    table = read_table(path)
    assert list(table.records) == RECORDS
    assert table.columns == ("text", "label") and table.name == str(path)


def test_parquet(tmp_path):
    parquet.write_table(pyarrow.Table.from_pylist(RECORDS), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert list(table.records) == RECORDS and table.kind == "parquet"
    (tmp_path / "b").write_bytes((tmp_path / "a.parquet").read_bytes())
    assert list(read_table(tmp_path / "b").records) == RECORDS  # by its content
    (tmp_path / "c.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(BertsmithError, match="cannot be read as Parquet"):
        read_table(tmp_path / "c.parquet")


def test_parquet_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(BertsmithError, match=r"pip install 'bertsmith\[parquet\]'"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "b.json"])
def test_standard_input(monkeypatch, name):
    raw = WRITERS[name]().encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    table = read_table("-")
    assert list(table.records) == RECORDS and table.name == "standard input"


def test_lines_of_text(monkeypatch):
    raw = b"\nHello, world\n\n[laughs] fine\r\nlast"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    table = read_table("-")
    assert [record["text"] for record in table.records] == ["Hello, world", "[laughs] fine", "last"]
    assert table.rows == [2, 4, 5] and table.columns == ("text",) and table.where(1) == "standard input, line 4"


class Pandas:
    """Answers as pandas does."""

    columns = ("text", "label")

    def to_dict(self, orient):
        assert orient == "records"
        return RECORDS


class Polars(Pandas):
    def to_dicts(self):
        return RECORDS


@pytest.mark.parametrize(
    "source", [RECORDS, iter(RECORDS), Pandas(), Polars()], ids=["list", "iterator", "pandas", "polars"]
)
def test_memory(source):
    table = read_table(source, name="train")
    assert list(table.records) == RECORDS and list(table.rows) == [1, 2, 3, 4, 5, 6]
    assert table.where(1, "label") == 'train, row 2, column "label"'
    assert read_table(table) is table


def test_arrow_and_numpy():
    assert list(read_table(pyarrow.Table.from_pylist(RECORDS)).records) == RECORDS
    given = [{"text": numpy.str_("a"), "label": numpy.int64(3), "words": numpy.array(["x", "y"])}]
    (record,) = read_table(given).records
    assert record == {"text": "a", "label": 3, "words": ["x", "y"]}
    assert [type(value) for value in record.values()] == [str, int, list]


def test_arrays_inside_of_cells():
    """As pandas reads Parquet: SQuAD's answers are a dict of arrays, entities are arrays of arrays."""
    answers = {"text": numpy.array(["a"], dtype=object), "answer_start": numpy.array([3], dtype=numpy.int32)}
    entities = numpy.array([numpy.array([0, 3, "PER"], dtype=object), None], dtype=object)[:1]
    given = [{"answers": answers, "entities": entities, "spans": [{"start": numpy.int64(1)}], "pair": ("a", 1)}]
    (record,) = read_table(given).records
    assert json.dumps(record) == json.dumps(
        {
            "answers": {"text": ["a"], "answer_start": [3]}, "entities": [[0, 3, "PER"]], "spans": [{"start": 1}],
            "pair": ["a", 1],
        }
    )  # fmt: skip
    assert record["pair"] == ("a", 1)


def test_the_way_through_pandas_changes_nothing(tmp_path):
    pandas = pytest.importorskip("pandas")
    records = [{"question": "Who?", "context": "Ann went.", "answers": {"text": ["Ann"], "answer_start": [0]}}]
    parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "a.parquet")
    frame = pandas.read_parquet(tmp_path / "a.parquet")
    for source in (frame, tmp_path / "a.parquet"):
        assert json.dumps(read_table(source).records) == json.dumps(records)


@pytest.mark.parametrize("how", ["columns", "split", "records"])
def test_json_as_pandas_writes_it(tmp_path, how):
    """Columns of rows is what it writes unless it is told otherwise."""
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(RECORDS).to_json(tmp_path / "a.json", orient=how)
    table = read_table(tmp_path / "a.json")
    assert list(table.records) == RECORDS and table.columns == ("text", "label")
    pandas.DataFrame(RECORDS[:1]).to_json(tmp_path / "a.json", orient=how)
    assert list(read_table(tmp_path / "a.json").records) == RECORDS[:1]


def test_one_record_of_objects_is_no_table_of_columns(tmp_path):
    record = {"text": "a", "meta": {"0": 1}, "label": "x"}
    (tmp_path / "a.json").write_text(json.dumps(record))
    assert list(read_table(tmp_path / "a.json").records) == [record]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_lines_of_spaces_are_passed_over(tmp_path, name, quote):
    """As pandas passes them over."""
    sign = "," if name == "a.csv" else "\t"
    lines = ["text,label", f"{quote}one{quote},x", "   ", "two,y", " \r", "three,x", "  "]
    path = tmp_path / name
    path.write_text("\n".join(lines).replace(",", sign), newline="")
    expected = [("one", "x"), ("two", "y"), ("three", "x")]
    table = read_table(path)
    assert [(r["text"], r["label"]) for r in table.records] == expected and table.rows == [2, 4, 6]
    streamed = [row for block in open_rows(path).blocks(2) for row in block.rows]
    assert [(r.record["text"], r.record["label"]) for r in streamed] == expected
    assert [row.number for row in streamed] == table.rows


def test_a_lone_text_of_spaces_is_a_row_where_there_is_one_column(tmp_path):
    (tmp_path / "a.csv").write_text("text\none\n  \ntwo\n")
    assert [record["text"] for record in read_table(tmp_path / "a.csv").records] == ["one", "  ", "two"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "one two\nthree\n\nfour\n"),
        ("a.jsonl", '{"text": "one"}\n{"text": "two"}\n'),
        ("a.csv", "text,y\na,b\n"),
    ],
)
def test_the_line_ends_of_old_macs(tmp_path, name, content):
    """Whatever the format: the same rows as with the ends of today, read whole or streamed."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / name).write_text(content)
    (tmp_path / name).write_bytes(content.replace("\n", "\r").encode())
    new, old = read_table(tmp_path / "new" / name), read_table(tmp_path / name)
    assert (old.columns, list(old.records), list(old.rows)) == (new.columns, list(new.records), list(new.rows))
    streamed = [row for block in open_rows(tmp_path / name).blocks(9) for row in block.rows]
    assert [row.record for row in streamed] == list(new.records)


def test_missing_keys_are_none():
    table = read_table([{"a": 1}, {"b": 2}])
    assert table.columns == ("a", "b") and list(table.records) == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_row_numbers_are_those_of_an_editor(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\n\n"one\ntwo",a\n\n\nthree,b\n"four\r\n",c\nfive,d', newline="")
    table = read_table(path)
    assert table.rows == [3, 7, 8, 10] and table.unit == "line"
    assert [record["text"] for record in table.records] == ["one\ntwo", "three", "four\r\n", "five"]


def test_rows_are_called_rows_where_a_spreadsheet_agrees(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"one, two",a\nthree,b\n')
    assert read_table(path).where(0) == f"{path}, row 2"


def test_a_long_cell(tmp_path):
    path = tmp_path / "a.csv"
    limit = csv.field_size_limit()
    path.write_text('text,label\n"' + "word " * 60_000 + '",a\n')
    assert len(read_table(path).records[0]["text"]) == 300_000
    assert csv.field_size_limit() == limit


def test_a_long_cell_beside_another_file(tmp_path):
    """The limit is the whole process's: another reader that is done must not take it away."""
    limit = csv.field_size_limit()
    row = '"' + "word " * 60_000 + '",a\n'
    text = "text,label\n" + row + row
    (tmp_path / "more.csv").write_text(text)
    other, long = _quoted_rows('"a","b"\n', "short", ","), _quoted_rows(text, "long", ",")
    blocks = open_rows(tmp_path / "more.csv").blocks(1)
    next(other), next(long), next(blocks)
    assert list(other) == [] and len(list(long)) == 2 and len(list(blocks)) == 1
    assert csv.field_size_limit() == limit


HEADERS = {
    "usual name": ("text,label\na,x\nb,y\n", True),
    "one usual name": ("avis,label\na,x\nb,x\n", True),
    "unknown names": ("avis,humeur\nbon film,pos\nnul,neg\nbien,pos\n", True),
    "a class comes again": ("bon film,pos\nnul,neg\nbien,pos\n", False),
    "a class with a usual name": ("who is it?,question\nhello,score\nwhy?,question\n", False),
    "a number": ("great,1\nbad,0\n", False),
    "one column": ("great\nbad\n", False),
    "one usual column": ("text\nbad\n", True),
    "a long cell": ("a" * 81 + ",x\nb,y\n", False),
    "pandas' index": (",text,label\n0,a,x\n1,b,y\n", True),
}


@pytest.mark.parametrize(("content", "expected"), HEADERS.values(), ids=HEADERS)
def test_header(tmp_path, content, expected):
    path = tmp_path / "a.csv"
    path.write_text(content)
    rows = list(csv.reader(io.StringIO(content)))
    table = read_table(path)
    assert [list(record.values()) for record in table.records] == rows[1 if expected else 0 :]
    assert len(read_table(path, header=True).records) == len(rows) - 1
    plain = read_table(path, header=False)
    assert len(plain.records) == len(rows) and plain.columns[0] == "column 1"


def test_unnamed_columns_have_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",text,label\n0,a,x\n")
    assert read_table(path).columns == ("column 1", "text", "label")


TAB_FILES = {
    "quotes are text": ('text\tlabel\n" The pie\t1\nhe said "\t0\n"a" b\t1\n', ['" The pie', 'he said "', '"a" b']),
    "quotes are marks": (
        'text\tlabel\n"a ""b"" c"\t1\n"two\nlines"\t0\n"a\ttab"\t1\n',
        ['a "b" c', "two\nlines", "a\ttab"],
    ),
    "rows that a mark would swallow": ('text\tlabel\n"a\t1\nb\t2\nc"\t3\n', ['"a', "b", 'c"']),
    "glue": ('index\tsentence1\tsentence2\tlabel\n0\t"a"\tb\tx\n', ["0"]),
}


@pytest.mark.parametrize(("content", "first"), TAB_FILES.values(), ids=TAB_FILES)
def test_quotes_in_tab_files(tmp_path, content, first):
    (tmp_path / "a.tsv").write_text(content)
    table = read_table(tmp_path / "a.tsv")
    assert [next(iter(record.values())) for record in table.records] == first
    if "sentence1" in table.columns:
        assert table.records[0]["sentence1"] == '"a"'


KNOWN_FILES = {
    "CoLA": ("gj04\t1\t\tIt is.\nr-67\t0\t*\tIs it it.\n", ("source", "label", "mark", "sentence"), [1, 2]),
    "GoEmotions": ("So nice!\t3,27\teebbqej\nOh no\t5\ted00q6i\n", ("text", "label", "id"), [1, 2]),
    "MRPC": ('\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\ta "\tb\n',
             ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"), [2]),
    "Orange": ("Category\tText\nd\tstring\nclass\t\n\t\nx\tsome words\n", ("Category", "Text"), [5]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "columns", "rows"), KNOWN_FILES.values(), ids=KNOWN_FILES)
def test_files_as_distributed(tmp_path, content, columns, rows):
    (tmp_path / "a.tsv").write_text(content, encoding="utf-8")
    table = read_table(tmp_path / "a.tsv")
    assert table.columns == columns and table.rows == rows


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
rows = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=8)
)


@given(rows, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["\n", "\r\n"]))
def test_what_csv_writes_comes_back(rows, delimiter, end):
    from bertsmith.data.delimited import read_delimited

    rows = [row for row in rows if any(row)]
    names = ["text", "label", "more", "last"][: len(rows[0])] if rows else []
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    if not rows:
        return
    try:
        table = read_delimited(file.getvalue(), "a", "csv")
    except BertsmithError as error:  # cells of many short lines with a delimiter in each may look like swallowed rows
        assert "swallowed" in str(error)
        return
    assert [list(record.values()) for record in table.records] == rows
    starts, line = [], 2
    for row in rows:
        starts.append(line)
        line += 1 + sum(cell.count("\n") for cell in row)
    assert table.rows == starts


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | cells,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(cells, inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.fixed_dictionaries({"text": cells, "label": values}), min_size=1, max_size=6), st.integers(0, 2))
def test_what_json_writes_comes_back(records, blank):
    from bertsmith.data.jsonlines import read_json

    lines = ("\n" * (blank + 1)).join(json.dumps(record, ensure_ascii=blank > 0) for record in records)
    table = read_json(lines, "a", by_line=True)
    assert list(table.records) == records and list(table.rows) == [1 + i * (blank + 1) for i in range(len(records))]
    assert list(read_json(json.dumps(records, indent=blank), "a").records) == records


def test_table_is_given_back_by_reading_nothing_else():
    table = Table("a", ("text",), [{"text": "x"}], [1])
    assert read_table(table, name="b") is table
