"""Run by test_compiled.py in a process of its own, as Triton reads how it is to run when it is imported.

    python compiled_script.py PRESET all|asked

Steps over ragged rows as a GPU makes them, its kernels interpreted on the CPU: prints of each step the loss, the same
by plain passes, and how many graphs were compiled so far. `asked`: the last layer leaves out what nothing is asked of;
the plain passes never do.
"""

import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from bertsmith.layers import attention
from bertsmith.models.fresh import make_fresh
from bertsmith.objectives.costs import token_costs
from bertsmith.training.compiled import TwinPasses
from bertsmith.training.devices import Ranks
from bertsmith.training.optimizer import make_optimizer
from bertsmith.training.passes import Passes
from bertsmith.training.settings import Training
from bertsmith.training.study import Given, Work

CPU, SETTINGS, TOKENS, WORDS = torch.device("cpu"), Training(rate=1e-3, dropout=0.0), 200, 300


class Ragged:
    """Rows of any lengths in passes of one size; the places that are asked for become more."""

    names, weights, examples = ("loss",), {}, 0

    def __init__(self, is_sparse):
        self.is_sparse = is_sparse

    def work(self, step):
        draw = np.random.default_rng(step)
        lengths, longest = [], (32, 60, 32, 150)[step]  # the last is more than one program of a kernel holds
        while sum(lengths) < TOKENS:
            length = int(draw.integers(3, longest)) if lengths else longest
            lengths.append(min(length, TOKENS - sum(lengths)))
        ids, count = draw.integers(5, WORDS, TOKENS), 30 + 3 * step
        at = np.sort(draw.permutation(TOKENS)[:count])
        given = {"at": Given(at, "place", 0), "gold": Given(ids[at], "place", -100)}
        return Work(ids, np.zeros_like(ids), tuple(lengths), given, {"loss": float(count)})

    def losses(self, network, batch, given, work):
        hidden = network(batch.wanting(given["at"]) if self.is_sparse else batch)
        return {"loss": token_costs(network, hidden, batch, given["at"], given["gold"])[0]}


def make_network(preset):
    sizes = {"vocabulary": WORDS, "width": 64, "depth": 3, "heads": 2, "inner": 128}
    sizes |= {} if preset == "bert-base" else {"positions": 256, "window": 4, "global_every": 2}
    sizes |= dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), 0.0)
    return make_fresh(preset, ("mask",), sizes, {"pad": 0}, seed=1).network.train()


def run(kind, preset, is_sparse=False, steps=4, counter=None):
    network, study = make_network(preset), Ragged(is_sparse)
    passes = kind(network, study, SETTINGS, CPU, "fp32", Ranks(0, 1, CPU))
    optimizer = make_optimizer(network, SETTINGS)
    found = []
    for step in range(steps):
        passes.run([study.work(step)], step)
        passes.finish(optimizer)
        found.append((passes.report()[0]["loss"], counter.frame_count if counter else 0))
    return found


if __name__ == "__main__":
    plain = run(Passes, sys.argv[1])
    counter = CompileCounterWithBackend("aot_eager")
    compile_as_ever = torch.compile
    torch.compile = lambda function, **options: compile_as_ever(function, backend=counter, **options)
    attention._has_varlen = lambda q: True  # so that the kernels for a GPU are chosen
    compiled = run(TwinPasses, sys.argv[1], sys.argv[2] == "asked", counter=counter)
    for (one, _), (other, graphs) in zip(plain, compiled, strict=True):
        print(one, other, graphs)
