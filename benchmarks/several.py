"""Several tasks on one encoder beside a model for each: the same data, settings and seeds, one table.

    python benchmarks/several.py --data DIR --device cuda --jobs 8 --out benchmarks/results/several.json
    python benchmarks/several.py --data DIR --mixes snips --seeds 1
    python benchmarks/several.py                              # the commands only

A mix is data: to add one, add it to MIXES. Every member is trained alone too, for as many epochs as in the mix. Where a
dataset has one held-out file it is `test`: it chose nothing, as training sets its own development part aside.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from finetune import find_commit

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
PAIRS = "glue/{}/train.tsv", "glue/{}/dev.tsv"
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
            "rte": Member("classify", *(path.format("RTE") for path in PAIRS), "accuracy"),
            "mrpc": Member("classify", *(path.format("MRPC") for path in PAIRS), "f1"),
            "stsb": Member("regress", *(path.format("STS-B") for path in PAIRS), "pearson"),
            "mnli": Member(
                "classify", "glue/MNLI/train.subset10k.tsv", "glue/MNLI/dev_matched.rebuilt.tsv", "accuracy"
            ),
        },
        {"rate": 1e-4, "epochs": 6},
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

    def command(self, data: str, out: str, file: str) -> list[str]:
        """Words of `bertsmith …`; `file` describes the mix."""
        mix = MIXES[self.mix]
        if self.way != ALONE:
            return ["finetune", "--members", file, "--out", out, "--seed", str(self.seed)]
        flags = {**mix.members[self.member].table(data), **mix.settings}
        return ["finetune", *(word for name, value in flags.items() for word in (f"--{name}", str(value))),
                "--out", out, "--seed", str(self.seed)]  # fmt: skip

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
    name = "-".join(filter(None, (job.mix, job.member or job.way, str(job.seed)))).replace(",", "").replace(" ", "-")
    return "bertsmith " + " ".join(job.command("$DATA", f"runs/{name}", job.file))


def run(job: Job, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row a member that is scored; a run that fails leaves the end of what it said in `error`."""
    about = {"mix": job.mix, "way": job.way, "seed": job.seed, "command": spell(job)}
    threads = {"OMP_NUM_THREADS": str(options.threads), "RAYON_NUM_THREADS": str(options.threads)}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        data, out, file = str(options.data.resolve()), f"{folder}/run", Path(folder, job.file)
        if job.way != ALONE:
            file.write_text(job.toml(data), encoding="utf-8")
        words = [sys.executable, "-m", "bertsmith", *job.command(data, out, str(file))]
        words += ["--model", str(options.model)] if options.model else []
        words += ["--device", options.device, "--threads", str(options.threads), *options.flags]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **threads})
        if done.returncode:
            return [{**about, "member": job.member, "error": (done.stderr or done.stdout)[-2000:]}]
        found = json.loads(Path(out, "metrics.json").read_text(encoding="utf-8"))
    rows = []
    for name, member in MIXES[job.mix].members.items():
        if job.member in ("", name):
            key = member.metric if job.member else f"{name}/{member.metric}"
            score = {"member": name, "metric": member.metric, **found["metrics"]["test"][key]}
            rows.append({**about, **score, "train_s": found["speed"]["seconds"], "wall_s": since(start)})
    return rows


def since(start: float) -> float:
    return round(time.perf_counter() - start, 1)


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each member of a mix: mean and spread over the seeds, alone and in each way of mixing."""
    lines = []
    for name in dict.fromkeys(row["mix"] for row in rows):
        for member in MIXES[name].members:
            mine = [row for row in rows if row["mix"] == name and row["member"] == member and "value" in row]
            line: dict[str, Any] = {"mix": name, "member": member, "metric": MIXES[name].members[member].metric}
            for way in (ALONE, *MIXES[name].ways):
                values = [row["value"] for row in mine if row["way"] == way]
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


def write(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    if options.out is None:
        return
    import torch

    machine = torch.cuda.get_device_name() if options.device == "cuda" else f"{options.threads} CPU threads"
    beside = f", {options.jobs} runs side by side" if options.jobs > 1 else ""
    about = {
        "about": f"{machine}, torch {torch.__version__}{beside}",
        "date": str(date.today()),
        "commit": options.commit or find_commit(),
        "flags": shlex.join(options.flags),
        "files": {job.file: job.toml("$DATA") for job in list_jobs(options) if job.way != ALONE},
    }
    content = {**about, "table": summarise(rows), "rows": rows}
    options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the datasets")
    parser.add_argument("--mixes", type=lambda text: text.split(","), default=list(MIXES), help=", ".join(MIXES))
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--model", type=Path, help="folder of the encoder; the default is bertsmith's own default")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--flags", type=shlex.split, default=[], help="more flags of finetune, as in '--max-steps 20'")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, after every run")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
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
    rows: list[dict[str, Any]] = []
    lock = threading.Lock()

    def keep(job: Job) -> None:
        found = run(job, options)
        with lock:
            rows.extend(found)
            for row in found:
                told = row.get("error") or f"{row['metric']} {100 * row['value']:.1f} of {row['n']:,}"
                print(f"{row['mix']}, {row['way']}, seed {row['seed']}: {row['member']} {told}", flush=True)
            write(rows, options)  # what is done stays done if the time runs out

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(keep, list_jobs(options)))
    print(show(summarise(rows)))
    sys.exit(any("error" in row for row in rows))


if __name__ == "__main__":
    main()
