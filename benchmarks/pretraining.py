"""How fast pretraining goes at equal work: exact BERT-base, one batch of random ids, no padding, optimizer included.

    python benchmarks/pretraining.py --device cuda --out benchmarks/results/pretraining-speed-gpu-h200.json
    python benchmarks/pretraining.py                       # a tiny shape on the CPU: does it run, not how fast

Peers are `transformers`' BertForMaskedLM under torch.compile, in autocast and with bf16 weights, each in a process of
its own; dropout is 0 and AdamW fused on all sides. `ours` predicts at the masked places, as it always does; `ours-all`
at every token, as the peers do, so that the difference is what the places alone give. `mfu` is of 790 TFLOP/s.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from finetune import find_commit
from torch.nn import functional as F

from bertsmith.models.fresh import make_fresh
from bertsmith.training.compiled import TwinPasses
from bertsmith.training.devices import Ranks
from bertsmith.training.optimizer import make_optimizer
from bertsmith.training.passes import Passes
from bertsmith.training.settings import Training
from bertsmith.training.study import Given, Work

CONTESTANTS = ("ours", "ours-all", "peer-autocast", "peer-bf16")
PEAK = 790e12
SHARE = 0.15
BASE = {"vocabulary": 30522, "width": 768, "depth": 12, "heads": 12, "inner": 3072}
TINY = {"vocabulary": 512, "width": 64, "depth": 2, "heads": 2, "inner": 128}


class Dense:
    """Full rows of random ids, the masked places drawn for each step."""

    names, weights, examples, can_twin = ("loss",), {}, 0, True

    def __init__(self, sizes: dict[str, int], length: int, rows: int, everywhere: bool) -> None:
        self.length, self.rows, self.everywhere = length, rows, everywhere
        chance = np.random.default_rng(0)
        self.ids = [chance.integers(5, sizes["vocabulary"], length * rows) for _ in range(4)]
        self.places = [np.sort(chance.permutation(length * rows)[: int(SHARE * length * rows)]) for _ in range(4)]

    def steps_an_epoch(self) -> int:
        return 4

    def size(self, step: int) -> int:
        return self.rows

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        ids, at = self.ids[step % 4], self.places[step % 4]
        given = {"at": Given(at, "place", 0), "gold": Given(ids[at], "place", -100)}
        return [Work(ids, np.zeros_like(ids), (self.length,) * self.rows, given, {"loss": float(len(at))})]

    def losses(self, network: Any, batch: Any, given: Any, work: Work) -> dict[str, torch.Tensor]:
        hidden, gold = network(batch), given["gold"]
        if self.everywhere:
            wanted = torch.full_like(batch.ids, -100).scatter(0, given["at"], gold)
            scores = network.score(hidden, batch, "mask")
            return {"loss": F.cross_entropy(scores.float(), wanted, ignore_index=-100, reduction="sum")}
        scores = network.score(hidden, batch, "mask", given["at"])
        return {"loss": F.cross_entropy(scores.float(), gold, reduction="sum")}


def make_ours(options: argparse.Namespace, sizes: dict[str, int]) -> Callable[[int], float]:
    device = torch.device(options.device)
    drops = dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), 0.0)
    network = make_fresh("bert-base", ("mask",), {**sizes, **drops}, {"pad": 0}).network.to(device).train()
    settings, ranks = Training(rate=1e-4, dropout=0.0), Ranks(0, 1, device)
    study: Any = Dense(sizes, options.length, options.rows, options.contestant == "ours-all")
    if options.device == "cuda":
        passes: Passes = TwinPasses(network, study, settings, device, "bf16", ranks)
    else:
        passes = TwinPasses(network, study, settings, device, "bf16", ranks, compiles=False)
    optimizer = make_optimizer(network, settings)

    def step(number: int) -> float:
        passes.run(study.works(number, 0, 1, 0), number)
        passes.finish(optimizer)
        return 0.0 if number % 10 else passes.report()[0]["loss"]

    return step


def make_peer(options: argparse.Namespace, sizes: dict[str, int]) -> Callable[[int], float]:
    import transformers

    device = options.device
    config = transformers.BertConfig(
        vocab_size=sizes["vocabulary"], hidden_size=sizes["width"], num_hidden_layers=sizes["depth"],
        num_attention_heads=sizes["heads"], intermediate_size=sizes["inner"], hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).to(device).train()
    model = model.bfloat16() if options.contestant == "peer-bf16" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run: Any = torch.compile(model) if device == "cuda" else model
    study = Dense(sizes, options.length, options.rows, True)

    def step(number: int) -> float:
        work = study.works(number, 0, 1, 0)[0]
        arrays = (work.ids, work.given["at"].values, work.given["gold"].values)
        ids, at, gold = (torch.from_numpy(array).to(device) for array in arrays)
        labels = torch.full_like(ids, -100).scatter(0, at, gold).view(options.rows, -1)
        with torch.autocast(device, torch.bfloat16, enabled=options.contestant == "peer-autocast"):
            loss = run(input_ids=ids.view(options.rows, -1), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return 0.0 if number % 10 else float(loss)

    return step


def count_flops(sizes: dict[str, int], length: int, rows: int) -> float:
    """Of a step that predicts at the masked places: six for each weight and token, and attention's products."""
    width, tokens = sizes["width"], length * rows
    block = 4 * width * width + 2 * width * sizes["inner"]
    head = (sizes["vocabulary"] * width + width * width) * SHARE
    return 6.0 * tokens * (sizes["depth"] * block + head) + 12.0 * sizes["depth"] * width * length * tokens


def measure(options: argparse.Namespace) -> dict[str, Any]:
    sizes = BASE if options.device == "cuda" else TINY
    torch.set_float32_matmul_precision("high")
    begun = time.perf_counter()
    step = (make_ours if options.contestant.startswith("ours") else make_peer)(options, sizes)
    losses = [step(0)]
    first = time.perf_counter() - begun
    for number in range(1, options.warm):
        step(number)
    _wait(options)
    start = time.perf_counter()
    for number in range(1, options.steps + 1):
        losses.append(step(number))
    _wait(options)
    seconds = (time.perf_counter() - start) / options.steps
    memory = torch.cuda.max_memory_allocated() / 2**20 if options.device == "cuda" else 0
    tokens = options.length * options.rows
    rate = count_flops(sizes, options.length, options.rows) / seconds
    return {
        "contestant": options.contestant, "length": options.length, "rows": options.rows,
        "tokens_per_second": round(tokens / seconds), "mfu": round(rate / PEAK, 4), "first_step_s": round(first, 1),
        "memory_mib": round(memory), "losses": [loss for loss in losses if loss],
    }  # fmt: skip


def _wait(options: argparse.Namespace) -> None:
    if options.device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--contestants", type=lambda text: text.split(","), default=list(CONTESTANTS))
    parser.add_argument("--shapes", default="", help="LENGTHxROWS, with commas between; else 128x512,512x128 on CUDA")
    parser.add_argument("--steps", type=int, default=0, help="that are timed; else 30 on CUDA")
    parser.add_argument("--warm", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    is_real = options.device == "cuda"
    options.steps, options.warm = options.steps or (30 if is_real else 2), options.warm or (8 if is_real else 1)
    shapes = options.shapes or ("128x512,512x128" if is_real else "16x4")
    if options.contestant:
        options.length, options.rows = map(int, shapes.split("x"))
        print(json.dumps(measure(options)))
        return
    rows = []
    for shape in shapes.split(","):
        for contestant in options.contestants:
            line = [sys.executable, __file__, "--device", options.device, "--shapes", shape, "--contestant", contestant,
                    "--steps", str(options.steps), "--warm", str(options.warm)]  # fmt: skip
            done = subprocess.run(line, capture_output=True, text=True)
            said = done.stdout.strip().splitlines()
            is_fine = not done.returncode and said
            row = json.loads(said[-1]) if is_fine else {"contestant": contestant, "error": done.stderr[-1500:]}
            rows.append(row)
            print(json.dumps(row), flush=True)
    if options.out:
        about = {"about": f"{torch.cuda.get_device_name() if is_real else 'CPU'}, torch {torch.__version__}",
                 "date": str(date.today()), "commit": options.commit or find_commit(),
                 "command": f"python benchmarks/pretraining.py --device {options.device}"}  # fmt: skip
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    sys.exit(any("error" in row for row in rows))


if __name__ == "__main__":
    main()
