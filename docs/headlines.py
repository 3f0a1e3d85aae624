"""The table of speeds on README.md: what each result comes down to. Files of benchmarks/results in, Markdown out.

A row has our figure, what people would use instead and its fastest form that was tried, so that no ratio flatters.
"""

from collections.abc import Iterator
from typing import Any

from tables import read_results, table

H200, CPU = "H200", "2 CPU cores"
Row = list[str]


def headlines() -> str:
    rows = [*pretraining(), *real_text(), *fine_tuning(), *vectors(), *serving(), *tokenizer()]
    head = ["", "on", "bertsmith", "what one would use instead", "its fastest form", "command"]
    return table(head, rows) if rows else ""


def beside(ours: float, its: float, name: str, unit: str = "", lower: bool = False) -> str:
    """What the other has, and how many times as fast ours is."""
    times = its / ours if lower else ours / its
    return f"{name}: {spell(its)}{unit}, **{times:.2f} ×**"


def spell(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def command(found: dict[str, Any], section: str) -> str:
    """The script, and where its flags, figures and the others stand."""
    program = " ".join((found.get("commands") or [found["command"]])[0].split()[:2])
    return f"[`{program} …`](docs/results.md#{section})"


def pretraining() -> Iterator[Row]:
    for found in read_results("pretraining-speed*.json"):
        rates = {(row["contestant"], row["length"]): row["tokens_per_second"] for row in found["rows"]}
        for length in sorted({length for name, length in rates if name == "ours"}):
            ours = rates["ours", length]
            usual = max(rates["peer-autocast", length], rates["peer-bf16", length])
            yield [
                f"pretraining BERT-base, rows of {length}, tokens/s", H200, spell(ours),
                beside(ours, usual, "transformers compiled"),
                beside(ours, rates["peer-bf16-mask", length], "with a mask that hides nothing"),
                command(found, "pretraining-speed"),
            ]  # fmt: skip


def real_text() -> Iterator[Row]:
    for found in read_results("pretraining-text*.json"):
        for length in sorted({row["length"] for row in found["table"]}):
            rates = {row["kind"] + row["lines"]: row["tokens_per_second"] for row in found["table"]
                     if row["length"] == length}  # fmt: skip
            ours = rates["ours"]
            yield [
                f"the same on documents as they are, rows to {length}, real tokens/s", H200, spell(ours),
                beside(ours, next(rate for name, rate in rates.items() if name.endswith("lines")), "a line a row"),
                beside(ours, rates["grouped-mask"], "full rows, with such a mask"),
                command(found, "pretraining-on-real-text"),
            ]  # fmt: skip


def fine_tuning() -> Iterator[Row]:
    for found in read_results("finetune-speed-*.json"):
        for task, told in (("sst2", "sentences (SST-2)"), ("conll", "tags (CoNLL-2003)"), ("squad", "answers (SQuAD)")):
            rates = {row["contestant"]: row["examples_per_second"] for row in found["table"] if row["task"] == task}
            if not rates:
                continue
            ours = rates.pop("bertsmith")
            best = max(rates, key=lambda name: rates[name])
            yield [
                f"fine-tuning 6 × 384 on {told}, examples/s", name_machine(found), spell(ours),
                beside(ours, rates["trainer"], "Trainer"), beside(ours, rates[best], f"`{best}`"),
                command(found, "fine-tuning-speed"),
            ]  # fmt: skip


def vectors() -> Iterator[Row]:
    for found in read_results("inference-*.json"):
        for shape, told in (("minilm", "6 × 384"), ("base", "BERT-base")):
            times = {row["contestant"]: row["bulk_s"] for row in found["rows"]
                     if row["shape"] == shape and row["contestant"] != "ceiling"}  # fmt: skip
            if not times:
                continue
            ours = times.pop("bertsmith")
            usual = "sentence-transformers" if "sentence-transformers" in times else "transformers"
            best = min(times, key=lambda name: times[name])
            yield [
                f"vectors of {found['texts']:,} texts, {told}, seconds", name_machine(found), spell(ours),
                beside(ours, times[usual], usual, lower=True), beside(ours, times[best], f"`{best}`", lower=True),
                command(found, "inference"),
            ]  # fmt: skip


def serving() -> Iterator[Row]:
    for found in read_results("serving-cpu.json"):
        kept = {row["contestant"]: row["best"] for row in found["table"] if row["best"]}
        ours = max(rate for name, rate in kept.items() if name.startswith("bertsmith"))
        infinity = max(rate for name, rate in kept.items() if name.startswith("infinity"))
        yield [
            f"requests/s served with p99 within {found['target_ms']:.0f} ms", CPU, spell(ours),
            beside(ours, kept["plain, async"], "FastAPI and sentence-transformers"),
            beside(ours, infinity, "infinity"), command(found, "serving"),
        ]  # fmt: skip


def tokenizer() -> Iterator[Row]:
    for found in read_results("tokenizer-*.json"):
        seconds = {row["trainer"]: row["threads 2"]["seconds"] for row in found["rows"] if row["case"] == "wordpiece"}
        yield [
            f"a WordPiece vocabulary from {found['megabytes']:.0f} MB, seconds", CPU, spell(seconds["bertsmith"]),
            beside(seconds["bertsmith"], seconds["tokenizers"], "tokenizers", lower=True), "",
            command(found, "tokenizers"),
        ]  # fmt: skip


def name_machine(found: dict[str, Any]) -> str:
    return H200 if "H200" in found["about"] else CPU
