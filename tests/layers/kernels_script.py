"""Run by test_kernels.py in a process of its own: Triton reads how it is to run when it is imported.

python kernels_script.py interpret    every kernel against plain attention, number by number, on the CPU
python kernels_script.py compile      every kernel for a GPU that need not be there
"""

import math
import os
import random
import sys

if sys.argv[1] == "interpret":
    os.environ["TRITON_INTERPRET"] = "1"

import torch

from bertsmith.data.batch import Batch, reach_of
from bertsmith.layers import (
    activation_kernels,
    attention,
    packed_attention,
    packed_kernels,
    packed_long_kernels,
    warming,
)
from bertsmith.layers.activation import ACTIVATIONS, KERNELS
from bertsmith.layers.gating import activate, gate
from bertsmith.models.fresh import make_fresh


def attend(qkv, lengths, turns, heads, window, causal):
    """Row by row, as the definition has it."""
    found, first = [], 0
    for length in lengths:
        q, k, v = qkv[first : first + length].view(length, 3, heads, -1).permute(1, 2, 0, 3)  # (heads, length, size)
        if turns is not None:
            cos, sin = (torch.cat([table[:length]] * 2, -1) for table in turns)
            q, k = (x * cos + torch.cat([-x.chunk(2, -1)[1], x.chunk(2, -1)[0]], -1) * sin for x in (q, k))
        behind = torch.arange(length)[:, None] - torch.arange(length)
        seen = behind.abs() <= (window or length)
        seen = seen & (behind >= 0) if causal else seen
        scores = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -torch.inf)
        found.append((scores.softmax(-1) @ v).transpose(0, 1).reshape(length, -1))
        first += length
    return torch.cat(found)


def check(ours, theirs, given, told):
    grad = torch.randn_like(theirs)
    for one, other in ((ours, theirs), *[[torch.autograd.grad(x, given, grad)[0] for x in (ours, theirs)]]):
        apart = (one - other).abs().max().item()
        assert apart < 1e-5 * max(1.0, other.abs().max().item()), (told, apart)


def check_attention(chance):
    for number in range(14):
        longest = chance.choice([9, 16, 40, 64, 128]) if number % 2 else chance.choice([130, 200, 256])
        lengths = [chance.randint(1, longest) for _ in range(2)] + [longest]
        heads, size = chance.choice([(1, 32), (2, 32), (1, 64)])
        window, causal = chance.choice([0, 0, 3, 70]), chance.random() < 0.4
        angles = torch.arange(longest)[:, None] / 100.0 ** (torch.arange(0, size, 2) / size)
        turns = (angles.cos(), angles.sin()) if chance.random() < 0.5 else None
        qkv = torch.randn(sum(lengths), 3 * heads * size, requires_grad=True)
        # Rows without tokens stand behind the last one, where a pass is filled up.
        bounds = torch.tensor([0, *lengths, 0, 0]).cumsum(0).int()
        cos, sin = turns or (None, None)
        reach = torch.empty(longest, 0)
        ours, _ = packed_attention.attend_packed(qkv, bounds, reach, cos, sin, None, heads, window, causal, 0.0)
        check(ours, attend(qkv, lengths, turns, heads, window, causal), qkv, (lengths, heads, size, window, causal))


def check_dropping():
    """What is dropped is the same in both passes, so the gradient is that of what was computed; on average, nothing."""
    qkv, bounds, seed = torch.randn(20, 192, dtype=torch.float32), torch.tensor([0, 16, 20]).int(), torch.tensor([7])

    def run(x, drop=0.3, seed=seed):
        return packed_attention.attend_packed(x, bounds, torch.empty(16, 0), None, None, seed, 2, 0, False, drop)[0]

    given, along = qkv.clone().requires_grad_(), torch.randn_like(qkv) * 1e-3
    grad = torch.randn(20, 64)
    slope = (torch.autograd.grad(run(given), given, grad)[0] * along).sum().item()
    assert math.isclose(slope, ((run(qkv + along) - run(qkv - along)) * grad).sum().item() / 2, rel_tol=2e-3)
    # All tokens ask the same, so that each of a row is one more draw of the same answer.
    alike = torch.cat([qkv[:1, :64].expand(20, -1), qkv[:, 64:]], dim=1)
    mean = torch.stack([run(alike, 0.2, torch.tensor([number])) for number in range(50)]).mean(0)
    for row in (slice(0, 16), slice(16, 20)):
        assert (mean[row].mean(0) - run(alike, 0.0)[row].mean(0)).abs().mean() < 0.03
    assert not torch.equal(run(qkv), run(qkv, seed=torch.tensor([8])))


def check_activations():
    for kind in KERNELS:
        both = torch.linspace(-9, 9, 7 * 48).view(7, 48).flip(0).contiguous().requires_grad_()
        gates, values = both.chunk(2, dim=-1)
        check(gate(both, kind), ACTIVATIONS[kind](gates) * values, both, kind)
        bias = torch.linspace(-1, 1, 48).requires_grad_()
        for given in (both, bias):  # what goes back to either
            check(activate(both, bias, kind), ACTIVATIONS[kind](both + bias), given, kind)
    tall = torch.randn(600, 300, requires_grad=True)  # more than a program takes
    bias = torch.randn(300, requires_grad=True)
    for given in (tall, bias):
        check(activate(tall, bias, "gelu"), ACTIVATIONS["gelu"](tall + bias), given, "tall")


class Recorder:
    """Stands where a kernel stood: notes what it would be compiled for."""

    def __init__(self, name, kernel, seen):
        self.name, self.kernel, self.seen = name, kernel, seen

    def __getitem__(self, grid):
        def launch(*given, **known):
            kinds = tuple(str(x.dtype) if isinstance(x, torch.Tensor) else type(x).__name__ for x in given)
            self.seen.add((self.name, kinds, tuple(sorted(known.items()))))
            return self.kernel[grid](*given, **known)

        return launch


def check_warming():
    """What is made ready is what a pass then calls, to the types and sizes that a kernel is compiled for."""
    seen = set()
    for module in (packed_kernels, packed_long_kernels, activation_kernels):
        for name in ("forward_short", "backward_short", "forward_long", "backward_queries", "backward_keys", "gate",
                     "gate_back", "apply", "apply_back"):  # fmt: skip
            if hasattr(module, name):
                setattr(module, name, Recorder(name, getattr(module, name), seen))
    attention._has_varlen = lambda q: True  # so that the kernels for a GPU are chosen
    for preset in ("bert-base", "modernbert-base"):
        sizes = {"vocabulary": 50, "width": 64, "depth": 3, "heads": 2, "inner": 96, "positions": 256}
        sizes |= {} if preset == "bert-base" else {"window": 4, "global_every": 2}
        sizes |= dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), 0.0)
        network = make_fresh(preset, ("mask",), sizes, {"pad": 0}).network.half().train()
        for longest in (20, 150):
            seen.clear()
            for call in warming.list_calls(network.config, [reach_of(longest)], torch.device("cpu"), torch.float16):
                call()
            ready = set(seen)
            seen.clear()
            batch = Batch.of([[7] * longest, [8] * 5])
            batch.reach = torch.empty(reach_of(longest), 0, dtype=torch.int64)
            x = torch.randn(longest + 5, 64).half().requires_grad_()
            for layer, block in enumerate(network.order):
                turned = network._turns(batch)[0 if network.config.is_local(layer) else 1]
                found = block.attention(x, batch, turned, add=x) + block.feed.down(block.feed._activate(x), add=x)
                found.sum().backward()
            assert ready == seen and len(ready) >= 4, (preset, longest, ready ^ seen)


def compile_all():
    """An error of types in a kernel shows here, not first on somebody's GPU."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kinds = {"bounds": "*i32", "cos": "*fp16", "sin": "*fp16", "sums": "*fp32", "shares": "*fp32",
             "parts": "*fp32", **dict.fromkeys(("count", "tokens", "each"), "i32"),
             **dict.fromkeys(("scale", "factor", "drop"), "fp32"), "seed": "*i64"}  # fmt: skip
    known = {"HEADS": 2, "SIZE": 64, "BLOCK": 128, "PART": 64, "INNER": 96, "KIND": "gelu", "DROPS": True,
             "ROWS": 16, "COLUMNS": 64, "ROTARY": True, "CAUSAL": True, "WINDOW": 8}  # fmt: skip
    for module in (packed_kernels, packed_long_kernels, activation_kernels):
        for name, kernel in vars(module).items():
            if not isinstance(kernel, triton.JITFunction) or "program_id" not in kernel.src:  # a helper of others
                continue
            given = {each: known[each] for each in kernel.arg_names if each in known}
            signature = {each: "constexpr" if each in given else kinds.get(each, "*bf16") for each in kernel.arg_names}
            made = triton.compile(ASTSource(kernel, signature, given), target=GPUTarget("cuda", 90, 32))
            assert made.asm["ptx"], name
            print(name)


if __name__ == "__main__":
    torch.manual_seed(0)
    if sys.argv[1] == "compile":
        compile_all()
    else:
        check_attention(random.Random(0))
        check_dropping()
        check_activations()
        check_warming()
