"""How fast pretraining goes at equal work: exact BERT-base, one batch of random ids, no padding, optimizer included.

    python benchmarks/pretraining.py --device cuda --out benchmarks/results/pretraining-speed-gpu-h200.json
    python benchmarks/pretraining.py                       # a tiny shape on the CPU: does it run, not how fast

Peers are `transformers`' BertForMaskedLM under torch.compile, in autocast and with bf16 weights, each in a process of
its own; the latter also with a mask that hides nothing, as another kernel then computes attention; dropout is 0 and
AdamW fused on all sides. `ours` predicts at the masked places, as it always does, and computes the end of the last
layer for them alone; `ours-all` at every token, as the peers do, so that the difference is what the places alone give.
`own-12x512` and `own-8x640` are the shapes of our own recipe, with its masking on the device and its optimizer. `mfu`
is of 790 TFLOP/s.
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
from origins import find_commit

from bertsmith.models.fresh import make_fresh
from bertsmith.objectives.costs import token_costs
from bertsmith.objectives.masked_tokens import MaskedTokens
from bertsmith.objectives.objective import Vocabulary
from bertsmith.training.compiled import TwinPasses
from bertsmith.training.devices import Ranks
from bertsmith.training.optimizer import make_optimizer, set_rates
from bertsmith.training.pretraining_settings import Pretraining
from bertsmith.training.recipes import RECIPES
from bertsmith.training.study import Given, Work

CONTESTANTS = ("ours", "ours-all", "peer-autocast", "peer-bf16", "peer-bf16-mask")
OWN = {"own-12x512": {"depth": 12, "width": 512, "heads": 8, "inner": 1408},
       "own-8x640": {"depth": 8, "width": 640, "heads": 10, "inner": 1728}}  # fmt: skip
PEAK = 790e12
SHARE = 0.15
OWN_SHARE, OWN_WORDS = 0.2, 16384
BASE = {"vocabulary": 30522, "width": 768, "depth": 12, "heads": 12, "inner": 3072}
TINY = {"vocabulary": 512, "width": 64, "depth": 2, "heads": 2, "inner": 128}


class Dense:
    """Full rows of random ids, the masked places drawn for each step."""

    names, weights, examples, can_twin = ("loss",), {}, 0, True

    def __init__(self, sizes: dict[str, int], length: int, rows: int, everywhere: bool) -> None:
        self.length, self.rows, self.everywhere = length, rows, everywhere
        chance = np.random.default_rng(0)
        self.ahead: list[Work] = []
        self.ids = [chance.integers(5, sizes["vocabulary"], length * rows) for _ in range(4)]
        self.places = [np.sort(chance.permutation(length * rows)[: int(SHARE * length * rows)]) for _ in range(4)]

    def steps_an_epoch(self) -> int:
        return 4

    def size(self, step: int) -> int:
        return self.rows

    def prepare(self, step: int, rank: int, ranks: int) -> list[Work]:
        self.ahead = self.works(step, rank, ranks, 0)
        return self.ahead

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        ids, at = self.ids[step % 4], self.places[step % 4]
        given = {"at": Given(at, "place", 0), "gold": Given(ids[at], "place", -100)}
        counts = {"loss": float(len(at))}
        return [Work(ids, np.zeros_like(ids), (self.length,) * self.rows, given, counts, outline=("given", len(at)))]

    def losses(self, network: Any, batch: Any, given: Any, work: Work) -> dict[str, torch.Tensor]:
        gold = given["gold"]
        hidden = network(batch if self.everywhere else batch.wanting(given["at"]))
        if self.everywhere:
            at = torch.arange(len(batch.ids), device=gold.device)
            wanted = torch.full_like(batch.ids, -100).scatter(0, given["at"], gold)
            return {"loss": token_costs(network, hidden, batch, at, wanted)[0]}
        return {"loss": token_costs(network, hidden, batch, given["at"], gold)[0]}


class Masked(Dense):
    """The same rows, whose words an objective hides on the device."""

    def __init__(self, sizes: dict[str, int], length: int, rows: int) -> None:
        super().__init__(sizes, length, rows, False)
        self.objective = MaskedTokens(Vocabulary(sizes["vocabulary"], 4, (0, 1, 2, 3, 4)), OWN_SHARE)

    def works(self, step: int, rank: int, ranks: int, budget: int) -> list[Work]:
        ids = self.ids[step % 4]
        asked, outline = self.objective.count_hidden(len(ids), 0.0), self.objective.outline(len(ids), self.rows, 0.0)
        facts, counts = {"asked": asked}, {"loss": float(asked)}
        return [Work(ids, np.zeros_like(ids), (self.length,) * self.rows, {}, counts, facts=facts, outline=outline)]

    def losses(self, network: Any, batch: Any, given: Any, work: Work) -> dict[str, torch.Tensor]:
        asked = self.objective.ask(batch, given, len(batch.ids), 0.0)
        found = self.objective.losses(network, self.objective.read(network, asked), asked.batch, asked.given)
        return {"loss": found["masked"][0]}


def make_own(options: argparse.Namespace, sizes: dict[str, int]) -> Callable[[int], float]:
    recipe = RECIPES["smith"]
    given = {**recipe.sizes, **sizes, **dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), 0.0)}
    network = make_fresh(recipe.preset, ("mask",), given, {"pad": 0}).network
    return make_step(options, network, Masked(sizes, options.length, options.rows), recipe.training)


def make_ours(options: argparse.Namespace, sizes: dict[str, int]) -> Callable[[int], float]:
    drops = dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), 0.0)
    network = make_fresh("bert-base", ("mask",), {**sizes, **drops}, {"pad": 0}).network
    study = Dense(sizes, options.length, options.rows, options.contestant == "ours-all")
    return make_step(
        options, network, study, Pretraining(dropout=0.0, lengths=str(options.length), tokens=len(study.ids[0]))
    )


def make_step(options: argparse.Namespace, network: Any, study: Any, settings: Pretraining) -> Callable[[int], float]:
    device = torch.device(options.device)
    network.to(device).train()
    is_real = options.device == "cuda"
    records = False if options.unrecorded else None
    passes = TwinPasses(network, study, settings, device, "bf16", Ranks(0, 1, device), is_real, records)
    optimizer = make_optimizer(network, settings, passes.recorded)
    set_rates(optimizer, settings.peak)
    study.prepare(0, 0, 1)

    def step(number: int) -> float:
        passes.run(study.ahead, number)  # as the loop has it: a step's rows are made in the one before
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
    model = model.bfloat16() if options.contestant.startswith("peer-bf16") else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    run: Any = torch.compile(model) if device == "cuda" else model
    study = Dense(sizes, options.length, options.rows, True)
    batches = []  # on the device beforehand: the peer waits for nothing
    for number in range(4):
        work = study.works(number, 0, 1, 0)[0]
        arrays = (work.ids, work.given["at"].values, work.given["gold"].values)
        ids, at, gold = (torch.from_numpy(array).to(device) for array in arrays)
        labels = torch.full_like(ids, -100).scatter(0, at, gold)
        batches.append((ids.view(options.rows, -1), labels.view(options.rows, -1)))

    seen = {"attention_mask": torch.ones_like(batches[0][0])} if options.contestant.endswith("mask") else {}

    def step(number: int) -> float:
        ids, labels = batches[number % 4]
        with torch.autocast(device, torch.bfloat16, enabled=options.contestant == "peer-autocast"):
            loss = run(input_ids=ids, labels=labels, **seen).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return 0.0 if number % 10 else float(loss)

    return step


def count_flops(sizes: dict[str, int], length: int, rows: int, contestant: str) -> float:
    """Of a step that predicts at the masked places: six for each weight and token, and attention's products.

    Ours leave out what nobody reads of the last layer, which is not counted then.
    """
    width, tokens, is_own = sizes["width"], length * rows, contestant in OWN
    share = OWN_SHARE if is_own else SHARE
    behind = width * width + (3 if is_own else 2) * width * sizes["inner"]  # attention
    block = 3 * width * width + behind
    left_out = (1 - share) * behind if is_own or contestant == "ours" else 0.0
    head = (sizes["vocabulary"] * width + width * width) * share
    products = sizes["depth"] * block - left_out + head
    return 6.0 * tokens * products + 12.0 * sizes["depth"] * width * length * tokens


def measure(options: argparse.Namespace) -> dict[str, Any]:
    sizes = BASE if options.device == "cuda" else TINY
    is_own = options.contestant in OWN
    if is_own and options.device == "cuda":
        sizes = {**OWN[options.contestant], "vocabulary": OWN_WORDS}
    torch.set_float32_matmul_precision("high")
    begun = time.perf_counter()
    makers = {"own": make_own, "ours": make_ours, "peer": make_peer}
    step = makers[options.contestant.split("-")[0]](options, sizes)
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
    rate = count_flops(sizes, options.length, options.rows, options.contestant) / seconds
    if options.profile:
        show_profile(step)
    return {
        "contestant": options.contestant, "length": options.length, "rows": options.rows,
        "tokens_per_second": round(tokens / seconds), "mfu": round(rate / PEAK, 4), "first_step_s": round(first, 1),
        "memory_mib": round(memory), "losses": [loss for loss in losses if loss],
    }  # fmt: skip


def show_profile(step: Callable[[int], float]) -> None:
    """Which kernels take the time."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for number in range(1, 4):
            step(number)
        torch.cuda.synchronize()
    taken: dict[str, list[float]] = {}
    spans = []
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            taken.setdefault(event.name, []).append(event.time_range.elapsed_us())
            spans.append((event.time_range.start, event.time_range.end, event.name))
    spans.sort()
    idle, end = [], spans[0][1]
    for start, stop, name in spans:
        if start > end:
            idle.append((start - end, name))
        end = max(end, stop)
    whole = spans[-1][1] - spans[0][0]
    print(f"{whole / 3e3:.2f} ms a step, idle {sum(gap for gap, _ in idle) / 3e3:.2f} ms", file=sys.stderr)
    for gap, name in sorted(idle, reverse=True)[:12]:
        print(f"  idle {gap / 1e3:.3f} ms before {name[:90]}", file=sys.stderr)
    copies = [place for place, span in enumerate(spans) if "DtoD" in span[2] and 0 < place < len(spans) - 1]
    for place in sorted(copies, key=lambda place: spans[place][0] - spans[place][1])[:12]:
        (start, stop, _), before, after = spans[place], spans[place - 1][2], spans[place + 1][2]
        print(f"  copy {(stop - start) / 1e3:.3f} ms between {before[:50]} and {after[:50]}", file=sys.stderr)
    for name, times in sorted(taken.items(), key=lambda one: -sum(one[1]))[:48]:
        told = f"{sum(times) / 3e3:8.3f} ms a step {len(times) / 3:7.1f} x {sum(times) / len(times):8.1f} us"
        print(f"{told}  {name[:110]}", file=sys.stderr)


def _wait(options: argparse.Namespace) -> None:
    if options.device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--contestants", type=lambda text: text.split(","), default=[*CONTESTANTS, *OWN])
    parser.add_argument("--shapes", default="", help="LENGTHxROWS, with commas between; else 128x512,512x128 on CUDA")
    parser.add_argument("--steps", type=int, default=0, help="that are timed; else 30 on CUDA")
    parser.add_argument("--warm", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit")
    parser.add_argument("--profile", action="store_true", help="show where the time goes, too")
    parser.add_argument("--unrecorded", action="store_true", help="our passes launch each kernel by itself")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    is_real = options.device == "cuda"
    options.steps, options.warm = options.steps or (30 if is_real else 2), options.warm or (8 if is_real else 1)
    shapes = options.shapes or ("128x512,512x128" if is_real else "16x4")
    if options.contestant:
        options.length, options.rows = map(int, shapes.split("x"))
        print(json.dumps(measure(options)))
        return
    own_shape = "128x1024" if is_real else "16x4"
    turns = [(name, shape) for shape in shapes.split(",") for name in options.contestants if name not in OWN]
    rows: list[dict[str, Any]] = []
    all_of_them = options.contestants == [*CONTESTANTS, *OWN]
    chosen = "" if all_of_them else f" --contestants {','.join(options.contestants)}"
    chosen += (f" --shapes {options.shapes}" if options.shapes else "") + " --unrecorded" * options.unrecorded
    for contestant, shape in [*turns, *((name, own_shape) for name in options.contestants if name in OWN)]:
        rows.append(run(options, contestant, shape))
        print(json.dumps(rows[-1]), flush=True)
        if options.out:  # what is done stays done if the time runs out
            about = {"about": f"{torch.cuda.get_device_name() if is_real else 'CPU'}, torch {torch.__version__}",
                     "date": str(date.today()), "commit": options.commit or find_commit(),
                     "command": f"python benchmarks/pretraining.py --device {options.device}{chosen}"}  # fmt: skip
            options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    sys.exit(any("error" in row for row in rows))


def run(options: argparse.Namespace, contestant: str, shape: str) -> dict[str, Any]:
    """One contestant in a process of its own."""
    line = [sys.executable, __file__, "--device", options.device, "--shapes", shape, "--contestant", contestant,
            "--steps", str(options.steps), "--warm", str(options.warm)]  # fmt: skip
    line += ["--profile"] * options.profile + ["--unrecorded"] * options.unrecorded
    done = subprocess.run(line, capture_output=True, text=True)
    if options.profile:
        print(done.stderr, flush=True)
    said = done.stdout.strip().splitlines()
    if done.returncode or not said:
        return {"contestant": contestant, "error": done.stderr[-1500:]}
    found: dict[str, Any] = json.loads(said[-1])
    return found


if __name__ == "__main__":
    main()
