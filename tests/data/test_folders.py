"""The files of a folder by their usual names, and the layout of slot filling."""

import pytest

from bertsmith.data.folders import find_split, require_split
from bertsmith.data.reading import read_table
from bertsmith.errors import BertsmithError

FOLDERS = {
    # names in the folder: train, dev, test
    "train.tsv dev.tsv test.tsv README.md": ("train.tsv", "dev.tsv", "test.tsv"),
    "train.csv validation.csv": ("train.csv", "validation.csv", None),
    "eng.train eng.testa eng.testb": ("eng.train", "eng.testa", "eng.testb"),
    "en_ewt-ud-train.rebuilt.conllu en_ewt-ud-dev.conllu LICENSE.txt": (
        "en_ewt-ud-train.rebuilt.conllu", "en_ewt-ud-dev.conllu", None),
    "train.subset10k.tsv dev_matched.rebuilt.tsv dev_mismatched.tsv": (
        "train.subset10k.tsv", "dev_matched.rebuilt.tsv", None),
    "train-v1.1.json dev-v1.1.json": ("train-v1.1.json", "dev-v1.1.json", None),
    "train.tsv train.subset2k.tsv valid.jsonl": ("train.tsv", "valid.jsonl", None),
    "training.log contest.csv trainer.py .train.csv": (None, None, None),
}  # fmt: skip


@pytest.mark.parametrize(("names", "expected"), FOLDERS.items(), ids=FOLDERS)
def test_find_split(tmp_path, names, expected):
    for name in names.split():
        (tmp_path / name).write_text("")
    found = [find_split(tmp_path, split) for split in ("train", "dev", "test")]
    assert [path and path.name for path in found] == list(expected)


def test_the_file_of_a_split(tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\na\tx\n")
    assert list(read_table(require_split(tmp_path, "train")).records) == [{"text": "a", "label": "x"}]
    with pytest.raises(BertsmithError, match=r"holds no file for dev \(dev\.\*.*it holds train\.tsv\."):
        require_split(tmp_path, "dev")
    (tmp_path / "train.csv").write_text("")
    with pytest.raises(BertsmithError, match=r"2 files that may be train: train\.csv, train\.tsv"):
        read_table(require_split(tmp_path, "train"))
    with pytest.raises(BertsmithError, match="cannot be read as a folder"):
        require_split(tmp_path / "train.tsv", "train")


def test_slots(tmp_path):
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "seq.in").write_text("play  some jazz \nstop\n")
    (folder / "seq.out").write_text("O O B-genre \nO\n")
    (folder / "label").write_text("Play\nStop\n")
    table = read_table(require_split(tmp_path, "train"))
    assert table.records[0] == {
        "text": "play some jazz", "words": ["play", "some", "jazz"], "tags": ["O", "O", "B-genre"], "intent": "Play",
    }  # fmt: skip
    assert set(table.columns) == {"text", "words", "tags", "intent"} and table.where(1).endswith("train, line 2")
    (folder / "label").write_text("Play\n")
    with pytest.raises(BertsmithError, match=r"as many lines as each other \(text 2, tags 2, intent 1\)"):
        read_table(folder)
