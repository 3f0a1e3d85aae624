"""A plan tells what happens: how many steps some minutes are, how long steps take, and in how much memory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pretraining_made import make_corpus, pretrain

from bertsmith.training import planning, timing

pytestmark = pytest.mark.usefixtures("one_thread")

MEASURE = """
import sys
from pretraining_made import pretrain
pretrain(sys.argv[1], sys.argv[2], "bert", **eval(sys.argv[3]))
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def plan(corpus, out, recipe="bert", **settings):
    said = []
    assert pretrain(corpus, out, recipe, plan=True, say=said.append, **settings) is None
    return "\n".join(said)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what getrusage tells may be the parent's")
def test_the_memory_of_a_plan_is_that_of_the_run(tmp_path):
    """It was that of weights, gradients and the optimizer alone: a twentieth of what a run on a CPU takes."""
    corpus = make_corpus(tmp_path, documents=1200)
    settings = {"width": 192, "heads": 4, "inner": 768, "depth": 4, "tokens": 8192, "pass_tokens": 8192, "max_steps": 3}
    told = plan(corpus, tmp_path / "out", **settings)
    found = re.search(r"memory: about ([\d,]+) MiB, of which ([\d,]+) MiB for weights", told)
    whole, weights = (int(number.replace(",", "")) for number in found.groups())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", MEASURE, str(corpus), str(tmp_path / "out"), repr(settings)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    taken = int(ran.stdout.split()[-1])
    assert 0.7 < whole / taken < 1.4 and weights < taken / 15


def test_the_steps_of_a_plan_are_those_of_the_run(corpus, tmp_path, monkeypatch):
    for module, size in ((planning, 128), (timing, 256)):  # those that are tried are smaller, and take as much less
        found = timing.Pace(((size / 1024,),), 0.0), size
        monkeypatch.setattr(module, "find_pace", lambda *_, found=found: found)
    monkeypatch.setattr(planning, "TRIED", 128)
    settings = {"recipe": "smith", "lengths": "32"}
    told = plan(corpus, tmp_path / "out", minutes=1.0, **settings)
    steps = int(re.search(r"1 minute, the first passes tell how many steps: about (\d+) steps", told).group(1))
    assert not (tmp_path / "out").exists()

    class Known(Exception):
        pass

    def stop(*_):
        raise Known

    monkeypatch.setattr("bertsmith.pretraining.Deadline", stop)
    with pytest.raises(Known):
        pretrain(corpus, tmp_path / "out", minutes=1.0, **settings)
    assert abs(timing.read_plan(Path(tmp_path / "out" / "plan.json"))["steps"] / steps - 1) < 0.1


def test_what_takes_long_to_try_is_not_tried(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "PATIENCE", 0.0)
    told = plan(corpus, tmp_path / "out", max_steps=2)
    assert "which alone take" in told and "optimizer; what a pass takes comes to it" in told
    assert "tokens at most, " in plan(corpus, tmp_path / "out", minutes=1.0)
