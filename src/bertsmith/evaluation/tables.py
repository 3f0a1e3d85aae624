"""What many runs came to, for people: rows of a table, in percent, and the sentences that belong under it.

In: the plain JSON of `bertsmith.benchmark` and `bertsmith.sweep`. Out: rows of text, Markdown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.training.watching import show_time

Row = dict[str, str]
NUMBERS = ("median", "low – high", "sd", "runs")
CHOSEN = "Each run keeps the checkpoint with the best score on the development set, and is scored there."


def percent(value: float | None) -> str:
    """Two places; a dash where there is no such number."""
    return "–" if value is None or value != value else f"{100 * value:.2f}"


def spread_cells(spread: Mapping[str, Any], runs: int) -> Row:
    between = f"{percent(spread['low'])} – {percent(spread['high'])}"
    count = len(spread["values"])
    told = f"{count} of {runs}" if count < runs else str(count)
    return dict(zip(NUMBERS, (percent(spread["median"]), between, percent(spread["sd"]), told), strict=True))


def benchmark_rows(result: Mapping[str, Any]) -> list[Row]:
    """A row for each metric of each task, then the means; a task without any good run says why."""
    rows: list[Row] = []
    starts = {task["model"] for task in result["tasks"]}
    for task in result["tasks"]:
        remarks = [f"subset: {task['subset']}"] if task["subset"] else []
        remarks += [f"from {task['model']}"] if len(starts) > 1 else []
        errors = list(dict.fromkeys(run["error"] for run in task["runs"] if run["error"]))
        remarks += [f"failed: {error}" for error in errors]
        for metric, spread in task["metrics"].items():
            cells = spread_cells(spread, len(task["runs"]))
            rows.append({"task": task["title"], "metric": metric, **cells, "remark": "; ".join(remarks)})
        if not task["metrics"]:
            empty = dict.fromkeys(NUMBERS, "–")
            rows.append({"task": task["title"], "metric": "–", **empty, "remark": "; ".join(remarks)})
    for mean in result["means"]:
        kind = ("complete task" if mean["complete"] else "task") + "s" * (len(mean["tasks"]) != 1)
        cells = {"median": percent(mean["value"]), "low – high": "", "sd": "", "runs": ""}
        rows.append({"task": "mean", "metric": f"of {len(mean['tasks'])} {kind}", **cells,
                     "remark": ", ".join(mean["tasks"])})  # fmt: skip
    return rows


def benchmark_notes(result: Mapping[str, Any]) -> list[str]:
    seeds = result["seeds"]
    named = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds ({', '.join(map(str, seeds))})"
    notes = [f"All in percent, medians over {named}; low – high are the worst and the best run, sd their scatter."]
    notes.append(CHOSEN)
    if any(len(task["metrics"]) > 1 for task in result["tasks"]):
        notes.append("In the mean a task with two metrics counts with the mean of both.")
    notes += [f"{task['title']} is not in the mean." for task in result["tasks"] if not task["in_mean"]]
    return [*notes, tell_runs(result)]


def tell_runs(result: Mapping[str, Any]) -> str:
    failed = f", {result['failed']:,} of them failed" if result["failed"] else ""
    runs = result["runs"]
    return f"{runs:,} run{'s' * (runs != 1)} in {show_time(result['seconds'])}{failed}."


def sweep_rows(result: Mapping[str, Any]) -> list[Row]:
    """A row a combination, the best first."""
    rows = []
    for one in result["combinations"]:
        tried = {name: show_value(value) for name, value in one["settings"].items()}
        runs = len(one["runs"])
        cells = spread_cells(one["score"], runs) if one["score"] else dict.fromkeys(NUMBERS, "–")
        errors = list(dict.fromkeys(run["error"] for run in one["runs"] if run["error"]))
        rows.append({**tried, **cells, "remark": "; ".join(f"failed: {error}" for error in errors)})
    if not any(row["remark"] for row in rows):
        rows = [{name: cell for name, cell in row.items() if name != "remark"} for row in rows]
    return rows


def sweep_notes(result: Mapping[str, Any]) -> list[str]:
    best, tried = result["best"], len(result["combinations"])
    if best is None:
        return ["No run came to an end.", tell_runs(result)]
    alike = sum(one["score"] is not None and one["score"]["median"] == best["score"]["median"]
                for one in result["combinations"]) - 1  # fmt: skip
    chosen = ", ".join(f"{name} {show_value(value)}" for name, value in best["settings"].items())
    notes = [
        f"Best of {tried:,}: {chosen}, with {result['metric']} {percent(best['score']['median'])} on the development "
        f"set, in percent, the median over {len(result['seeds'])} seed{'s' * (len(result['seeds']) != 1)}"
        + (f"; {alike:,} other{'s have' if alike > 1 else ' has'} the same." if alike else "."),
        "The development set chose the checkpoint of each run and the best of all combinations, so this score is "
        "optimistic; a test set that chose nothing (--test) tells the true one.",
    ]
    if best.get("test"):
        name = result["metric"] if result["metric"] in best["test"] else next(iter(best["test"]))
        test = best["test"][name]
        notes[-1] = (
            f"On test, which chose nothing, its median run (seed {best['seed']}) has {name} "
            f"{percent(test['value'])} ({percent(test['low'])} to {percent(test['high'])}, n = {test['n']:,}); the "
            f"score on the development set, which chose it, is optimistic."
        )
    if best.get("command"):
        notes.append(f"to have that model: {best['command']}")
    return [*notes, tell_runs(result)]


def show_value(value: Any) -> str:
    """As one would type it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_markdown(rows: Sequence[Row]) -> str:
    """Numbers to the right."""
    names = list(rows[0]) if rows else []
    marks = ["---:" if name in NUMBERS else "---" for name in names]
    lines = [names, marks, *([cell.replace("|", "\\|") for cell in row.values()] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
