"""What of a folder is a text, and what a page says."""

import json
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError
from bertsmith.search.documents import find_files, read_documents
from bertsmith.search.markup import read_markup


def write(folder, **files):
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_files_are_found_below_the_folder_but_hidden_ones_are_not(tmp_path):
    write(tmp_path, a_dot_txt="a", deep__er__b_dot_MD="b", c_dot_csv="c", _dot_git__d_dot_txt="d", _dot_e_dot_txt="e",
          mine__f_dot_html="f", mine__vectors__g_dot_jsonl="{}")  # fmt: skip
    assert list(find_files(tmp_path)) == ["a.txt", "deep/er/b.MD", "mine/f.html", "mine/vectors/g.jsonl"]
    assert list(find_files(tmp_path, without=tmp_path / "mine" / "vectors"))[-1] == "mine/f.html"
    assert list(find_files(tmp_path, ["*.MD", "mine/f*"])) == ["deep/er/b.MD", "mine/f.html"]


def test_a_folder_that_is_none_is_refused(tmp_path):
    write(tmp_path, a_dot_txt="a")
    with pytest.raises(BertsmithError, match="is a file"):
        find_files(tmp_path / "a.txt")
    with pytest.raises(BertsmithError, match="is not there"):
        find_files(tmp_path / "nowhere")


def test_records_are_documents_by_their_lines():
    lines = [{"id": 1, "Text": "one"}, {"title": "t", "body": "two"}, {"passage": "three", "content": "no"}]
    raw = "\n\n".join(map(json.dumps, lines)).encode()
    found = [(document.name, document.text) for document in read_documents(raw, "notes.jsonl")]
    assert found == [("notes.jsonl:1", "one"), ("notes.jsonl:3", "two"), ("notes.jsonl:5", "three")]


def test_a_table_with_gaps_has_documents_without_text():
    """pandas writes a missing text as null; the others of the file are there to be found."""
    rows = [{"id": 1, "text": "one"}, {"id": 2, "text": None}, {"id": 3, "text": "three"}]
    found = read_documents("\n".join(map(json.dumps, rows)).encode(), "rows.jsonl")
    assert [(document.name, document.text) for document in found] == [
        ("rows.jsonl:1", "one"), ("rows.jsonl:2", ""), ("rows.jsonl:3", "three"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name, raw, said",
    [
        ("a.jsonl", b'{"text": "x"}\n{"text"', r"a\.jsonl, line 2: not JSON"),
        ("a.jsonl", b"[1]", "line 1: each line must hold one object"),
        ("a.jsonl", b'{"n": 1}', r'no field is called as texts usually are \(fields: "n"\)'),
        ("a.jsonl", b'{"text": 5}', r'line 1: the field "text" is a number; it must be a text\.$'),
        ("a.jsonl", b'{"id": "a", "Body": ["b"], "text": null}', 'the field "Body" is a list; it must be a text'),
        ("a.jsonl", b"\n", "is empty"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0", "is not UTF-8"),
        ("a.txt", b"a\0b", "is not text"),
        ("a.md", b"%PDF-1.7", "is a PDF"),
    ],
)
def test_what_is_no_text_is_said(name, raw, said):
    with pytest.raises(BertsmithError, match=said):
        list(read_documents(raw, name))


PAGE = """<!doctype html><html><head><title>Rivers &amp; banks</title><style>p {color: red}</style>
<script>if (a < b) { document.write("<p>never</p>") }</script></head><body>
<h1>The   river</h1><p>It left its <b>bed</b>,<br>and took
the bridge.</p><ul><li>one</li><li>two</li></ul><table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>
<pre>def f():
    return 1</pre><!-- not this --></body></html>"""


def test_a_page_is_what_a_reader_sees():
    assert read_markup(PAGE) == (
        "Rivers & banks\n\nThe river\n\nIt left its bed,\nand took the bridge.\n\none\ntwo\n\na b\nc\n\n"
        "def f():\n    return 1"
    )


def trees():
    """Well-formed pages, which XML's parser reads as well."""
    words = st.lists(st.text("ab&<é", min_size=1, max_size=5), min_size=1, max_size=4)
    leaf = words.map(lambda some: f"<p>{escape(' '.join(some))}</p>")
    return st.recursive(
        leaf, lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda some: f"<div>{' '.join(some)}</div>")
    )


@given(trees())
def test_the_words_of_a_page_are_those_of_an_xml_parser(page):
    theirs = [word for part in ElementTree.fromstring(page).itertext() for word in part.split()]
    assert read_markup(page).split() == theirs


def test_a_page_is_read_in_the_encoding_it_names():
    raw = '<meta charset="iso-8859-1"><p>naïve café</p>'.encode("latin-1")
    assert next(read_documents(raw, "a.html")).text == "naïve café"
    raw = '<meta charset="utf-8"><p>naïve café</p>'.encode()
    assert next(read_documents(raw, "a.html")).text == "naïve café"
    raw = b'<meta charset="iso-8859-1"><p>caf\xe9 \x81</p>'  # which Windows-1252 does not have
    assert next(read_documents(raw, "a.html")).text == "café \x81"
    with pytest.raises(BertsmithError, match="is not UTF-8"):
        next(read_documents(b'<meta charset="klingon">\xff', "a.html"))


@pytest.mark.parametrize(
    ("named", "typed", "text"),
    [
        ("iso-8859-1", "cp1252", "“She said” – it’s 5 €"),
        ("us-ascii", "cp1252", "naïve"),
        ("iso-8859-9", "cp1254", "“ağ”"),
        ("gb2312", "gbk", "朱镕基"),
        ("shift_jis", "cp932", "①髙橋"),
        ("euc-kr", "cp949", "똠방각하"),
    ],
)
def test_the_name_of_an_encoding_means_what_it_means_in_a_browser(named, typed, text):
    """Pages that name an old encoding are typed in a larger one; the Encoding Standard lays down which."""
    raw = f'<meta charset="{named}"><p>{text}</p>'.encode(typed)
    assert next(read_documents(raw, "a.html")).text == text


@given(st.text(alphabet="<>/ab&;!-p \n\"'="))
def test_broken_markup_never_fails(page):
    found = read_markup(page)
    assert found == found.strip()
