"""Run by test_graphs.py in a process of its own, as Triton reads how it is to run when it is imported.

    python graphs_script.py

Compiled passes as a GPU makes them, on the CPU: prints for each case how many graphs were compiled up to each step.
"""

import json
from functools import partial

from compiled_script import CPU, SETTINGS, WORDS, CompileCounterWithBackend, Given, Ragged, Work, attention, np, torch

from bertsmith.models.fresh import make_fresh
from bertsmith.training.compiled import TwinPasses
from bertsmith.training.devices import Ranks
from bertsmith.training.optimizer import make_optimizer

TOKENS = 200


@torch.library.custom_op("tests::flash", mutates_args=())
def flash(q: torch.Tensor, bounds: torch.Tensor, longest: int) -> torch.Tensor:
    """Stands for the kernel that a CPU does not have."""
    return q.clone()


flash.register_fake(lambda q, bounds, longest: torch.empty_like(q))
flash.register_autograd(lambda ctx, grad: (grad, None, None))


class Rows(Ragged):
    def __init__(self, watches):
        super().__init__(is_sparse=False)
        self.watches = watches

    def work(self, step):
        draw, lengths = np.random.default_rng(step), []
        while sum(lengths) < TOKENS:
            lengths.append(min(int(draw.integers(3, 60)), TOKENS - sum(lengths)))
        ids, at = draw.integers(5, WORDS, TOKENS), np.sort(draw.permutation(TOKENS)[: 30 + step])
        given = {"at": Given(at, "place", 0), "gold": Given(ids[at], "place", -100)}
        return Work(ids, np.zeros_like(ids), tuple(lengths), given, {"loss": float(len(at))})

    def losses(self, network, batch, given, work):
        return super().losses(network, batch.watching(self.watches), given, work)


def run(counter, width=64, heads=2, watches=False, depth=3, steps=12):
    sizes = {"vocabulary": WORDS, "width": width, "depth": depth, "heads": heads, "inner": 128}
    sizes |= dict.fromkeys(("dropout", "attention_dropout", "head_dropout"), 0.0)
    network = make_fresh("bert-base", ("mask",), sizes, {"pad": 0}, seed=1).network.train()
    study = Rows(watches)
    passes = TwinPasses(network, study, SETTINGS, CPU, "fp32", Ranks(0, 1, CPU))
    optimizer = make_optimizer(network, SETTINGS)
    for step in range(steps):
        passes.run([study.work(step)], step)
        passes.finish(optimizer)
        yield counter.frame_count


def run_sizes(counter):
    """More networks than the compiler would make graphs of one function for, were it not told to."""
    torch._dynamo.config.recompile_limit = 3
    for number in range(5):
        yield from run(counter, width=32 * (number + 1), heads=number + 1, depth=2, steps=1)


CASES = {
    "heads": partial(run, heads=4),  # of a size that our kernels do not know
    "watched": partial(run, watches=True, depth=12),
    "sizes": run_sizes,
}


def count_graphs(case, counter):
    """As in a process that has compiled nothing yet."""
    torch._dynamo.reset()
    before = counter.frame_count
    return [found - before for found in case(counter)]


def attend(q, k, v, bounds, _, longest, *more, **windows):
    return (flash(q + k + v, bounds, longest),)


if __name__ == "__main__":
    counter, compile_as_ever = CompileCounterWithBackend("aot_eager"), torch.compile
    torch.compile = lambda function, **options: compile_as_ever(function, backend=counter, **options)
    attention._has_varlen = lambda q: True
    attention._flash = attend
    print(json.dumps({name: count_graphs(case, counter) for name, case in CASES.items()}))
