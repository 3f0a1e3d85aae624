"""The file of vectors takes the place of ordinary files only."""

import os

import numpy as np
import pytest

from bertsmith.cli.vectors import VectorFile
from bertsmith.errors import BertsmithError


def test_a_pipe_or_a_device_is_refused_and_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BertsmithError, match="not an ordinary file"):
        VectorFile(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    (tmp_path / "link.npy").symlink_to(tmp_path / "vectors.npy")
    with VectorFile(tmp_path / "link.npy") as file:
        file.append(np.ones(3, np.float32))
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "vectors.npy").shape == (1, 3)


@pytest.mark.parametrize("name", ["v.csv", "v.jsonl", "v.parquet", "v.npz", "v.npy.gz", "V.CSV"])
def test_a_name_of_another_kind_of_file_is_refused(tmp_path, name):
    with pytest.raises(BertsmithError, match=r"would hold a NumPy file in spite of its name; give a FILE.npy\.$"):
        VectorFile(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["v.npy", "V.NPY", "vectors", "of.today"])
def test_other_names_hold_what_numpy_reads(tmp_path, name):
    with VectorFile(tmp_path / name) as file:
        file.append(np.arange(3, dtype=np.float32))
    assert np.load(tmp_path / name).tolist() == [[0, 1, 2]]
