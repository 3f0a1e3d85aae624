"""How much of a device a run uses: the peaks of known ones, the share, and what the bar and the report say of it."""

import json

import pytest
import torch
from pretraining_made import SHORT, make_corpus, pretrain

from bertsmith.training.progress import Speed
from bertsmith.training.utilization import Utilization, find_peak, find_utilization
from bertsmith.training.watching import ProgressBar


@pytest.mark.parametrize(
    "name, peak",
    [
        ("NVIDIA H200", 989e12), ("NVIDIA H100 80GB HBM3", 989e12), ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA A100-SXM4-40GB", 312e12), ("NVIDIA A100 80GB PCIe", 312e12), ("NVIDIA L4", 121e12),
        ("NVIDIA L40S", 362e12), ("NVIDIA A10", 125e12),
        ("NVIDIA A10G", None), ("NVIDIA A1000", None), ("NVIDIA L40", None), ("Tesla T4", None), ("", None),
    ],
)  # fmt: skip
def test_a_device_is_known_by_the_words_of_its_name(name, peak):
    assert find_peak(name) == peak


def test_a_share_is_the_work_over_the_peak():
    """A BERT-base of 85 million parameters in its blocks at 540,000 tokens a second is 275 TFLOP/s."""
    found = Utilization(6 * 85e6, 989e12, False, devices=2)
    assert found.share(540e3, 1.0) == pytest.approx(0.2785, abs=1e-4)
    assert found.rate(540e3, 2.0) == 540e3
    assert found.tell_peak() == "989 TFLOP/s (data sheet)"


def test_a_processor_is_measured():
    found = find_utilization(1e6, torch.device("cpu"), "fp32")
    assert found.is_measured and found.peak > 1e8 and "measured in a plain product" in found.tell_peak()


def test_the_bar_tells_the_speed_of_the_last_records():
    """A slow first step, as kernels are made for it, is forgotten."""
    said = []
    bar = ProgressBar(said.append, terminal=False)
    bar.utilization = Utilization(1e9, 1e13, False, devices=2)
    bar.started(0, 1000)
    for record in range(1, 31):
        speed = Speed(seconds=100.0 + record, tokens=1000 * record, examples=record)
        bar.stepped(10 * record, {"step": 10 * record, "loss": 2.0}, speed)
    bar.evaluated(300, {"masked_accuracy": 0.5}, True)
    assert said == [
        "step 300 of 1,000: masked_accuracy 0.5000 (the best so far); loss 2.0000, 2,000 tokens/s, MFU 10 %, 1 min left"
    ]


def test_a_run_reports_it(tmp_path):
    said = []
    bar = ProgressBar(said.append, terminal=False)
    pretrain(make_corpus(tmp_path), tmp_path / "out", "smith", **SHORT, watchers=[bar])
    speed = json.loads((tmp_path / "out" / "metrics.json").read_text())["speed"]
    assert 0 < speed["utilization"] < 2 and "measured" in speed["peak"] and speed["tokens_per_second"] > 0
    assert all("MFU" in (tmp_path / "out" / name).read_text() for name in ("README.md", "report.html"))
    assert any("MFU" in sentence and "left" in sentence for sentence in said)
