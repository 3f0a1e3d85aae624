"""Pretrains for a minute on a made clock, slower than planned: alone, or in the processes that torchrun started.

python deadline_ranks.py CORPUS OUT    in OUT a run for each way of sharing the weights, and what each process did
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from deadline_made import Clock
from pretraining_made import pretrain

SETTINGS: dict[str, Any] = {
    "minutes": 1.0, "dropout": 0.0, "eps": 1e-4, "clip": 0.0, "keep_checkpoints": True, "log_every": 1,
    "evaluate_every": 20,
}  # fmt: skip


def train(corpus: Path, out: Path, replace: Any = setattr, **more: Any) -> dict[str, Any]:
    clock = Clock(2.0)
    if os.environ.get("RANK", "0") != "0":
        clock.seconds = 0.1  # another process may think that there is time enough: it is not asked
    clock.put_in(replace)
    said: list[str] = []
    run = pretrain(corpus, out, "bert", say=said.append, **SETTINGS, **more)
    return {"steps": run.outcome.steps, "time": clock.time, "said": said}


if __name__ == "__main__":
    from bertsmith.training.devices import leave
    from bertsmith.training.pretraining import PretrainingStudy

    works = PretrainingStudy.works
    for spread in ("ddp", "fsdp"):
        PretrainingStudy.works = works  # type: ignore[method-assign]
        told = train(Path(sys.argv[1]), Path(sys.argv[2]) / spread, spread=spread)
        name = f"{spread}-{os.environ.get('RANK', '0')}.json"
        (Path(sys.argv[2]) / name).write_text(json.dumps(told))
    leave()
