"""Facts in words that the page and the card share: what kind of run it was, how fast, with which settings."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from bertsmith.data.findings import counted
from bertsmith.evaluation.report.facts import Lengths, RunFacts
from bertsmith.evaluation.report.numbers import (
    is_number,
    show_bytes,
    show_interval,
    show_number,
    show_score,
    show_seconds,
    show_share,
)

LONGEST = 40  # items of a list
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]*[A-Za-z0-9]")
MATCHES = {"embed": "Vectors of texts that lie near where texts belong together", "rerank": "Ranking texts for a query"}


def name_task(facts: RunFacts) -> str:
    if facts.task == "several":
        return "Several tasks on one encoder"
    if facts.task in ("mask", "pretrain"):
        return "Pretraining"
    if facts.task == "tag":
        return "Tagging words"
    if facts.task == "span":
        return "Answering questions from a text"
    if facts.task == "choose":
        return "Choosing what goes with a text"
    if facts.task in MATCHES:
        return MATCHES[facts.task]
    if facts.task not in ("classify", "regress"):
        return f"A task of its own: {facts.task}" if facts.task else "A task"
    what = "pairs of texts" if facts.pairs else "texts"
    if facts.task == "regress":
        return f"A number for {what}"
    return f"Classifying {what}, several labels each" if facts.several else f"Classifying {what}"


def name_run(facts: RunFacts) -> str:
    return facts.title or name_task(facts)


MEMBER_HEAD = ("Member", "Task", "Weight", "Share of steps", "Train", "Dev", "Test", "Scored on", "Metric", "Value",
               "Interval")  # fmt: skip
MEMBER_NUMBERS = (2, 3, 4, 5, 6, 9, 10)


def describe_members(facts: RunFacts) -> list[list[str]]:
    """A row each; one that is not scored, as masked tokens are not, has no metric."""
    return [
        [
            one["name"], one["task"], show_number(one["weight"]), show_share(one["share"], 1.0),
            *(f"{one.get(side, 0):,}" if one.get(side) else "" for side in ("train", "dev", "test")),
            one.get("split", ""), one.get("metric", ""), show_score(one["value"]) if one.get("metric") else "",
            show_interval(one.get("low"), one.get("high")),
        ]
        for one in facts.members
    ]  # fmt: skip


def main_metrics(facts: RunFacts) -> list[str]:
    """Of several tasks: the mean, and the main metric of each."""
    return ["mean", *(f"{one['name']}/{one['metric']}" for one in facts.members if one.get("metric"))]


def describe_speed(facts: RunFacts) -> dict[str, str]:
    speed = facts.speed
    seconds, memory = speed.get("seconds"), speed.get("peak_memory")
    examples, tokens = speed.get("examples_per_second"), speed.get("tokens_per_second")
    used, peak = speed.get("utilization"), speed.get("peak")
    since = f" since step {speed['since']:,}, where the run was taken up again" if speed.get("since") else ""
    found = {
        "Best step": f"{facts.best_step:,}" if facts.best_step is not None else "",
        "Device": speed.get("device") or "",
        "Wall time": f"{show_seconds(seconds)}{since}" if is_number(seconds) else "",
        "Examples a second": show_number(examples) if is_number(examples) else "",
        "Tokens a second": show_number(tokens) if is_number(tokens) else "",
        "MFU": f"{show_share(used, 1.0)} of {peak or 'the peak'}" if is_number(used) else "",
        "Peak memory": show_bytes(memory) if is_number(memory) else "",
    }
    return {name: value for name, value in found.items() if value}


def describe_cutting(lengths: Lengths) -> str:
    """How many examples were too long, and what became of them; nothing where all fit."""
    cut, n = lengths.get("examples_cut", 0), lengths.get("examples", 0) or sum(lengths.get("counts", []))
    if not cut and not lengths.get("tokens_cut"):
        return ""
    told = f"{cut:,} of {counted(n, 'example')} ({show_share(cut, n)})" if n else counted(cut, "example")
    are = "is" if cut == 1 else "are"
    limit = f"{lengths['limit']:,} tokens" if lengths.get("limit") else "the limit"
    policy, lost = lengths.get("policy", ""), lengths.get("tokens_cut", 0)
    told += f" {are} longer than {limit}"
    if policy == "windows" and not lost:
        return f"{told} and {are} read in windows; nothing is cut."
    part = f" ({show_share(lost, lengths['tokens'])})" if lengths.get("tokens") else ""
    unseen = f": {counted(lost, 'token')}{part} {'is' if lost == 1 else 'are'} not seen" if lost else ""
    return f"{told} and {are} cut{f' (policy {policy})' if policy else ''}{unseen}."


def is_on_hub(base: str) -> bool:
    """Whether this reads as a name on the hub; a folder that is here may look the same."""
    return bool(HUB_NAME.fullmatch(base)) and not Path(base).exists()


def last_name(path: str) -> str:
    """A file's or folder's own name: where it lay on somebody's disk is nobody's business."""
    return PurePosixPath(PureWindowsPath(path).as_posix()).name


def flatten(values: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Names and values as one reads them; a table in a table has dotted names."""
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found += flatten(value, f"{prefix}{name}.")
        else:
            found.append((prefix + str(name), say(value)))
    return found


def say(value: Any) -> str:
    if value is None or value == {} or value == []:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown = ", ".join(say(one) for one in value[:LONGEST])
        return f"{shown} … ({len(value):,} in all)" if len(value) > LONGEST else shown
    return str(value)
