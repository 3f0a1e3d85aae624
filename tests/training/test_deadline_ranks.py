"""A run by minutes in two processes that is too slow: both stop after the same step and go on with a shorter plan."""

import json

import pytest
import torch
from training.deadline_ranks import train

SPREADS = ("ddp", "fsdp")


@pytest.fixture(scope="module")
def together(starter, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    ended = starter.run_ranks(["training.deadline_ranks", corpus, folder], folder)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "out"
    before = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patched:
        train(corpus, out, patched.setattr)
    torch.set_num_threads(before)
    return out


def read_log(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("spread", SPREADS)
def test_the_first_process_decides_and_the_others_follow(together, spread):
    first, second = (json.loads((together / f"{spread}-{rank}.json").read_text()) for rank in (0, 1))
    plan = json.loads((together / spread / "plan.json").read_text())
    assert first["steps"] == second["steps"] == plan["steps"] < plan["at_first"] == 58
    assert 50 < first["time"] <= 60
    assert any("so that the run ends in time" in sentence for sentence in first["said"]) and not second["said"]
    log = read_log(together / spread)
    assert log[-2]["step"] == plan["steps"] and log[-2]["rate"] < 0.1 * log[2]["rate"]  # fully decayed
    last = json.loads((together / spread / "checkpoints" / f"last-{plan['steps']:06d}" / "state.json").read_text())
    assert last["step"] == plan["steps"]


@pytest.mark.parametrize("spread", SPREADS)
def test_it_is_the_run_that_one_process_makes(together, alone, spread):
    assert json.loads((alone / "plan.json").read_text()) == json.loads((together / spread / "plan.json").read_text())
    one, two = ([record["loss"] for record in read_log(folder) if "loss" in record] for folder in
                (alone, together / spread))  # fmt: skip
    assert two == pytest.approx(one, abs=2e-3)
