"""Pretraining on rows of which some are bad, in this process, in one that kills itself, or in several at once."""

import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from pretraining_made import SMALL, pretrain
from ready import Starter

from bertsmith.errors import BertsmithError
from bertsmith.training.devices import leave, seed_of, whole
from bertsmith.training.loop import Loop, Watcher
from bertsmith.training.pretraining import PretrainingStudy

PASSES = SMALL["tokens"] // SMALL["pass_tokens"]  # in a step
LONG: dict[str, Any] = {
    "max_steps": 40, "evaluate_every": 10, "log_every": 1, "keep_checkpoints": True, "warmup": 0.1,
}  # fmt: skip


@contextlib.contextmanager
def poison(bad: Mapping[int, float], always_from: float = 2.0) -> Iterator[None]:
    """step -> what the loss of its planned first pass is multiplied by; from a share of the run on, NaN for all."""
    plain = PretrainingStudy.losses
    seeds = {seed_of(42, step, 0, PASSES * step): times for step, times in bad.items()}

    def losses(self: PretrainingStudy, network: Any, batch: Any, given: Any, work: Any) -> Any:
        times = float("nan") if work.facts["done"] >= always_from else seeds.get(work.seed, 1.0)
        return {name: loss * times for name, loss in plain(self, network, batch, given, work).items()}

    PretrainingStudy.losses = losses  # type: ignore[method-assign]
    try:
        yield
    finally:
        PretrainingStudy.losses = plain  # type: ignore[method-assign]


class Kill(Watcher):
    """What the system does to a process that it wants gone."""

    def __init__(self, step: int, after: int) -> None:
        self.step, self.after, self.backs = step, after, 0  # not before the run went back so often

    def went_back(self, step: int, sentence: str) -> None:
        self.backs += 1

    def stepped(self, step: int, record: Any, speed: Any) -> None:
        if step == self.step and self.backs >= self.after:
            os.kill(os.getpid(), signal.SIGKILL)


def run_killed(
    starter: Starter, corpus: Path, out: Path, step: int, bad: Mapping[int, float], after: int = 0, **settings: Any
) -> None:
    """In a process of its own, which is killed at that step."""
    asked = {"step": step, "after": after, "bad": dict(bad), "settings": settings}
    ran = starter.run(["training.poisoned", corpus, out, json.dumps(asked)], corpus)
    assert ran.returncode == -signal.SIGKILL, ran.stderr[-3000:]


def run_ranks(
    starter: Starter, corpus: Path, folder: Path, runs: Mapping[str, Mapping[str, Any]], bad: Mapping[int, float]
) -> str:
    """With two processes, name -> settings, all in one start; each leaves a digest of what it has learned.

    What went wrong is given back.
    """
    words: list[str] = []
    for name, more in runs.items():
        words += [str(folder / name), json.dumps({"step": -1, "after": 0, "bad": dict(bad), "settings": more})]
    ran = starter.run_ranks(["training.poisoned", corpus, *words], corpus)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def _main(corpus: Path, out: Path, asked: dict[str, Any]) -> None:
    loops: list[Loop] = []
    plain = Loop.run

    def run(self: Loop) -> Any:
        loops.append(self)
        return plain(self)

    Loop.run = run  # type: ignore[method-assign]
    try:
        with poison({int(step): times for step, times in asked["bad"].items()}):
            pretrain(corpus, out, **asked["settings"], watchers=[Kill(asked["step"], asked["after"])])
    except BertsmithError as error:
        print(error)
        return
    finally:
        Loop.run = plain  # type: ignore[method-assign]
    digest = hashlib.sha256()
    for tensor in loops[-1].network.state_dict().values():
        digest.update(whole(tensor).numpy().tobytes())
    (out / f"rank-{os.environ.get('RANK', '0')}").write_text(digest.hexdigest())


if __name__ == "__main__":
    for one, asked in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
        _main(Path(sys.argv[1]), Path(one), json.loads(asked))
    leave()
