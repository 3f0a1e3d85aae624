"""The model card: `README.md` with the front matter that the Hugging Face hub reads."""

import json
import re
from collections.abc import Sequence
from typing import Any

from bertsmith.evaluation.report.caveats import find_caveats
from bertsmith.evaluation.report.excerpts import cut_name
from bertsmith.evaluation.report.facts import RunFacts
from bertsmith.evaluation.report.markup import plain, quote, visible
from bertsmith.evaluation.report.numbers import is_number, show_interval, show_score
from bertsmith.evaluation.report.usage import tell_difference, use_bertsmith, use_command_line, use_transformers
from bertsmith.evaluation.report.wording import (
    MEMBER_HEAD,
    MEMBER_NUMBERS,
    describe_members,
    describe_speed,
    flatten,
    is_on_hub,
    last_name,
    name_run,
    name_task,
)

PIPELINES = {
    "mask": "fill-mask",
    "classify": "text-classification",
    "regress": "text-classification",
    "tag": "token-classification",
    "span": "question-answering",
    "choose": "multiple-choice",
    "embed": "sentence-similarity",
    "rerank": "text-ranking",
}
# What is in a metric's name here: its name on the hub.
HUB_METRICS = {"f1": "f1", "accuracy": "accuracy", "matthews": "matthews_correlation", "exact": "exact_match",
               "pearson": "pearsonr", "spearman": "spearmanr"}  # fmt: skip
SHOWN = 80  # labels
PICTURE = "curves.svg"  # of a pretraining, beside the card


def make_card(facts: RunFacts) -> str:
    parts = [
        f"# {plain(name_run(facts))}",
        _introduce(facts),
        _section("Members", _rows(MEMBER_HEAD, describe_members(facts), MEMBER_NUMBERS)),
        _section("Scores", _scores(facts)),
        _section("Limits", "\n".join(f"- {plain(sentence)}" for sentence in find_caveats(facts))),
        _section("Labels", _labels(facts)),
        _section("How to use it", _use(facts)),
        _section("Data", _data(facts)),
        _section("Settings", _rows(["Setting", "Value"], flatten(facts.settings))),
        _section("Training", _training(facts)),
        _section("Run it again", _code("sh", visible(facts.command)) if facts.command else ""),
    ]
    return make_front(facts) + "\n".join(part + "\n" for part in parts if part)


def make_front(facts: RunFacts) -> str:
    """The front matter. Texts are written as JSON strings, which YAML reads as they are."""
    is_plain = facts.settings.get("features", "none") in ("none", "last") and not facts.settings.get("recurrent")
    pipeline = PIPELINES.get(facts.task) if is_plain else None  # a head on other features has no class elsewhere
    library = ("peft" if facts.settings.get("lora") else "transformers") if is_plain else "bertsmith"
    front = ["---", f"library_name: {library}"]
    front += [f"pipeline_tag: {pipeline}"] if pipeline else []
    front += [f"base_model: {quote(facts.base)}"] if is_on_hub(facts.base) else []
    front += ["tags:", "- bertsmith", *([f"- {pipeline}"] if pipeline else [])]
    names = dict.fromkeys(hub_metric(name.rpartition("/")[2]) for name in facts.main)
    front += ["metrics:", *(f"- {quote(name)}" for name in names)] if names else []
    # The index has one task a result, and a mix none of its own.
    results = [_result(facts, split, pipeline or facts.task) for split in facts.metrics if not facts.members]
    results = [lines for lines in results if lines]
    if results:
        front += ["model-index:", f"- name: {quote(name_run(facts))}", "  results:"]
        front += [line for lines in results for line in lines]
    return "\n".join([*front, "---", "", ""])


def _result(facts: RunFacts, split: str, pipeline: str) -> list[str]:
    """One entry of the index: the scores on one split."""
    values = [(name, score["value"]) for name, score in facts.metrics[split].items() if is_number(score.get("value"))]
    source = last_name(facts.data.get("files", {}).get(split, "")) or split
    top = ["  - task:", f"      type: {pipeline}", "    dataset:", f"      name: {quote(source)}", "      type: custom"]
    lines = [*top, f"      split: {quote(split)}", "    metrics:"]
    for name, value in values:
        lines += [f"    - type: {quote(hub_metric(name))}", f"      name: {quote(name)}"]
        lines += [f"      value: {json.dumps(round(float(value), 6))}"]
    return lines if values else []


def hub_metric(name: str) -> str:
    return next((theirs for part, theirs in HUB_METRICS.items() if part in name.lower()), name)


def _section(heading: str, inside: str) -> str:
    return f"## {heading}\n\n{inside}" if inside else ""


def _code(language: str, text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _rows(head: Sequence[str], rows: Sequence[Sequence[Any]], numbers: Sequence[int] = ()) -> str:
    if not rows:
        return ""
    rule = ["---:" if i in numbers else "---" for i in range(len(head))]
    lines = [head, rule, *([plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _introduce(facts: RunFacts) -> str:
    base = facts.base if is_on_hub(facts.base) else last_name(facts.base)
    how = "pretrained further" if facts.task in ("mask", "pretrain") else "fine-tuned"
    told = f"{name_task(facts)}" + (f": {plain(base)}, {how}" if base else "")
    told += " with bertsmith" + (f" {plain(facts.version)}" if facts.version else "")
    told += f" on {plain(facts.date)}" if facts.date else ""
    return f"{told}. The whole report, with charts and errors, is in `report.html`; the numbers are in `metrics.json`."


def _scores(facts: RunFacts) -> str:
    rows = [
        [split, name, show_score(score.get("value")), show_interval(score.get("low"), score.get("high")),
         f"{score['n']:,}" if score.get("n") is not None else ""]
        for split, metrics in facts.metrics.items()
        for name, score in metrics.items()
    ]  # fmt: skip
    return _rows(["Split", "Metric", "Value", f"{100 * facts.level:g} % interval", "Examples"], rows, (2, 3, 4))


def _training(facts: RunFacts) -> str:
    rows = _rows(["", ""], list(describe_speed(facts).items()))
    return f"![The loss, and what is known of held-out text, over steps]({PICTURE})\n\n{rows}" if facts.tokens else rows


def _labels(facts: RunFacts) -> str:
    """The labels by name; with their scores where they are known, which for tags are those of the kinds of entities."""
    rows = [
        [
            cut_name(row["label"]),
            *(show_score(row[key], 3) for key in ("precision", "recall", "f1")),
            f"{row['support']:,}",
        ]
        for row in facts.per_label[:SHOWN]
    ]
    scores = _rows(["Label", "Precision", "Recall", "F1", "Examples"], rows, (1, 2, 3, 4))
    scores += f"\n\n{len(facts.per_label) - SHOWN} more are in `metrics.json`." if len(facts.per_label) > SHOWN else ""
    known = {row["label"] for row in facts.per_label}
    if all(label in known for label in facts.labels):
        return scores
    left = f" and {len(facts.labels) - SHOWN} more" if len(facts.labels) > SHOWN else ""
    names = "It answers with: " + ", ".join(plain(cut_name(label)) for label in facts.labels[:SHOWN]) + left + "."
    return f"{names}\n\n{scores}" if scores else names


def _use(facts: RunFacts) -> str:
    difference = tell_difference(facts)
    ours = f"With bertsmith:\n\n{_code('python', use_bertsmith(facts))}\n\n{_code('sh', use_command_line(facts))}"
    other = use_transformers(facts)
    library = "sentence-transformers" if "sentence_transformers" in other else "transformers"
    library += " and peft" * bool(facts.settings.get("lora"))
    theirs = f"With {library}:\n\n{_code('python', other)}" if other else ""
    return "\n\n".join(part for part in (ours, theirs, difference if other else "") if part)


def _data(facts: RunFacts) -> str:
    data = facts.data
    counts, files = data.get("counts", {}), data.get("files", {})
    splits = dict.fromkeys([*counts, *files])
    known = {split: f"{counts[split]:,}" if split in counts else "" for split in splits}
    rows = [[split, count, last_name(files.get(split, ""))] for split, count in known.items()]
    found = [f"- {plain(finding.get('sentence', ''))}" for finding in data.get("findings", [])]
    told = f"The check of the data found:\n\n{chr(10).join(found)}" if found else ""
    facts_table = _rows(["", ""], flatten(data.get("facts", {})))
    return "\n\n".join(part for part in (_rows(["Split", "Examples", "From"], rows, (1,)), facts_table, told) if part)
