"""The plain script that `smith` is measured against, written anew from what is told of it: a peer on the same rows.

    python benchmarks/plain_script.py ROWS --seconds 500 --device cuda --out FILE   # ROWS: starting_line.py cut
    python benchmarks/plain_script.py ROWS --steps 2000 --depth 4 --width 128 --tokens 4096 --out FILE    # on a CPU
    python benchmarks/plain_script.py ROWS --tiny

A pre-norm encoder without biases and without weights in its norms: rotary positions, queries and keys of one size,
squared ReLU without a gate, output projections that begin at zero, the embedding and the first layer's values added
again by learned numbers, skips as in a U-net, a tied head at the masked places alone. Muon with rows of one size for
the matrices, AdamW for the rest; 1 % warm-up, flat, linearly to zero over the last half; half of the tokens a step
until 40 %; masks from 30 to 15 %. Nothing of the package trains here: it gives the rows, and the masks of the held-out
ones, which are the same for `smith` (`masked` in starting_line.py). The clock does not count what is compiled.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from origins import find_commit, name_machine
from pretrained import held_out_batches
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.data.shards import Corpus

LENGTH = 128
RATE, DECAY, MOMENTUM, ROW_MEMORY = 2e-3, 0.05, 0.95, 0.95
POLAR = ((8.28721201814563, -23.595886519098837, 17.300387312530933),
         (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
         (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
         (3.3184196573706015, -2.488488024314874, 0.51004894012372),
         (2.300652019954817, -1.6689039845747493, 0.4188073119525673))  # fmt: skip


def norm(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:])


class Plain(nn.Module):
    def __init__(self, vocab: int, depth: int, width: int, heads: int) -> None:
        super().__init__()
        self.depth, self.heads = depth, heads
        self.table = nn.Parameter(0.02 * torch.randn(vocab, width))
        self.qkv = nn.Parameter(width**-0.5 * torch.randn(3 * depth, width, width))
        self.out = nn.Parameter(torch.zeros(depth, width, width))
        self.up = nn.Parameter(width**-0.5 * torch.randn(depth, 4 * width, width))
        self.down = nn.Parameter(torch.zeros(depth, width, 4 * width))
        self.first = nn.Parameter(torch.zeros(depth))
        self.values = nn.Parameter(torch.zeros(depth))
        self.skips = nn.Parameter(torch.zeros(depth))
        size = width // heads
        turns = torch.outer(torch.arange(LENGTH), 10_000.0 ** (-torch.arange(0, size, 2) / size))
        self.register_buffer("cos", turns.cos(), persistent=False)
        self.register_buffer("sin", turns.sin(), persistent=False)

    def matrices(self) -> list[nn.Parameter]:
        return [self.qkv, self.out, self.up, self.down]

    def turn(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, ids: Tensor, at: Tensor, weights: dict[str, Tensor]) -> Tensor:
        """The scores of all words at the places `at` of the rows, laid end to end."""
        w, x = weights, norm(F.embedding(ids, weights["table"]))
        start, saved, values = x, [], None
        shape = *ids.shape, self.heads, -1
        for i in range(self.depth):
            x = x + w["first"][i] * start
            if i >= (self.depth + 1) // 2:
                x = x + w["skips"][i] * saved[self.depth - 1 - i]
            y = norm(x)
            q, k, v = ((y @ w["qkv"][3 * i + n].T).view(shape).transpose(1, 2) for n in range(3))
            values = v if values is None else values
            v = v + w["values"][i] * values
            read = F.scaled_dot_product_attention(self.turn(norm(q)), self.turn(norm(k)), v)
            x = x + read.transpose(1, 2).flatten(2) @ w["out"][i].T
            x = x + F.relu(norm(x) @ w["up"][i].T).square() @ w["down"][i].T
            saved.append(x)
        return norm(x.flatten(0, 1)[at]) @ w["table"].T


class Muon:
    def __init__(self, matrices: list[nn.Parameter]) -> None:
        self.held = [(p, torch.zeros_like(p), torch.zeros_like(p[..., :1])) for p in matrices]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for p, momentum, sizes in self.held:
            assert p.grad is not None
            momentum.lerp_(p.grad, 1 - MOMENTUM)
            x = p.grad.lerp(momentum, MOMENTUM).bfloat16()
            tall = x.shape[-2] > x.shape[-1]
            x = x.mT if tall else x
            x = x / (1.02 * x.norm(dim=(-2, -1), keepdim=True) + 1e-6)
            for a, b, c in POLAR:
                square = x @ x.mT
                x = a * x + (b * square + c * square @ square) @ x
            x = (x.mT if tall else x).float()
            size = x.norm(dim=(-2, -1), keepdim=True)
            sizes.lerp_(x.square().mean(-1, keepdim=True), 1 - ROW_MEMORY)
            x = x * sizes.clamp_min(1e-10).rsqrt()
            x = x * (size / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-10))
            p.mul_(1 - rate * DECAY).add_(x, alpha=-rate * 0.2 * max(p.shape[-2:]) ** 0.5)


def read_rows(corpus: Corpus) -> Tensor:
    """[CLS], a row's words, [SEP]: what `starting_line.py cut` made."""
    words = np.asarray(corpus.tokens).reshape(-1, LENGTH - 2).astype(np.int16)
    ends = (np.full((len(words), 1), corpus.specials[name], np.int16) for name in ("cls", "sep"))
    return torch.from_numpy(np.concatenate([next(ends), words, next(ends)], 1))


def hide(ids: Tensor, share: float, specials: Tensor, mask: int, vocab: int) -> tuple[Tensor, Tensor, Tensor]:
    """80/10/10 of as many places a row: the rows that are read, the places, what stood there."""
    draw = torch.rand(ids.shape, device=ids.device).masked_fill(torch.isin(ids, specials), -1)
    places = draw.topk(round(share * LENGTH), -1).indices
    gold, kind = ids.gather(1, places), torch.rand(places.shape, device=ids.device)
    other = torch.randint_like(gold, vocab)
    put = torch.where(kind < 0.8, mask, torch.where(kind < 0.9, other, gold))
    at = places + LENGTH * torch.arange(len(ids), device=ids.device)[:, None]
    return ids.scatter(1, places, put), at.flatten(), gold.flatten()


def train(model: Plain, rows: Tensor, corpus: Corpus, options: argparse.Namespace) -> dict[str, Any]:
    device, vocab = rows.device, model.table.shape[0]
    specials = torch.tensor([*corpus.specials.values()], device=device)
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    matrices = model.matrices()
    rest = [p for p in model.parameters() if all(p is not one for one in matrices)]
    muon = Muon(matrices)
    adam = torch.optim.AdamW(rest, lr=RATE, betas=(0.9, 0.98), weight_decay=DECAY, fused=True)
    forward = torch.compile(model) if device.type == "cuda" else model
    torch.manual_seed(options.seed)
    order, step, tokens, log = torch.randperm(len(rows), device=device), 0, 0, []
    place, start, away = 0, time.perf_counter(), 0.0
    seen: set[tuple[int, int]] = set()
    while True:
        done = step / options.steps if options.steps else (time.perf_counter() - start - away) / options.seconds
        if done >= 1:
            break
        rate = min(done / 0.01 + 1 / (1 + 100 * (step + 1)), 1.0, (1 - done) / 0.5)
        count = options.tokens // LENGTH // (2 if done < 0.4 else 1)
        if place + count > len(rows):
            order, place = torch.randperm(len(rows), device=device), 0
        ids = rows[order[place : place + count]].long()
        share = round(32 * (0.3 - 0.15 * done)) / 32  # few shapes, as each is compiled
        shape, begun = (count, round(share * LENGTH)), time.perf_counter()
        given, at, gold = hide(ids, share, specials, corpus.specials["mask"], vocab)
        weights = {name: p.to(kind) for name, p in model.named_parameters()}
        loss = F.cross_entropy(forward(given, at, weights).float(), gold)
        loss.backward()
        for group in adam.param_groups:
            group["lr"] = rate * RATE
        adam.step()
        muon.step(rate * RATE)
        model.zero_grad()
        if shape not in seen:
            seen.add(shape)
            float(loss)
            if device.type == "cuda":
                away += time.perf_counter() - begun
        step, place, tokens = step + 1, place + count, tokens + ids.numel()
        if step % 50 == 0:
            log.append((step, round(float(loss), 4)))  # waits for the device, so the clock is its
            if step % 500 == 0:
                print(f"step {step}, loss {log[-1][1]}", flush=True)
    seconds = time.perf_counter() - start - away
    return {"steps": step, "tokens": tokens, "seconds": round(seconds, 1), "compiling_s": round(away, 1),
            "tokens_per_second": round(tokens / seconds), "curve": log[:: max(1, len(log) // 60)]}  # fmt: skip


@torch.no_grad()
def measure(model: Plain, folder: Path, device: torch.device) -> dict[str, float]:
    """As `measure_masked` does of a folder: the same rows, the same masks."""
    from bertsmith.objectives.making import make_objective
    from bertsmith.training.recipes import Asking

    corpus = Corpus.open(folder, "held-out")
    objective = make_objective(Asking(), corpus, 0).objective
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    weights = {name: p.to(kind) for name, p in model.named_parameters()}
    loss = right = places = 0.0
    for number, (batch, ordinary) in enumerate(held_out_batches(corpus, "rows", LENGTH, device)):
        torch.manual_seed(number)
        asked = objective.ask(batch, {}, ordinary, 1.0)
        at, gold = (asked.given[name][asked.given["gold"] >= 0] for name in ("at", "gold"))
        scores = model(asked.batch.ids.view(-1, LENGTH), at, weights).float()
        loss += float(F.cross_entropy(scores, gold, reduction="sum"))
        right += float((scores.argmax(-1) == gold).sum())
        places += len(gold)
    return {"accuracy": right / places, "loss": loss / places, "places": places}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="?", help="what `starting_line.py cut` wrote")
    parser.add_argument("--seconds", type=float, default=500.0, help="of training")
    parser.add_argument("--steps", type=int, help="in place of seconds")
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--heads", type=int, help="else one for 64 of the width")
    parser.add_argument("--tokens", type=int, default=131_072, help="a step, from 40 %% on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument("--tiny", action="store_true", help="a few steps: does it run")
    parser.add_argument("--out", type=Path, help="the file of figures")
    options = parser.parse_args()
    if options.rows is None:  # `make bench` calls every script, and the text cannot be shipped
        return parser.print_help()
    if options.tiny:
        options.steps, options.depth, options.width, options.tokens = 20, 2, 64, 1024
    device, corpus = torch.device(options.device), Corpus.open(options.rows)
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    vocab = -(-len(json.loads((options.rows / "tokenizer" / "tokenizer.json").read_text())["model"]["vocab"]) // 64) * 64
    model = Plain(vocab, options.depth, options.width, options.heads or max(1, options.width // 64)).to(device)
    found = train(model, read_rows(corpus).to(device), corpus, options)
    found["masked"] = measure(model, options.rows, device)
    shape = {"depth": options.depth, "width": options.width, "parameters": sum(p.numel() for p in model.parameters())}
    head = {"about": f"{name_machine(options)}, torch {torch.__version__}", "commit": options.commit or find_commit()}
    text = json.dumps({**head, "shape": shape, **found}, indent=1) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(json.dumps({name: value for name, value in found.items() if name != "curve"}))


if __name__ == "__main__":
    main()
