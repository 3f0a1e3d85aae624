"""The gradient and the optimizer's step have one place each."""

from pathlib import Path

import pytest

import bertsmith

SOURCES = Path(bertsmith.__file__).parent


@pytest.mark.parametrize("call", [".backward(", "optimizer.step("])
def test_a_call_occurs_once(call):
    found = [(path.name, path.read_text(encoding="utf-8").count(call)) for path in SOURCES.rglob("*.py")]
    assert [each for each in found if each[1]] == [("passes.py", 1)]


def test_only_one_file_knows_about_processes():
    users = [path.name for path in SOURCES.rglob("*.py") if "torch.distributed" in path.read_text(encoding="utf-8")]
    assert users == ["devices.py"]
