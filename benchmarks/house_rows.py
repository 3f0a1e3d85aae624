"""What is measured of the house model and its neighbours: tasks, their files and settings, and the marks to reach.

A row is data. The weights of the last epoch are scored, so that nothing but the rate is chosen on dev: each rate of a
task's grid with the first seed, the other seeds with the best of them. All models get the same grid, and each the
dropout that it was made with: an encoder that was pretrained without any loses most of what it knows by it (CoLA fell
from 46 to 34).
"""

from dataclasses import dataclass
from typing import Any

LAST = 1_000_000  # steps between evaluations: never before the end, no epoch is chosen on dev
GRID, SHORT_GRID = (3e-5, 6e-5, 1.2e-4), (7e-5, 1.5e-4)


@dataclass(frozen=True)
class Tuned:
    """A task that is fine-tuned."""

    measure: str  # the row of the table that it belongs to
    kind: str
    train: str  # below the folder of the data; `made/` is gathered from it
    dev: str
    metric: str
    examples: int  # about, in train: for the plan
    tokens: int  # about, in one example
    epochs: int
    batch: int = 32
    seeds: int = 5
    rates: tuple[float, ...] = GRID
    length: int | None = 256
    starts_from: str = ""  # another task, whose model is kept for it

    def settings(self, rate: float, seed: int) -> dict[str, Any]:
        given = {"rate": rate, "epochs": self.epochs, "batch": self.batch, "seed": seed, "metric": self.metric}
        given |= {"evaluate_every": LAST}
        return given | ({"length": self.length} if self.length else {})


@dataclass(frozen=True)
class Turn:
    """One fine-tuning."""

    model: str
    task: str
    rate: float
    seed: int

    @property
    def name(self) -> str:
        return f"{self.model} {self.task} {self.rate:g} seed {self.seed}"


def glue(name: str, kind: str, metric: str, examples: int, tokens: int, **changes: Any) -> Tuned:
    given = {"measure": "glue5", "epochs": 10, **changes}
    return Tuned(kind=kind, train=f"glue/{name}/train.tsv", dev=f"glue/{name}/dev.tsv", metric=metric,
                 examples=examples, tokens=tokens, **given)  # fmt: skip


# One rate more: by three the highest was the best for MRPC and STS-B.
WARM = {"measure": "glue5-warm", "starts_from": "nli", "rates": (*GRID, 2.4e-4)}
TASKS = {
    "cola": glue("CoLA", "classify", "matthews", 8_551, 11, epochs=6),
    "sst2": glue("SST-2", "classify", "accuracy", 67_349, 13, epochs=2, batch=64, seeds=3),
    "mrpc": glue("MRPC", "classify", "accuracy", 3_668, 53),
    "rte": glue("RTE", "classify", "accuracy", 2_490, 70),
    "stsb": glue("STS-B", "regress", "spearman", 5_749, 28),
    "nli": Tuned("nli", "classify", "made/nli.jsonl", "glue/MNLI/dev_matched.rebuilt.tsv", "accuracy", 399_032, 40,
                 2, 128, 1, SHORT_GRID),
    "rte-warm": glue("RTE", "classify", "accuracy", 2_490, 70, **WARM),
    "mrpc-warm": glue("MRPC", "classify", "accuracy", 3_668, 53, **WARM),
    "stsb-warm": glue("STS-B", "regress", "spearman", 5_749, 28, **WARM),
    "squad": Tuned("squad", "span", "made/squad.json", "squad/dev-v1.1.json", "f1", 65_935, 120, 3, 32, 3, SHORT_GRID,
                   None),
    "conll2003": Tuned("conll2003", "tag", "conll2003/eng.train", "conll2003/eng.testa", "f1", 14_041, 20, 5, 32, 5,
                       SHORT_GRID, None),
}  # fmt: skip
UNTRAINED = ("blimp", "fill-words")
MEASURES = ("glue5", "nli", "glue5-warm", "blimp", "squad", "conll2003", "fill-words")
FIVE = ("cola", "sst2", "mrpc", "rte", "stsb")
WARM_FIVE = ("cola", "sst2", "mrpc-warm", "rte-warm", "stsb-warm")

# The marks, in percent: floor, goal, moonshot.
MARKS = {
    "glue5": (71.5, 75.0, 77.6),
    "glue5-warm": (75.0, 78.0, 80.0),
    "blimp": (76.0, 80.0, 83.0),
    "squad": (66.0, 76.0, 82.0),
    "conll2003": (88.0, 91.0, 93.0),
    "nli": (70.0, 75.0, 78.0),
    "fill-words": (40.0, 48.0, 55.0),
}

# For the plan. On an H200, 10 runs of a 6 x 384 encoder side by side took 470 steps a second together
# (results/adapters-gpu-h200.json); a run costs about 6 seconds beside its steps (glue-gpu-h200.json), and BLiMP 51
# (objectives.json). An encoder of 8 x 640 is taken to need 1.8 times as long for a step.
STEPS_A_SECOND, RUN_SECONDS, LARGER = 470, 6.0, 1.8
TOKENS_A_SECOND = 1.5e6  # of long rows, all runs together
UNTRAINED_SECONDS = {"blimp": 51.0, "fill-words": 30.0}


def plan_seconds(task: Tuned, runs: int, jobs: int, larger: float = LARGER) -> float:
    steps = task.epochs * task.examples / task.batch
    step = max(1 / STEPS_A_SECOND, task.batch * task.tokens / TOKENS_A_SECOND)
    return runs * (steps * step * larger + RUN_SECONDS / min(jobs, runs))


def count_runs(task: Tuned) -> int:
    return len(task.rates) + task.seeds - 1
