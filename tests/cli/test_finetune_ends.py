"""How `bertsmith finetune` ends before its time: a dry run refuses what the run would, a signal keeps what was done."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import bertsmith
from bertsmith.tasks.catalog import find_task


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--metric", "bleu"], "metric='bleu' is not a choice for classify; use one of accuracy, micro_f1,"),
        (["--metric", "ece"], "metric='ece' is not a choice"),
        (["--precision", "fp16", "--device", "cpu"], "precision fp16 needs a CUDA device"),
        (["--scheme", "iob2"], "scheme is for tag and has no use in classify; leave --scheme out."),
        (["--overlap", "8"], "overlap is for span and has no use in classify; leave --overlap out."),
        (["--thresholds", "each"], "thresholds are for texts with several labels"),
    ],
)
@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_dry_run_refuses_what_the_run_does(real, place, tmp_path, words, sentence, dry):
    ran = real("finetune", "--train", place / "reviews.csv", "--model", place / "encoder", "--out", tmp_path / "m",
               "--threads", 1, *words, *dry)  # fmt: skip
    assert ran.status == 1 and sentence in ran.err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name, task", [("reviews", "classify"), ("train", "tag"), ("squad", "span")])
def test_the_metrics_are_known_before_there_are_answers(place, name, task):
    model = bertsmith.load(place / name)
    found = json.loads((place / name / "metrics.json").read_text())["metrics"]["dev"]
    made = find_task(task)(model.tokenizer, model.limit, "windows", model.trained["settings"])
    assert list(found) == made.metrics()


def test_those_of_numbers_and_choices_too(place):
    model = bertsmith.load(place / "encoder")
    for name in ("regress", "choose"):
        made = find_task(name)(model.tokenizer, model.limit, "head", {"labels": ["score"], "length": None})
        assert made.metric in made.metrics()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(place, tmp_path, number, status):
    words = f"finetune --train reviews.csv --model encoder --out {tmp_path / 'm'} --epochs 2000 --threads 1"
    there = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-m", "bertsmith", *words.split()], cwd=place, env=there, text=True,
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:  # fmt: skip
        for line in process.stderr:
            if line.startswith("step "):  # by now it trains
                process.send_signal(number)
                break
        said = process.stderr.read()
        assert process.wait(timeout=300) == status
    wanted = r"stopped at step ([\d,]+) of [\d,]+; the same command goes on from there\."
    step = re.fullmatch(wanted, said.splitlines()[-1])
    assert step and "Traceback" not in said and not (tmp_path / "m" / ".lock").exists()
    last = tmp_path / "m" / "checkpoints" / f"last-{int(step[1].replace(',', '')):06d}"
    assert (last / "optimizer.safetensors").exists() and (last / "state.json").exists()
