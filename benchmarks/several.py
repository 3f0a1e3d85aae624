"""Several tasks on one encoder beside a model for each: the same data, settings and seeds, one table.

    python benchmarks/several.py --data DIR --device cuda --jobs 8 --out benchmarks/results/several.json
    python benchmarks/several.py --data DIR --mixes snips --seeds 1
    python benchmarks/several.py                              # the commands only

A mix is data: to add one, add it to MIXES. Every member is trained alone too, for as many epochs as in the mix. Where a
dataset has one held-out file it is `test`: it chose nothing, as training sets its own development part aside.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs import finetune, make_parser, side_by_side

ALONE = "alone"


@dataclass(frozen=True)
class Member:
    task: str
    train: str
    test: str
    metric: str
    dev: str = ""
    label: str = ""

    def table(self, data: str) -> dict[str, str]:
        """Its part of a mix's file, and its flags when it is alone."""
        files = {"train": self.train, "dev": self.dev, "test": self.test}
        found = {"task": self.task, **{side: f"{data}/{file}" for side, file in files.items() if file}}
        return found | ({"label": self.label} if self.label else {})


@dataclass(frozen=True)
class Mix:
    members: dict[str, Member]
    settings: dict[str, float]
    ways: dict[str, dict[str, Any]]  # how they are mixed; `words` is the weight of masked tokens, where they take part


SNIPS = ("slots/snips/train", "slots/snips/test")


def glue(name: str) -> tuple[str, str]:
    return f"glue/{name}/train.tsv", f"glue/{name}/dev.tsv"


MIXES = {
    "snips": Mix(
        {
            "intent": Member("classify", *SNIPS, "accuracy", "slots/snips/dev", "intent"),
            "slots": Member("tag", *SNIPS, "f1", "slots/snips/dev"),
        },
        {"rate": 2e-4, "epochs": 6},
        {"together": {"mixing": "together"}, "together, masked words": {"mixing": "together", "words": 0.1}},
    ),
    "glue": Mix(
        {
            "rte": Member("classify", *glue("RTE"), "accuracy"),
            "mrpc": Member("classify", *glue("MRPC"), "f1"),
            "stsb": Member("regress", *glue("STS-B"), "pearson"),
            "mnli": Member(
                "classify", "glue/MNLI/train.subset10k.tsv", "glue/MNLI/dev_matched.rebuilt.tsv", "accuracy"
            ),
        },
        {"rate": 1e-4, "epochs": 6, "length": 256},
        {
            "proportional": {"mixing": "proportional"},
            "temperature 2": {"mixing": "temperature", "temperature": 2.0},
            "round-robin": {"mixing": "round-robin"},
        },
    ),
}


@dataclass(frozen=True)
class Job:
    mix: str
    way: str  # how it is mixed, or ALONE
    seed: int
    member: str = ""  # of one that is alone

    def words(self, data: str, file: str) -> list[str]:
        """Those of `bertsmith finetune …`; `file` describes the mix."""
        mix = MIXES[self.mix]
        if self.way != ALONE:
            return ["--members", file, "--seed", str(self.seed)]
        flags = {**mix.members[self.member].table(data), **mix.settings, "seed": self.seed}
        return [word for name, value in flags.items() for word in (f"--{name}", str(value))]

    def toml(self, data: str) -> str:
        """The file of the mix."""
        mix, way = MIXES[self.mix], dict(MIXES[self.mix].ways[self.way])
        weight = way.pop("words", None)
        lines = [f"{name} = {json.dumps(value)}" for name, value in {**mix.settings, **way}.items()]
        tables = {name: member.table(data) for name, member in mix.members.items()}
        for name, table in tables.items():
            lines += [f"[members.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        lines += ["[members.words]", 'task = "mask"', f"weight = {weight}"] if weight else []
        return "\n".join(lines) + "\n"

    @property
    def file(self) -> str:
        return f"{self.mix}-{self.way}.toml".replace(",", "").replace(" ", "-")


def list_jobs(options: argparse.Namespace) -> Iterator[Job]:
    for name in options.mixes:
        for seed in range(1, options.seeds + 1):
            yield from (Job(name, way, seed) for way in MIXES[name].ways)
            yield from (Job(name, ALONE, seed, member) for member in MIXES[name].members)


def spell(job: Job) -> str:
    """What a person types; $DATA is the folder with the datasets."""
    name = f"{job.file.removesuffix('.toml')}{'-' * bool(job.member)}{job.member}-{job.seed}"
    return " ".join(["bertsmith finetune", *job.words("$DATA", job.file), "--out", f"runs/{name}"])


def run(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """One fine-tuning, and the main score of each member that it has."""
    about: dict[str, Any] = {"mix": job.mix, "way": job.way, "seed": job.seed, "command": spell(job)}
    about |= {"file": job.toml("$DATA")} if job.way != ALONE else {}
    with tempfile.TemporaryDirectory() as folder:
        data, file = str(options.data.resolve()), Path(folder, job.file)
        if job.way != ALONE:
            file.write_text(job.toml(data), encoding="utf-8")
        found = finetune(job.words(data, str(file)), options)
    if "error" in found:
        return {**about, **found}
    scores = {}
    for name, member in MIXES[job.mix].members.items():
        if job.member in ("", name):
            key = member.metric if job.member else f"{name}/{member.metric}"
            scores[name] = {"metric": member.metric, **found["metrics"]["test"][key]}
    return {**about, "scores": scores, "speed": found["speed"], "wall_s": found["wall_s"]}


def tell(one: dict[str, Any]) -> str:
    scores = ", ".join(
        f"{name} {s['metric']} {100 * s['value']:.1f} of {s['n']:,}" for name, s in one["scores"].items()
    )
    return f"{one['mix']}, {one['way']}, seed {one['seed']}: {scores}; {one['wall_s']:.0f} s"


def summarise(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each member of a mix: mean and spread over the seeds, alone and in each way of mixing."""
    lines = []
    for name in dict.fromkeys(one["mix"] for one in runs):
        for member in MIXES[name].members:
            mine = [one for one in runs if one["mix"] == name and member in one.get("scores", {})]
            line: dict[str, Any] = {"mix": name, "member": member, "metric": MIXES[name].members[member].metric}
            for way in (ALONE, *MIXES[name].ways):
                values = [one["scores"][member]["value"] for one in mine if one["way"] == way]
                if values:
                    spread = statistics.stdev(values) if len(values) > 1 else None
                    line[way] = {"mean": statistics.mean(values), "spread": spread, "seeds": len(values)}
            lines.append(line)
    return lines


def show(lines: list[dict[str, Any]]) -> str:
    """The table; ± is the standard deviation over the seeds."""
    told = []
    for name in dict.fromkeys(line["mix"] for line in lines):
        ways = [ALONE, *MIXES[name].ways]
        told.append(f"{name:24}" + "".join(f"{way:>26}" for way in ways))
        for line in (line for line in lines if line["mix"] == name):
            cells = []
            for way in ways:
                found = line.get(way)
                spread = f" ± {100 * found['spread']:.1f}" if found and found["spread"] is not None else ""
                cells.append(f"{100 * found['mean']:.1f}{spread}" if found else "–")
            told.append(f"{line['member'] + ' ' + line['metric']:24}" + "".join(f"{cell:>26}" for cell in cells))
    return "\n".join(told)


def parse() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--mixes", type=lambda text: text.split(","), default=list(MIXES), help=", ".join(MIXES))
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    return parser.parse_args()


def list_commands(options: argparse.Namespace) -> None:
    """Each mix's file and the commands of the first seed; $DATA stands for the folder with the datasets."""
    for job in list_jobs(options):
        if job.seed == 1 and job.way != ALONE:
            print(f"# {job.file}\n{job.toml('$DATA')}")
        if job.seed == 1:
            print(spell(job))


def main() -> None:
    options = parse()
    if options.list or options.data is None:  # `make bench` calls every script, and the data cannot be shipped
        list_commands(options)
        return
    runs, status = side_by_side(list_jobs(options), lambda job: run(job, options), options, tell, summarise)
    print(show(summarise(runs)))
    sys.exit(status)


if __name__ == "__main__":
    main()
