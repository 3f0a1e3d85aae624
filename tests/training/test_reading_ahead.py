"""What is read from the disk beforehand is what importing torch's compiler opens."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.training import reading_ahead

OPENED = """if True:
    import json, sys
    from pathlib import Path
    import torch._inductor.compile_fx
    specs = [module.__spec__ for module in list(sys.modules.values()) if getattr(module, "__spec__", None)]
    files = [spec.cached for spec in specs if spec.cached and Path(spec.cached).exists()]
    print(json.dumps([str(Path(file).resolve()) for file in files]))
"""


def test_most_of_what_the_compiler_is_made_of_is_read():
    done = subprocess.run([sys.executable, "-c", OPENED], capture_output=True, text=True, check=True)
    opened = [Path(file) for file in json.loads(done.stdout.splitlines()[-1])]
    read = {path.resolve() for path in reading_ahead.list_files()}
    own = Path(sys.modules["os"].__file__ or "").parent  # Python's library is not cold by then
    sizes = {path: path.stat().st_size for path in opened if own not in path.parents or "site-packages" in path.parts}
    assert len(sizes) > 500
    assert sum(size for path, size in sizes.items() if path in read) > 0.85 * sum(sizes.values())


@pytest.mark.parametrize(
    "device, others", [("cpu", {}), ("mps", {}), ("cuda", {"LOCAL_RANK": "1"})], ids=["cpu", "mps", "a second process"]
)
def test_nobody_reads_where_it_would_be_in_vain(device: str, others: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    assert reading_ahead.read_ahead(device) == []


def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    good, gone = tmp_path / "good", tmp_path / "gone"
    good.write_bytes(b"x" * 10)
    monkeypatch.setattr(reading_ahead, "list_files", lambda: iter([gone, good, tmp_path]))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    readers = reading_ahead.read_ahead("cuda:0")
    for reader in readers:
        reader.join(timeout=60)
    assert len(readers) > 1 and not any(reader.is_alive() for reader in readers)


def test_auto_reads_where_a_gpu_seems_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading_ahead, "list_files", lambda: iter([]))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(reading_ahead, "DEVICES", (str(tmp_path / "none"),))
    assert reading_ahead.read_ahead(None) == []
    monkeypatch.setattr(reading_ahead, "DEVICES", (str(tmp_path),))
    assert reading_ahead.read_ahead("auto")
