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
