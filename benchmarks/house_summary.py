"""The rows of the house model's table from its runs: medians over seeds, means of tasks, and their intervals."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from house_rows import FIVE, UNTRAINED, WARM_FIVE, Turn

from bertsmith.evaluation.spreading import middle_run, spread_of

if TYPE_CHECKING:
    from house import House


def summarize(house: "House") -> dict[str, Any]:
    """For each model of the file the rows of the table, in percent."""
    models = dict.fromkeys([*(row["model"] for row in house.figures.rows.values()), *house.options.folders])
    return {model: dict(sum_up(house, model)) for model in models}


def sum_up(house: "House", model: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tasks = {name: told for name in house.tasks if (told := tell_task(house, model, name)) is not None}
    for measure, names in (("glue5", FIVE), ("glue5-warm", WARM_FIVE)):
        some = {name: tasks[name] for name in names if name in tasks}
        if measure == "glue5-warm" and not any(name.endswith("-warm") for name in some):
            continue
        if some:
            yield measure, take_mean(some, names)
    for measure in ("nli", "squad", "conll2003"):
        if measure in tasks:
            yield measure, tasks[measure]
    for measure in UNTRAINED:
        row = house.figures.rows.get(f"{model} {measure}", {})
        if "cannot" in row:
            yield measure, {"cannot": row["cannot"]}
        elif "accuracy" in row:
            one = row["accuracy"]["all"] if measure == "fill-words" else row
            value, low, high = one["value" if measure == "fill-words" else "accuracy"], one["low"], one["high"]
            told = {"value": 100 * value, "low": 100 * low, "high": 100 * high}
            if measure == "fill-words":
                told |= {name: 100 * row["accuracy"][name]["value"] for name in ("content", "function")
                         if name in row["accuracy"]}  # fmt: skip
            yield measure, told


def take_mean(tasks: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Of the tasks of these names, once all are there."""
    if set(tasks) != set(names):
        return {"value": None, "tasks": tasks}
    value = fmean(one["value"] for one in tasks.values())
    # Dev sets are independent, so the widths of their intervals add up by their squares.
    half = math.sqrt(sum(((one["high"] - one["low"]) / 2) ** 2 for one in tasks.values())) / len(tasks)
    return {"value": value, "low": value - half, "high": value + half, "tasks": tasks}


def take_median(runs: Sequence[dict[str, float]], metric: str) -> dict[str, Any]:
    """Over seeds, in percent; the interval is that of the run in the middle."""
    values = [100 * one["value"] for one in runs]
    spread, middle = spread_of(values), runs[middle_run(values)]
    assert spread is not None
    return {"value": spread.median, "low": 100 * middle["low"], "high": 100 * middle["high"], "metric": metric,
            "seeds": len(values), "scores": [round(value, 2) for value in values]}  # fmt: skip


def tell_task(house: "House", model: str, name: str) -> dict[str, Any] | None:
    """The median over the seeds at the chosen rate."""
    task, rate = house.tasks[name], house.best_rate(model, name)
    if rate is None:
        return None
    rows = [house.figures.rows.get(Turn(model, name, rate, seed).name, {}) for seed in range(1, task.seeds + 1)]
    found = [row["metrics"][task.metric] for row in rows if "metrics" in row]
    return {**take_median(found, task.metric), "of_seeds": task.seeds, "rate": rate, "rates": list(task.rates),
            "epochs": task.epochs, "batch": task.batch}  # fmt: skip
