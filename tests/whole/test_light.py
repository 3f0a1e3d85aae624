"""`import bertsmith` is light, and `bertsmith --help` lighter."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "code, absent",
    [
        ("import bertsmith", {"transformers", "sentence_transformers"}),
        ("import bertsmith; bertsmith.load", {"transformers", "sentence_transformers"}),
        ("import bertsmith.cli.app", {"transformers", "sentence_transformers", "torch", "numpy", "tokenizers", "rich"}),
    ],
)
def test_an_import_brings_only_what_it_needs(code, absent):
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not {name.split(".")[0] for name in ran.stdout.split()} & absent
