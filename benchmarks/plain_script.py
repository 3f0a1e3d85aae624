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

from bertsmith.data.shards import TOKENIZER, Corpus

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

    def forward(self, ids: Tensor, at: Tensor, gold: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of the losses at the places `at` of the rows, laid end to end, and how many are right."""
        kind = torch.bfloat16 if ids.is_cuda else torch.float32
        table = self.table.to(kind)
        x = norm(F.embedding(ids, table))
        # Of the parts of a stack each has its gradient, which are put together once.
        qkv = self.qkv.to(kind).view(self.depth, -1, self.qkv.shape[-1]).unbind()
        out, up, down = (p.to(kind).unbind() for p in (self.out, self.up, self.down))
        scalars = [p.to(kind).unbind() for p in (self.first, self.skips, self.values)]
        start, saved, values = x, [], None
        for i in range(self.depth):
            mirrored = saved[self.depth - 1 - i] if i >= (self.depth + 1) // 2 else None
            shares = [some[i] for some in scalars]
            x, v = self.layer(x, start, mirrored, values, shares, (qkv[i], out[i], up[i], down[i]))
            values = v if values is None else values
            saved.append(x)
        return self.score(x, at, gold, table)

    def layer(self, x: Tensor, start: Tensor, mirrored: Tensor | None, values: Tensor | None,
              shares: list[Tensor], weights: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:  # fmt: skip
        qkv, out, up, down = weights
        x = x + shares[0] * start + (0 if mirrored is None else shares[1] * mirrored)
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (norm(x) @ qkv.T).chunk(3, -1))
        mixed = v if values is None else v + shares[2] * values
        read = F.scaled_dot_product_attention(self.turn(norm(q)), self.turn(norm(k)), mixed)
        x = x + read.transpose(1, 2).flatten(2) @ out.T
        return x + F.relu(norm(x) @ up.T).square() @ down.T, v

    def turn(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def score(self, x: Tensor, at: Tensor, gold: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        scores = (norm(x.flatten(0, 1)[at]) @ table.T).float()
        return F.cross_entropy(scores, gold, reduction="sum"), (scores.argmax(-1) == gold).sum()


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
    matrices = model.matrices()
    rest = [p for p in model.parameters() if all(p is not one for one in matrices)]
    muon = Muon(matrices)
    adam = torch.optim.AdamW(rest, lr=RATE, betas=(0.9, 0.98), weight_decay=DECAY, fused=True)
    if device.type == "cuda":
        model.layer, model.score = torch.compile(model.layer), torch.compile(model.score, dynamic=True)
    torch.manual_seed(options.seed)
    order, step, tokens, place, log = torch.randperm(len(rows), device=device), 0, 0, 0, []
    start, away, is_known = time.perf_counter(), 0.0, device.type == "cpu"
    while True:
        done = step / options.steps if options.steps else (time.perf_counter() - start - away) / options.seconds
        if done >= 1:
            break
        begun = time.perf_counter()
        rate = min((done + 1e-3) / 0.01, 1.0, (1 - done) / 0.5) * RATE
        passes, each = (1 if done < 0.4 else 2), options.tokens // LENGTH // 2
        for _ in range(passes):
            if place + each > len(rows):
                order, place = torch.randperm(len(rows), device=device), 0
            ids = rows[order[place : place + each]].long()
            given, at, gold = hide(ids, 0.3 - 0.15 * done, specials, corpus.specials["mask"], vocab)
            loss, _ = model(given, at, gold)
            (loss / (passes * len(gold))).backward()
            place, tokens = place + each, tokens + ids.numel()
        for group in adam.param_groups:
            group["lr"] = rate
        adam.step()
        muon.step(rate)
        model.zero_grad()
        step += 1
        if step % 50 == 0 or not is_known:
            log.append((step, round(float(loss.detach()) / len(gold), 4)))  # waits for the device: the clock is its own
            if step % 500 == 0:
                print(f"step {step}, loss {log[-1][1]}", flush=True)
        if not is_known:  # the first steps compile, the third is like all others
            is_known = step == 3
            away += time.perf_counter() - begun
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
    loss = right = places = 0.0
    for number, (batch, ordinary) in enumerate(held_out_batches(corpus, "rows", LENGTH, device)):
        torch.manual_seed(number)
        asked = objective.ask(batch, {}, ordinary, 1.0)
        at, gold = (asked.given[name][asked.given["gold"] >= 0] for name in ("at", "gold"))
        found = model(asked.batch.ids.view(-1, LENGTH), at, gold)
        loss, right, places = loss + float(found[0]), right + float(found[1]), places + len(gold)
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
    words = json.loads((options.rows / TOKENIZER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    heads = options.heads or max(1, options.width // 64)
    model = Plain(-(-len(words) // 64) * 64, options.depth, options.width, heads).to(device)
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
