"""The scripts that reproduce a figure call the package as it is today: nobody runs all of them after every change."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "house", "docs", "examples")
# A call that does not fit: an argument too many or too few, a name that is gone. Finer types are not asked of scripts.
BROKEN = re.compile(
    rf"^(?:{'|'.join(FOLDERS)})/.*(?:\[(?:call-arg|name-defined)\]|Module \"bertsmith.*\[attr-defined\])$"
)


def test_scripts_call_what_there_is(tmp_path):
    """Other packages are left out: reading those takes a minute, and they do not change with ours."""
    line = [sys.executable, "-m", "mypy", *FOLDERS, "--no-site-packages", "--ignore-missing-imports",
            "--no-error-summary", "--no-pretty", "--cache-dir", str(tmp_path / "cache")]  # fmt: skip
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("src", "benchmarks", "house"))
    done = subprocess.run(line, cwd=ROOT, env={**os.environ, "MYPYPATH": paths}, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = done.stdout.splitlines()
    assert any("[" in line for line in found) or done.returncode == 0
    broken = [line for line in found if BROKEN.search(line)]
    assert not broken, "\n".join(broken)
