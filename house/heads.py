"""What the shipped model does beside filling masks: one adapter a job, or all jobs on one encoder, whichever is better.

In: the pretrained encoder and the labelled sets. Out: a folder a head, and a file of figures that compares the ways:
`lora` (a small adapter each), `together` (one encoder learns all of them at once, and masked words so that it goes on
filling masks), `full` (a whole model each: what an adapter is measured against, never shipped). CoNLL-2003 is not among
the sets.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parent))
from gathering import (
    Records,
    ask_elsewhere,
    gather_follows,
    gather_nli,
    gather_questions,
    gather_search,
    gather_sentiment,
    make_once,
    rename,
    shorten,
    shuffle,
    write_records,
)
from naming import gather_names, read_tagged
from pretrained import Figures

import bertsmith
from bertsmith.many import Done, Job, run_job, share_threads
from bertsmith.workers import Lost, Workers

WAYS = ("lora", "together", "full")
BESIDE = "beside"  # an adapter on the encoder that the others share
SENTENCES = 45_000  # with or without names, beside WikiANN's 20,000 examples
APART = 2_000  # pairs that are set apart for measuring, where a set has no dev file


@dataclass(frozen=True)
class Head:
    kind: str
    train: str  # below the folder of the data; `made/` is gathered from it
    dev: str
    metric: str
    jobs: tuple[str, ...]  # that it is the default for, as `bertsmith export --default` calls them
    epochs: int
    batch: int = 32
    test: str = ""
    rate: float = 1e-4  # of the whole encoder
    lora_rate: float = 1e-3
    after: str = ""  # the head whose adapter its own goes on from
    more: dict[str, Any] = field(default_factory=dict)

    def files(self, data: Path, made: Path) -> dict[str, str]:
        sides = {"train": self.train, "dev": self.dev, "test": self.test}
        return {side: str((made if name.startswith("made/") else data) / name.removeprefix("made/"))
                for side, name in sides.items() if name}  # fmt: skip


HEADS = {
    # About 40 seconds each on an H200 if they run side by side, but for nli and answers: 120.
    "sentiment": Head("classify", "made/sentiment.jsonl", "made/sentiment-dev.jsonl", "accuracy", ("classify",), 3, 64,
                      more={"length": 256, "truncate": "head+tail"}),
    "nli": Head("classify", "made/nli-shipped.jsonl", "glue/MNLI/dev_matched.rebuilt.tsv", "accuracy",
                ("classify-pair", "zero-shot"), 2, 128, more={"length": 256}),
    # What entails what is half of how alike: from a fresh adapter it reached 84.8 in 8 epochs.
    "similarity": Head("regress", "glue/STS-B/train.tsv", "glue/STS-B/dev.tsv", "pearson", ("score",), 3,
                       lora_rate=5e-4, after="nli", more={"length": 128, "swap": True}),
    # One question in ten of its dev set is asked where its answer is not, by which the bar of an answer is chosen. The
    # one that suits SQuAD 2.0, made to mislead, withheld two of three answers (36.4 of F1 on SQuAD 1.1).
    "answers": Head("span", "made/answers.json", "made/answers-dev.json", "f1", ("answer",), 3,
                    test="squad/dev-v1.1.json"),
    "names": Head("tag", "made/names-train.conll", "made/names-dev.conll", "f1", ("tag",), 4,
                  test="made/names-test.conll", rate=2e-4, lora_rate=2e-3),
    "follows": Head("classify", "made/follows.jsonl", "made/follows-dev.jsonl", "accuracy", ("follows",), 2, 64,
                    more={"length": 128}),
    "search": Head("embed", "made/search.jsonl", "made/search-dev.jsonl", "mrr@10", ("embed",), 2, 128,
                   more={"length": 128}),
}  # fmt: skip
TOGETHER = [name for name, head in HEADS.items() if head.kind != "embed"]  # vectors need steps of their own kind
ALONE = [name for name in HEADS if name not in TOGETHER]
WORDS = 0.2  # the weight of masked words beside the tasks


def gather_all(data: Path, made: Path, texts: Sequence[Path]) -> None:
    """Every file that is made of several sets."""
    make_once(made / "nli-shipped.jsonl", lambda: gather_nli(data, shipped=True))
    make_once(made / "answers.json", lambda: gather_questions(data, shipped=True, unanswerable=True))
    make_once(made / "answers-dev.json", lambda: add_elsewhere(data / "squad/dev-v1.1.json"))
    make_once(made / "sentiment.jsonl", lambda: gather_sentiment(data))
    make_once(made / "sentiment-dev.jsonl", lambda: name_labels(data / "glue/SST-2/dev.tsv"))
    for side in ("train", "dev", "test"):
        asked = list_questions(data) if side == "train" else []
        write_names(made / f"names-{side}.conll", data / "wikiann_en" / side, texts if side == "train" else (), asked)
    if not (made / "search.jsonl").exists():
        part(made / "search.jsonl", *gather_search(data, shipped=True))
    if not (made / "follows.jsonl").exists():
        if not texts:
            sys.exit("follows needs raw text once (--text FILE), or the file made/follows.jsonl.")
        part(made / "follows.jsonl", *gather_follows(texts[0]))


def add_elsewhere(path: Path) -> tuple[Records, dict[str, int]]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    found = [*articles, *(rename(article, "elsewhere-") for article in ask_elsewhere(articles, 0.11))]
    return found, {path.name: len(articles), "asked elsewhere": len(found) - len(articles)}


def name_labels(path: Path) -> tuple[Records, dict[str, int]]:
    from bertsmith.data.reading import read_table

    names = {"0": "negative", "1": "positive"}
    found = [{"text": one["sentence"], "label": names[str(one["label"])]} for one in read_table(path).records]
    return found, {path.name: len(found)}


def list_questions(data: Path) -> list[str]:
    """Those of the sets that `answers` learns from."""
    articles, _ = gather_questions(data, shipped=True)
    return [qa["question"] for article in articles for one in article["paragraphs"] for qa in one["qas"]]


def write_names(out: Path, file: Path, texts: Sequence[Path], questions: Sequence[str] = ()) -> None:
    """WikiANN's examples, for training with more than as many sentences of raw text."""
    if not out.exists():
        sentences = list(read_tagged(file))
        if texts:
            sentences = shuffle([*sentences, *gather_names([file], texts, SENTENCES, questions)])
        out.parent.mkdir(parents=True, exist_ok=True)
        lines = ("".join(f"{word}\t{tag}\n" for word, tag in rows) for rows in sentences)
        out.write_text("\n".join(lines), encoding="utf-8")


def part(path: Path, records: Records, counts: dict[str, int]) -> None:
    """The last ones are set apart."""
    write_records(path.with_name(f"{path.stem}-dev{path.suffix}"), records[-APART:])
    write_records(path, records[:-APART])
    print(f"{path.name}: {len(records) - APART:,} and {APART:,} apart, of "
          + ", ".join(f"{name} {count:,}" for name, count in counts.items()), flush=True)  # fmt: skip


class Making:
    """One call: where things are, what is asked for, what is known."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.made, self.heads = options, options.work / "made", options.work / "heads"
        self.figures = Figures(options, f"python house/make.py heads --ways {','.join(options.ways)}")

    def given(self, name: str) -> dict[str, Any]:
        """What `finetune` gets about a head's data."""
        head = HEADS[name]
        files = head.files(self.options.data, self.made)
        if self.options.tiny:
            files = {side: str(shorten(Path(file), self.made / "short")) for side, file in files.items()}
        return {"task": head.kind, **files, **head.more}

    def job(self, name: str, way: str) -> Job:
        """An adapter on the encoder (or on the shared one, where its head cannot be among the others), or all of it."""
        head, options = HEADS[name], self.options
        how = {"rate": head.rate} if way == "full" else {"lora": options.rank, "rate": head.lora_rate}
        base = self.heads / "together" if way == BESIDE else options.work / "encoder"
        base = self.heads / way / head.after if way == "lora" and head.after else base
        given = {**self.given(name), **how, "epochs": head.epochs, "batch": head.batch, "metric": head.metric,
                 "model": str(base), "device": options.device, "seed": 1}  # fmt: skip
        given |= {"max_steps": 2} if options.tiny else {}
        return Job(f"{way} {name}", self.heads / way / name, {}, given, (head.metric,), keep_model=way != "full")

    def train_apart(self, way: str, some: Sequence[str] = tuple(HEADS)) -> None:
        """A run a head, side by side, first those that need no other; what the file holds and the disk too is left."""
        names = [name for name in self.options.only or HEADS if name in some and not self.is_done(way, name)]
        first = [name for name in names if way != "lora" or HEADS[name].after not in names]
        self.run_jobs(way, first)
        self.run_jobs(way, [name for name in names if name not in first])

    def run_jobs(self, way: str, names: Sequence[str]) -> None:
        jobs = [self.job(name, way) for name in names]
        if not jobs:
            return
        beside = min(self.options.jobs, len(jobs))
        with Workers(beside, share_threads(beside), run_job) as workers:
            for place, said in workers.run(jobs):
                done = Done(error=f"{said.why}.") if isinstance(said, Lost) else said
                self.keep(way, names[place], done.metrics, done.seconds, done.error)

    def train_together(self) -> None:
        members: dict[str, Any] = {name: self.given(name) for name in self.options.only or TOGETHER if name in TOGETHER}
        if all(self.is_done("together", name) for name in members):
            return
        for name, member in members.items():
            member.pop("truncate", None) if HEADS[name].kind == "span" else None
        members["words"] = {"task": "mask", "weight": WORDS}
        settings: dict[str, Any] = {"max_steps": 4} if self.options.tiny else {"epochs": self.options.epochs}
        start = time.perf_counter()
        run = bertsmith.finetune_together(
            members, out=self.heads / "together", mixing="temperature", temperature=2.0, check=False,
            model=self.options.work / "encoder", device=self.options.device, rate=1.5e-4, batch=64,
            seed=1, **settings,
        )  # fmt: skip
        for name in members:
            if name in HEADS:
                mine = {side: {metric.removeprefix(f"{name}/"): one for metric, one in found.items()
                               if metric.startswith(f"{name}/")} for side, found in run.metrics.items()}  # fmt: skip
                scored = {side: found for side, found in mine.items() if found}
                self.keep("together", name, scored, time.perf_counter() - start, None)

    def is_done(self, way: str, name: str) -> bool:
        """Known, and where it would be shipped also there."""
        row, home = self.figures.rows.get(f"{way} {name}", {}), self.heads / way
        there = way == "full" or any((home / name).glob("*.safetensors")) or (home / "config.json").exists()
        return "metrics" in row and there and not self.options.again

    def keep(self, way: str, name: str, metrics: dict[str, Any], seconds: float, error: str | None) -> None:
        row = {"name": f"{way} {name}", "way": way, "head": name, "seconds": round(seconds, 1)}
        found = {"error": error} if error else {"metrics": metrics, "mb": weigh(self.heads / way / name)}
        self.figures.rows[row["name"]] = {**row, **found}
        self.figures.write()
        metric = HEADS[name].metric
        said = error or ", ".join(f"{side} {metric} {100 * one[metric]['value']:.2f}" for side, one in metrics.items())
        print(f"{way} {name}: {said}, {seconds:.0f} s", flush=True)


def weigh(folder: Path) -> float:
    """MB of an adapter's own files."""
    return round(sum(path.stat().st_size for path in folder.glob("adapter*")) / 1e6, 2)


def make_heads(options: argparse.Namespace) -> int:
    gather_all(options.data, options.work / "made", options.text or ())
    making = Making(options)
    for way in options.ways:
        if way == "together":
            making.train_together()
            making.train_apart(BESIDE, ALONE)
        else:
            making.train_apart(way)
    making.figures.facts["table"] = compare(making.figures)
    making.figures.write()
    print(json.dumps(making.figures.facts["table"], indent=1), flush=True)
    return making.figures.status()


def compare(figures: Figures) -> list[dict[str, Any]]:
    """A line for each head: its score in each way."""
    lines = []
    for name, head in HEADS.items():
        line: dict[str, Any] = {"head": name, "metric": head.metric}
        for way in WAYS:
            row = figures.rows.get(f"{way} {name}", {})
            if way == "together" and name in ALONE:
                row = figures.rows.get(f"{BESIDE} {name}", {})
            if "metrics" in row:
                line[way] = round(100 * row["metrics"]["dev"][head.metric]["value"], 2)
        lines += [line] if len(line) > 2 else []
    return lines
