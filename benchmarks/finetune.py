"""Fine-tuning beside `transformers`' Trainer: does it learn as well, and how much faster is it?

    python benchmarks/finetune.py --data DIR --mode score --seeds 1,2,3 --device cuda --precision bf16 --jobs 8
    python benchmarks/finetune.py --data DIR --mode speed --tasks sst2,conll --steps 200

Both start from one folder, read the same files and take the settings of `TASKS`, each run in a process of its own.
`score` trains to the end with several seeds, up to `--jobs` runs side by side; the epoch that is best on the
development data counts, on both sides. `speed` takes turns, a few hundred optimizer steps a run, and the clock starts
after the first `--skip` of them. DIR holds glue/, conll2003/ and squad/ with the files as they are distributed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

from finetune_peer import Clock, peak_memory
from origins import find_commit, find_model, name_machine

HERE = Path(__file__).parent
Row = dict[str, Any]

# One setting a task for both sides; batches of 32, linear decay after a tenth of warm-up, weight decay 0.01, clip 1.
TASKS: dict[str, Row] = {
    "sst2": {"kind": "classify", "files": ("glue/SST-2/train.tsv", "glue/SST-2/dev.tsv"), "metrics": ("accuracy",),
             "epochs": 3, "rate": 1e-4, "length": 128},
    "squad": {"kind": "span", "files": ("squad/train-v1.1.subset.json", "squad/dev-v1.1.json"),
              "metrics": ("f1", "exact"), "epochs": 3, "rate": 1e-4, "length": 384},
    "conll": {"kind": "tag", "files": ("conll2003/eng.train", "conll2003/eng.testa"), "metrics": ("f1",),
              "epochs": 5, "rate": 1e-4, "length": 256},
    "cola": {"kind": "classify", "files": ("glue/CoLA/train.tsv", "glue/CoLA/dev.tsv"), "metrics": ("matthews",),
             "epochs": 5, "rate": 1e-4, "length": 128},
    "mrpc": {"kind": "classify", "files": ("glue/MRPC/train.tsv", "glue/MRPC/dev.tsv"),
             "metrics": ("accuracy", "f1"), "epochs": 5, "rate": 1e-4, "length": 128},
}  # fmt: skip
PEERS = {
    "trainer": [],
    "trainer-compiled": ["--compile"],
    "trainer-grouped": ["--grouped"],
    "trainer-tuned": ["--compile", "--grouped", "--workers", "4"],
    "plain-loop": ["--loop", "plain"],
}
USUAL = {"score": ("bertsmith", "trainer"), "speed": ("bertsmith", "trainer", "trainer-compiled")}


def settings_of(task: str, options: argparse.Namespace) -> Row:
    chosen = {name: TASKS[task][name] for name in ("epochs", "rate", "length")}
    chosen["epochs"] = options.epochs or chosen["epochs"]
    return {**chosen, "batch": 32, "warmup": 0.1, "weight_decay": 0.01, "clip": 1.0}


# -- one run ----------------------------------------------------------------------------------------------------------


def contest(job: Row) -> Row:
    """Our side, in its own process: the public function, and the same clock as the other side has."""
    import bertsmith
    from bertsmith.training.loop import Watcher

    class Watch(Watcher):
        def started(self, step: int, steps: int) -> None:
            self.steps, self.clock = steps, Clock(job["device"], job["skip"])
            self.clock.start()

        def stepped(self, step: int, record: Any, speed: Any) -> None:
            self.clock.step()
            if step == self.steps:  # before the last evaluation
                self.clock.stop()
                self.memory = peak_memory(job["device"])

    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        train, dev = job["files"]
        bertsmith.finetune(
            task=job["kind"], train=train, dev=dev, model=job["model"], out=Path(folder) / "run", seed=job["seed"],
            device=job["device"], precision=job["precision"], threads=job["threads"], max_steps=job["steps"],
            schedule="linear", watchers=[watch], metric=TASKS[job["task"]]["metrics"][0], **job["settings"],
        )  # fmt: skip
        report = json.loads((Path(folder) / "run" / "metrics.json").read_text(encoding="utf-8"))
        log = [json.loads(line) for line in (Path(folder) / "run" / "log.jsonl").read_text().splitlines()]
    speed = report["speed"]
    if job["steps"]:  # no evaluation came between: the clock is exact
        examples = (watch.clock.steps - job["skip"]) * job["settings"]["batch"]
        speed["examples_per_second"] = examples / watch.clock.counted
    return {
        "metrics": {name: found["value"] for name, found in report["metrics"]["dev"].items()},
        "by_epoch": [record["metrics"] for record in log if "metrics" in record],
        "examples_per_second": round(speed["examples_per_second"], 1),
        "steps": watch.clock.steps,
        "seconds": round(watch.clock.whole if job["steps"] else speed["seconds"], 2),
        "memory_mib": round(watch.memory),
    }


def command_of(job: Row) -> list[str]:
    if job["contestant"] == "bertsmith":
        return [sys.executable, __file__, "--contest", json.dumps(job)]
    command = [sys.executable, str(HERE / "finetune_peer.py"), "--task", job["task"]]
    given = {**job["settings"], "train": job["files"][0], "dev": job["files"][1], "skip": job["skip"]}
    for name in ("model", "seed", "device", "precision", "threads", "steps"):
        given[name] = job[name]
    for name, value in given.items():
        command += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    return command + PEERS[job["contestant"]] + (["--no-score"] if job["steps"] else [])


def run(job: Row) -> Row:
    """A row for the table; a contestant that fails leaves the end of what it said in `error`."""
    start = time.perf_counter()
    threads = {"OMP_NUM_THREADS": str(job["threads"]), "RAYON_NUM_THREADS": str(job["threads"])}
    done = subprocess.run(command_of(job), capture_output=True, text=True, env={**os.environ, **threads})
    row = {name: job[name] for name in ("task", "contestant", "seed", "settings")}
    try:
        row |= json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        row["error"] = (done.stderr or done.stdout)[-2000:]
    row |= {"contestant": job["contestant"], "settings": job["settings"]}
    row["wall_s"] = round(time.perf_counter() - start, 1)
    said = row.get("error") or f"{row['metrics']} {row['examples_per_second']:,} examples/s"
    print(f"{row['task']:6} {row['contestant']:17} seed {row['seed']} {row['wall_s']:6.0f} s  {said}", flush=True)
    return row


# -- all runs ---------------------------------------------------------------------------------------------------------


def plan(options: argparse.Namespace) -> list[Row]:
    """Seed by seed, so that a run cut short has compared what it has; tasks with the longest runs first."""
    score = options.mode == "score"
    rounds = options.seeds if score else options.seeds[:1] * options.rounds
    jobs = []
    for seed in rounds:
        for task in sorted(options.tasks, key=list(TASKS).index):
            for contestant in options.contestants:
                files = [str(options.data / name) for name in TASKS[task]["files"]]
                job = {"task": task, "contestant": contestant, "seed": seed, "settings": settings_of(task, options),
                       "kind": TASKS[task]["kind"], "files": files, "model": str(options.model)}  # fmt: skip
                shared = ("device", "precision", "threads", "steps", "skip")
                jobs.append({**job, **{name: getattr(options, name) for name in shared}})
    return jobs


def run_all(options: argparse.Namespace) -> list[Row]:
    rows = [row for path in options.add for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    there = {(row["task"], row["contestant"], row["seed"]) for row in rows if "error" not in row}
    jobs = plan(options)
    if options.mode == "score":
        jobs = [job for job in jobs if (job["task"], job["contestant"], job["seed"]) not in there]
    lock = threading.Lock()

    def keep(job: Row) -> None:
        row = run(job)
        with lock:
            rows.append(row)
            write(rows, options)  # what is done stays done if the time runs out

    with ThreadPoolExecutor(options.jobs if options.mode == "score" else 1) as pool:
        list(pool.map(keep, jobs))
    return rows


def write(rows: list[Row], options: argparse.Namespace) -> None:
    if options.out is None:
        return
    about = {
        "about": describe(options),
        "command": spell(sys.argv[1:]),
        "date": str(date.today()),
        "commit": options.commit or find_commit(),
    }
    table = tabulate_scores(rows) if options.mode == "score" else tabulate_speed(rows)
    options.out.write_text(json.dumps({**about, "table": table, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def spell(words: list[str]) -> str:
    """The command without what holds for one machine only: where its files are."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--out", "--commit", "--model", "--data"):
        parser.add_argument(name)
    parser.add_argument("--add", nargs="+")
    return " ".join(["python benchmarks/finetune.py --data DIR", *parser.parse_known_args(words)[1]])


def tabulate_scores(rows: list[Row]) -> list[Row]:
    """Medians over the seeds; `ok` where ours is no more than one standard deviation of theirs below it."""
    table = []
    for task, facts in TASKS.items():
        for metric in facts["metrics"]:
            mine = [row for row in rows if row["task"] == task and "error" not in row]
            found = {
                name: [row["metrics"][metric] for row in mine if row["contestant"] == name] for name in USUAL["score"]
            }
            if not all(found.values()):
                continue
            line: Row = {"task": task, "metric": metric}
            for name, values in found.items():
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                line[name] = {"median": round(statistics.median(values), 4), "sd": round(spread, 4), "n": len(values)}
            line["ok"] = line["bertsmith"]["median"] >= line["trainer"]["median"] - line["trainer"]["sd"]
            table.append(line)
    return table


def tabulate_speed(rows: list[Row]) -> list[Row]:
    """The best round of each; `times` says how many times theirs ours is."""
    table: list[Row] = []
    for task in TASKS:
        mine = [row for row in rows if row["task"] == task and "error" not in row]
        speeds: dict[str, float] = {}
        for row in mine:
            speeds[row["contestant"]] = max(row["examples_per_second"], speeds.get(row["contestant"], 0.0))
        for name, speed in speeds.items():
            memory = min(row["memory_mib"] for row in mine if row["contestant"] == name)
            line: Row = {"task": task, "contestant": name, "examples_per_second": speed, "memory_mib": memory}
            line["times"] = round(speeds["bertsmith"] / speed, 2) if "bertsmith" in speeds else None
            table.append(line)
    return table


def show(rows: list[Row], mode: str) -> None:
    if mode == "speed":
        print(f"{'task':6} {'contestant':17} {'examples/s':>10} {'ours/its':>8} {'memory':>10}")
        for line in tabulate_speed(rows):
            print(f"{line['task']:6} {line['contestant']:17} {line['examples_per_second']:>10,.1f} "
                  f"{line['times'] or '':>8} {line['memory_mib']:>6} MiB")  # fmt: skip
        return
    print(f"{'task':6} {'metric':9} {'bertsmith':>17} {'trainer':>17}  ok")
    for line in tabulate_scores(rows):
        sides = [f"{100 * line[name]['median']:.2f} ± {100 * line[name]['sd']:.2f}" for name in USUAL["score"]]
        print(f"{line['task']:6} {line['metric']:9} {sides[0]:>17} {sides[1]:>17}  {'yes' if line['ok'] else 'NO'}")


def describe(options: argparse.Namespace) -> str:
    import torch

    beside = f", {options.jobs} runs side by side" if options.jobs > 1 and options.mode == "score" else ""
    return f"{name_machine(options)}, {options.precision}, torch {torch.__version__}{beside}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with glue/, conll2003/ and squad/")
    parser.add_argument("--model", type=Path, help="folder of the encoder; the default is all-MiniLM-L6-v2")
    parser.add_argument("--mode", default="score", choices=("score", "speed"))
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=list(TASKS))
    parser.add_argument("--contestants", type=lambda text: text.split(","), help=f"bertsmith, {', '.join(PEERS)}")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, help="instead of each task's own")
    parser.add_argument("--steps", type=int, help="optimizer steps of a run, fewer than an epoch; speed: 120")
    parser.add_argument("--skip", type=int, default=20, help="speed: optimizer steps before the clock starts")
    parser.add_argument("--rounds", type=int, default=3, help="speed: the best of so many")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision", choices=("fp32", "bf16"), help="the default is bf16 on cuda")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="score: runs side by side")
    parser.add_argument("--add", type=Path, nargs="+", default=[], help="take runs from these files of --out")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, after every run")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument("--contest", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parse()
    if options.contest:
        return print(json.dumps(contest(json.loads(options.contest))))
    if options.data is None:  # `make bench` calls every script, and this one's data cannot be shipped
        return print("benchmarks/finetune.py needs --data DIR; --help says what it holds.")
    options.model = options.model or find_model()
    options.precision = options.precision or ("bf16" if options.device == "cuda" else "fp32")
    options.contestants = options.contestants or USUAL[options.mode]
    if options.mode == "speed":
        options.steps = options.steps or 120
        if options.steps <= options.skip:
            raise SystemExit(f"--steps {options.steps} leaves nothing to measure after --skip {options.skip}.")
    rows = run_all(options)
    show(rows, options.mode)
    failed = any("error" in row for row in rows)
    if failed or (options.mode == "score" and not all(line["ok"] for line in tabulate_scores(rows))):
        sys.exit(1)


if __name__ == "__main__":
    main()
