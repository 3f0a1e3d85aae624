"""Files, folders and globs become documents; several readers of one file see what one reader sees."""

import gzip
import json
import lzma
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.data.corpus.excluding import list_excluded
from bertsmith.errors import BertsmithError
from bertsmith.search.documents import find_files
from bertsmith.text import streams
from bertsmith.text.parts import cut_parts
from bertsmith.text.records import read_json_values
from bertsmith.text.sources import Part, list_sources, read_documents, read_part, tell_unread

TEXTS = ["one\ntwo", "Grüße aus Köln", "三つ目。", "four"]


def read(path, **given):
    return [document.text for document in read_documents(list_sources(path), **given)]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_linked_folders_are_gone_into_and_no_place_twice(tmp_path):
    write(tmp_path / "elsewhere" / "deep" / "x.txt", "far")
    write(tmp_path / "texts" / "a.txt", "near")
    texts = tmp_path / "texts"
    (texts / "linked").symlink_to(tmp_path / "elsewhere")
    (texts / "once-more").symlink_to(tmp_path / "elsewhere")
    (texts / "round").symlink_to(texts)
    (tmp_path / "elsewhere" / "back").symlink_to(texts)
    names = [source.path.relative_to(texts).as_posix() for source in list_sources(texts)]
    assert names == ["a.txt", "linked/deep/x.txt"]
    assert [path.relative_to(texts).as_posix() for path in list_excluded([texts])] == names
    assert list(find_files(texts)) == names


def test_each_kind_gives_the_same_documents(tmp_path):
    text = "\n\n".join(TEXTS).encode()
    records = "\n".join(json.dumps({"text": text, "id": 1}) for text in TEXTS).encode()
    array = json.dumps([{"text": text} for text in TEXTS], ensure_ascii=False, indent=1).encode()
    for name, content in [("a.txt", text), ("a.jsonl", records), ("a.json", array), ("b.json", records)]:
        assert read(write(tmp_path / name, content)) == TEXTS
        assert read(write(tmp_path / f"{name}.gz", gzip.compress(content))) == TEXTS
        assert read(write(tmp_path / f"{name}.xz", lzma.compress(content))) == TEXTS
    assert read(write(tmp_path / "mark.txt", b"\xef\xbb\xbf" + text)) == TEXTS
    assert read(write(tmp_path / "windows.txt", text.replace(b"\n\n", b"\r\n \t\r\n"))) == TEXTS


def test_zstd_and_parquet_where_their_packages_are(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress("\n\n".join(TEXTS).encode())
    assert read(write(tmp_path / "a.txt.zst", packed)) == TEXTS
    with pytest.raises(BertsmithError, match="damaged or not whole"):
        read(write(tmp_path / "b.txt.zst", b"nothing of zstd"))
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"body": [*TEXTS, None], "n": range(5)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    assert read(tmp_path / "a.parquet", field="body") == TEXTS
    with pytest.raises(BertsmithError, match=r'no column "text" \(columns: "body", "n"\); name it with --field'):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("group", [2, 7, 100])
def test_parquet_is_cut_between_rows(tmp_path, group):
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = [f"text {number}" for number in range(50)]
    parquet.write_table(pytest.importorskip("pyarrow").table({"text": texts}), tmp_path / "a.parquet", group)
    (source,) = list_sources(tmp_path / "a.parquet")
    parts = cut_parts([source], size=source.size // 10)  # one group of a million rows is not one part
    assert 10 <= len(parts) <= 13 and abs(sum(part.size for part in parts) - source.size) < 10
    documents = [document for part in parts for document in read_part(part)]
    assert [document.text for document in documents] == texts
    assert [document.where.split(", ")[1] for document in documents] == [f"row {n}" for n in range(1, 51)]


@given(
    st.lists(st.fixed_dictionaries({"text": st.text(max_size=20)}), max_size=6), st.booleans(), st.integers(1, 40),
    st.sampled_from([None, 1]),
)  # fmt: skip
def test_json_in_blocks_is_the_json(values, is_array, size, indent):
    written = [values] if is_array else values
    raw = "\n".join(json.dumps(value, ensure_ascii=False, indent=indent) for value in written).encode("utf-8")
    blocks = (raw[start : start + size] for start in range(0, len(raw), size))
    found = list(read_json_values(blocks, Path("a.json"), ""))
    assert found == list(enumerate(values, 1))


def test_json_of_many_small_records_takes_no_square_of_a_block(tmp_path):
    """The rest of the block was copied for each of its records: 3 MB/s where JSON Lines had 24."""

    def time_record(count):
        raw = json.dumps(["a few words"] * count).encode()
        begun = time.perf_counter()
        assert sum(1 for _ in read_json_values([raw], Path("a.json"), "")) == count
        return (time.perf_counter() - begun) / count

    assert min(time_record(60_000) for _ in range(3)) < 8 * min(time_record(1000) for _ in range(5))


def test_zstd_without_its_package_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    monkeypatch.setitem(__import__("sys").modules, "compression", None)
    with pytest.raises(BertsmithError, match=r"pip install 'bertsmith\[zst\]'"):
        read(write(tmp_path / "a.txt.zst", b"x"))


def test_the_unit_says_what_a_document_is(tmp_path):
    path = write(tmp_path / "a.txt", "a\nb\n\n\n\nc d\n")
    assert read(path) == ["a\nb", "c d"]
    assert read(path, unit="line") == ["a", "b", "c d"]
    assert read(path, unit="file") == ["a\nb\n\n\n\nc d"]
    assert read(write(tmp_path / "b.md", "# T\n\nx\n")) == ["# T\n\nx"]
    with pytest.raises(BertsmithError, match="unit 'page' is not known"):
        read(path, unit="page")


def test_folders_and_globs_in_order_each_file_once(tmp_path):
    for name in ("b.txt", "a/z.txt", "a/c.jsonl", "a/.hidden.txt", ".git/x.txt", "picture.png"):
        write(tmp_path / name, '{"text": "x"}')
    names = [source.path.relative_to(tmp_path).as_posix() for source in list_sources([tmp_path, tmp_path / "b.txt"])]
    assert names == ["a/c.jsonl", "a/z.txt", "b.txt"]
    for name in ("x.csv", "a/y.tar.gz", "a/z.csv", "LICENSE"):
        write(tmp_path / name, "x")
    unread = Counter()
    assert len(list_sources([tmp_path, tmp_path / "b.txt"], unread)) == 3
    assert tell_unread(unread) == [
        "5 files in the folders were not read, as their names do not end as a text's does (2 .csv, 1 .png, 1 .tar.gz, "
        "1 without an ending)."
    ]
    assert tell_unread({".pdf": 1})[0].startswith("1 file in the folders was not read, as its name does not end")
    for name in ("x.csv", "a/y.tar.gz", "a/z.csv", "LICENSE"):
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "a/pipe.txt")  # reading it would never end
    assert len(list_sources([tmp_path])) == 3
    (tmp_path / "a/pipe.txt").unlink()
    assert [source.path.name for source in list_sources(str(tmp_path / "**" / "*.txt"))] == ["z.txt", "b.txt"]
    for given_, sentence in [
        ([], "no source"), (tmp_path / "none", "is not there"), (str(tmp_path / "*.csv"), "nothing matches"),
    ]:  # fmt: skip
        with pytest.raises(BertsmithError, match=sentence):
            list_sources(given_)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BertsmithError, match=r"holds no text; files that end in \.txt"):
        list_sources(tmp_path / "empty")


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "a picture"),
        (b"\x1f\x8b\x08", "end its name in .gz"),
        (b"abc\0\1\2", "binary file, not text: byte 4 is NUL"),
        (b"a" * 5000 + b"\0", "byte 5,001 is NUL"),
        ("hello there".encode("utf-16"), "is in UTF-16; save it as UTF-8"),
        ("hello there".encode("utf-16-le"), "looks like UTF-16 without its mark"),
        ("one\n\nzwei\n\ndrei Köln".encode("latin-1"), r'line 5: byte 18 of the file \(0xf6\) .* that byte is "ö"'),
    ],
)
def test_what_is_not_utf8_text_is_a_sentence(tmp_path, content, sentence):
    with pytest.raises(BertsmithError, match=sentence):
        read(write(tmp_path / "a.txt", content))


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("a.jsonl", b'{"text": "x"}\n{"text"\n', r"a\.jsonl, line 2: not JSON \(Expecting .* at character 8\)"),
        ("a.jsonl", b'{"body": "x"}\n', r'no field "text" \(fields: "body"\); name it with --field'),
        ("a.jsonl", b'{"text": 5}\n', 'line 1: the field "text" holds 5, not a text; correct the record'),
        ("a.jsonl", b"[1, 2]\n", "must be an object with a field 'text'"),
        ("a.json", b'[{"text": "x"}, {"text": ', "record 2: not JSON"),
        ("a.json", b'[{"text": "x"}, {"text": "y"}\n', r"a list without an end: behind record 2 there is no \]"),
        ("a.json", b'[{"text": "x"},', "behind record 1 there is no"),
        ("a.txt.xz", lzma.compress(b"x" * 99)[:-9], "damaged or not whole"),
        ("a.txt.gz", b"nothing", "damaged or not whole"),
        ("a.csv", b"id,text\n1,x\n", "is a table, and its columns are not all text; write the one that is into"),
        ("a.parquet", b"PAR1 no", "not a whole Parquet file"),
    ],
)
def test_what_is_not_what_its_name_says_is_a_sentence(tmp_path, name, content, sentence):
    with pytest.raises(BertsmithError, match=sentence):
        read(write(tmp_path / name, content))


@settings(max_examples=150, deadline=None)
@given(
    pieces=st.lists(st.sampled_from(["a", "ä", "三", " ", "\n", "\n\n", "\r\n", "\t", "word. "]), max_size=60),
    size=st.integers(1, 50),
    block=st.integers(1, 9),
    unit=st.sampled_from(["blank-line", "line"]),
    longest=st.sampled_from([8, 1 << 20]),
)
def test_parts_of_any_size_hold_the_documents_of_the_whole(tmp_path_factory, pieces, size, block, unit, longest):
    path = write(tmp_path_factory.mktemp("parts") / "a.txt", "".join(pieces))
    with pytest.MonkeyPatch.context() as patch:
        whole = list(read_documents(list_sources(path), unit=unit, longest=longest))
        patch.setattr(streams, "BLOCK", block)
        parts = cut_parts(list_sources(path), unit=unit, size=size)
        assert [document for part in parts for document in read_part(part, unit=unit, longest=longest)] == whole
    joined = "".join(document.text for document in whole)
    assert "".join(joined.split()) == "".join("".join(pieces).split())


def test_one_giant_line_comes_in_pieces_of_whole_characters(tmp_path):
    text = "".join(random.Random(0).choices("aäé三 😀", k=20_000))
    path = write(tmp_path / "a.txt", text)
    for documents in (
        list(read_documents(list_sources(path), longest=1000)),
        list(read_documents(list_sources(write(tmp_path / "a.jsonl", json.dumps({"text": text}))), longest=1000)),
    ):
        assert max(document.size for document in documents) <= 1000
        assert [document.is_cut for document in documents] == [True] * (len(documents) - 1) + [False]
        assert "".join("".join(document.text for document in documents).split()) == "".join(text.split())


def test_a_part_can_be_read_alone(tmp_path):
    path = write(tmp_path / "a.txt", "".join(f"document {n}\n\n" for n in range(1000)))
    (source,) = list_sources(path)
    parts = cut_parts([source], size=2000)
    assert len(parts) > 5 and parts[0].start == 0 and parts[-1].end == path.stat().st_size
    assert [part.size for part in parts] == [part.end - part.start for part in parts]
    assert next(read_part(parts[3])).text.startswith("document ")
    assert cut_parts([source]) == [Part(source)]
