"""Two processes come to what one comes to, each with all weights (ddp) or with its part of them (fsdp)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers
from training import ranks
from training.made import make_folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every variant with two processes, all in one start of torchrun."""
    folder = tmp_path_factory.mktemp("ranks")
    model = make_folder(folder / "model")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    ran = subprocess.run(
        [*command, str(Path(ranks.__file__)), str(model), str(folder)], capture_output=True, text=True, timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    return folder


def last(out: Path, name: str) -> dict[str, torch.Tensor]:
    (found,) = out.glob("checkpoints/last-*")
    return safetensors.torch.load_file(found / name)


def assert_same(one: Path, other: Path) -> None:
    for name, near in (("model.safetensors", 1e-6), ("optimizer.safetensors", 1e-7)):
        ours, theirs = last(one, name), last(other, name)
        assert set(ours) == set(theirs)
        for key, tensor in ours.items():
            torch.testing.assert_close(tensor, theirs[key], rtol=1e-4, atol=near, msg=lambda text, key=key: key + text)


@pytest.mark.parametrize("name", ranks.VARIANTS)
def test_two_processes_are_one(made, name):
    ranks.train(name, made / "model", made / f"{name}-alone")
    assert_same(made / f"{name}-ddp", made / f"{name}-alone")


@pytest.mark.parametrize("name", ranks.VARIANTS)
def test_parts_of_the_weights_are_the_whole(made, name):
    assert_same(made / f"{name}-fsdp", made / f"{name}-ddp")


@pytest.mark.parametrize("mixing", ranks.MIXES)
def test_two_processes_train_several_tasks_as_one_does(made, mixing):
    """A batch of one leaves a process without a row of its own; the log's means are the same too."""
    ranks.train_mix(made / "model", made / f"{mixing}-alone", mixing)
    ours, theirs = made / f"{mixing}-ddp", made / f"{mixing}-alone"
    assert_same(ours, theirs)
    for name in ("mood", "letters", "words"):
        one, other = (last(out, f"adapters/{name}/adapter_model.safetensors") for out in (ours, theirs))
        assert all(torch.allclose(tensor, other[key], rtol=1e-4, atol=1e-6) for key, tensor in one.items())
    logs = [[json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()] for out in (ours, theirs)]
    for one, other in zip(*logs, strict=True):
        assert one.keys() == other.keys()
        assert all(value == pytest.approx(other[key], rel=1e-4) for key, value in one.items() if "loss" in key)


def test_parts_of_the_weights_go_on_to_the_same_end(made):
    for name in ("model.safetensors", "optimizer.safetensors"):
        ours, theirs = last(made / "failed-fsdp", name), last(made / "named-fsdp", name)
        assert set(ours) == set(theirs)
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    logs = [(made / name / "log.jsonl").read_bytes() for name in ("failed-fsdp", "named-fsdp")]
    assert logs[0] == logs[1]
    assert_same(made / "named-fsdp", made / "plain-ddp")


def test_a_checkpoint_of_parts_opens_elsewhere(made):
    (checkpoint,) = (made / "plain-fsdp").glob("checkpoints/last-*")
    model, said = transformers.BertForSequenceClassification.from_pretrained(checkpoint, output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"]
    assert model.config.id2label == {0: "no", 1: "yes"}


def test_all_take_smaller_passes_where_one_lacks_memory(made):
    ranks.run_short_of_memory(made / "model", made / "memory-alone", rank="0", batch=16)
    assert_same(made / "memory-ddp", made / "memory-alone")
