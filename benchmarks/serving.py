"""How many requests a second a server answers within 250 ms, beside a plain server and infinity, and what too many do.

    python benchmarks/serving.py                       a rehearsal of some minutes: too short to be a result
    python benchmarks/serving.py --step 12 --rounds 2 --infinity ENVIRONMENT/bin/python \
        --out benchmarks/results/serving-cpu.json --picture docs/serving.svg
    python benchmarks/serving.py --overload --from benchmarks/results/serving-cpu.json \
        --out benchmarks/results/serving-overload-cpu.json

Each contestant serves the same model (all-MiniLM-L6-v2, float32) on the same machine, one after the other, and is asked
for one vector a request on OpenAI's /v1/embeddings by a process of its own (serving_load.py): texts of 5 to 120 words
(serving_texts.py), at the moments of a Poisson process that waits for no answer. What a request took is counted from
the moment it was due. The rate rises by half until the 99th of 100 requests takes longer than 250 ms or fails, then by
7 % from the last rate that was kept; a rate that is missed is tried once more. Server and load share all cores, nothing
is pinned. Before it is measured a contestant must give the vectors that the library gives. Of two ways to run one
contestant (workers, threads or event loop, compiled or not) both are measured and the better one counts.

`--overload` asks `bertsmith serve` for four times what it can, for a minute, with a light load before and behind.
`--infinity` is the Python of an environment that holds infinity-emb 0.0.78 with what it wants beside it (numpy<2,
click<8.2, typer<0.13, uvicorn<0.33, sentence-transformers<4, transformers<5, fastapi<0.120), apart from ours.
"""

import argparse
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from origins import find_commit, find_model
from serving_load import measure_in_process
from serving_picture import draw_picture
from serving_process import GRAPH, PROBES, Failed, Server, list_contestants, tell_versions
from serving_texts import make_texts

import bertsmith

NEAR = 0.99  # the cosine with the right vector that int8 must have
TARGET = 0.25  # seconds for 99 of 100
RISE, FINE = 1.5, 1.07
WARM = 2.0  # seconds at the start of a step that do not count
PARTS = ("torch", "sentence-transformers", "transformers", "fastapi", "uvicorn")
Row = dict[str, Any]


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as place:
        run(options, Path(place))


def run(options: argparse.Namespace, place: Path) -> None:
    graph = bertsmith.export_model(options.model, place / "graph", to="onnx", store="int8") if options.graph else None
    contestants = list_contestants(options.infinity, options.flags, graph and graph.folder)
    chosen = {name: words for name, words in contestants.items() if any(part in name for part in options.only)}
    about = describe_run(options)
    if options.overload:
        write(options, {**about, "overload": overload(chosen, options)})
        return
    rounds: dict[str, list[Row]] = {name: [] for name in chosen}
    for number in range(options.rounds):
        for name, command in chosen.items():
            rounds[name].append(measure(name, command, options, number))
            found = {**about, "table": make_table(rounds), "rounds": rounds}
            write(options, found)
    for line in tell_table(make_table(rounds)):
        print(line)
    if options.picture:
        options.picture.write_text(draw_picture(rounds, TARGET), encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of the encoder; else that of the published figures")
    parser.add_argument("--infinity", metavar="PYTHON", help="of the environment that holds infinity-emb")
    parser.add_argument("--graph", action="store_true", help="bertsmith with an int8 graph of the model, too")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="contestants whose name holds this")
    parser.add_argument("--flags", type=shlex.split, default=[], help="more flags of bertsmith serve")
    parser.add_argument("--step", type=float, default=3.0, help="seconds that a rate is held and counted")
    parser.add_argument("--first", type=float, default=20.0, help="the rate to begin with, requests a second")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--encoding", choices=("float", "base64"), default="float", help="of the vectors")
    parser.add_argument("--overload", action="store_true")
    parser.add_argument("--capacity", type=float, help="for --overload: requests a second")
    parser.add_argument("--from", dest="source", type=Path, help="for --overload: the file that tells the capacity")
    parser.add_argument("--seconds", type=float, default=60.0, help="of --overload")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    options = parser.parse_args()
    options.model = options.model or find_model()
    if options.overload and options.only == [""]:
        options.only = ["bertsmith"]
    if options.overload and not (options.capacity or options.source):
        parser.error("--overload needs --capacity REQUESTS or --from FILE.json, to know what four times too much is")
    return options


def describe_run(options: argparse.Namespace) -> Row:
    model = bertsmith.load(options.model)
    texts = [text for text, _ in zip(make_texts(0), range(2000), strict=False)]
    lengths = [len(one.ids) for one in model.tokenize(texts)]
    tokens = {f"p{share}": float(np.percentile(lengths, share)) for share in (1, 50, 90, 99)}
    options.expected = np.asarray(model.embed(PROBES))
    return {
        "about": f"{os.cpu_count()} cores shared by server and load, torch {torch.__version__}, one text a request",
        "date": str(date.today()),
        "commit": options.commit or find_commit(),
        # Without the folders of whoever ran it.
        "command": shlex.join(["python", "benchmarks/serving.py", *(_strip(word) for word in sys.argv[1:])]),
        "versions": tell_versions(sys.executable, *PARTS),
        "infinity": tell_versions(options.infinity, "infinity-emb", *PARTS) if options.infinity else "not asked for",
        "target_ms": 1000 * TARGET,
        "tokens_a_text": {"mean": round(statistics.mean(lengths), 1), **tokens},
    }


def _strip(word: str) -> str:
    return Path(word).name if word.startswith("/") else word


def write(options: argparse.Namespace, found: Row) -> None:
    """After every contestant: what is done stays done if the time runs out."""
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


# -- rising load ------------------------------------------------------------------------------------------------------


def measure(name: str, command: list[str], options: argparse.Namespace, number: int) -> Row:
    """All steps of one contestant in one round, and the best of those that were kept."""
    try:
        with Server(command, options.model) as server:
            check_answers(name, server, options)
            ask_for(server, options, options.first, 900 + number)  # the first batches of a process are slow
            steps = list(climb(name, server, options, number))
    except Failed as problem:
        print(f"{name}: {problem}", flush=True)
        return {"error": str(problem)}
    kept = [step for step in steps if step["is_kept"]]
    best = max(kept, key=lambda step: step["throughput"], default=None)
    return {"best": best, "peak_mib": max(step["peak_mib"] for step in steps), "steps": steps}


def check_answers(name: str, server: Server, options: argparse.Namespace) -> None:
    """Speed counts only for the right vectors, alone and together; of int8 they are nearly right."""
    alone = np.concatenate([server.ask([text], options.encoding) for text in PROBES])
    for found in (alone, server.ask(PROBES, options.encoding)):
        if found.shape != options.expected.shape:
            raise Failed("the server gives vectors of another size than the library.")
        cosines = (found * options.expected).sum(axis=1)  # both are of length 1
        is_right = cosines.min() > NEAR if GRAPH in name else np.abs(found - options.expected).max() < 1e-4
        if not is_right:
            raise Failed("the server gives other vectors than the library.")


def climb(name: str, server: Server, options: argparse.Namespace, number: int) -> Iterator[Row]:
    """Rates that rise by half until one is missed twice, then finely from the last that was kept."""
    rate, last, rise, tries, seed = options.first, 0.0, RISE, 0, 1000 * number
    while True:
        seed += 1
        step = ask_for(server, options, rate, seed)
        print(f"{name:24} {tell_step(step)}", flush=True)
        yield step
        tries = 0 if step["is_kept"] else tries + 1
        if step["is_kept"]:
            last, rate = rate, rate * rise
        elif tries == 2:
            if rise == FINE or not last:
                return
            rise, tries, rate = FINE, 0, last * FINE


def ask_for(server: Server, options: argparse.Namespace, rate: float, seed: int) -> Row:
    """One rate for some seconds; the first that come are not counted."""
    server.take_peak()
    used, begin, length = server.processor(), time.perf_counter(), WARM + options.step
    told = load(server, options, rate, length, seed)
    wall = time.perf_counter() - begin  # longer than `length` where answers came late
    used = server.processor() - used
    server.settle()
    return {"rate": round(rate, 1), **summarize(told["rows"], WARM, length),
            "late_p99_ms": round(told["late_p99_ms"], 2), "load_cores": round(told["cpu_s"] / wall, 2),
            "cores": round(used / wall, 2),
            "peak_mib": round(server.take_peak() / 2**20)}  # fmt: skip


def load(server: Server, options: argparse.Namespace, rate: float, seconds: float, seed: int) -> Row:
    return measure_in_process(argparse.Namespace(
        port=server.port, rate=rate, seconds=seconds, seed=seed, model="minilm", encoding=options.encoding
    ))  # fmt: skip


def summarize(rows: Sequence[Sequence[float]], begin: float, end: float) -> Row:
    """Of the requests that were due from `begin` to `end`: one that failed took for ever."""
    counted = [row for row in rows if begin <= row[0] < end]
    took = [seconds if status == 200 else float("inf") for _, seconds, status in counted]
    failed = Counter(str(int(status)) for _, _, status in counted if status != 200)
    p99 = percentile(took, 99)
    done = sum(1 for due, seconds, status in rows if status == 200 and begin <= due + seconds < end)
    return {"requests": len(counted), "throughput": round(done / (end - begin), 1),
            "p50_ms": in_ms(percentile(took, 50)), "p99_ms": in_ms(p99),
            "failed": dict(failed), "is_kept": p99 <= TARGET}  # fmt: skip


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so many of 100 do not exceed."""
    return sorted(values)[int(np.ceil(share / 100 * len(values))) - 1] if values else float("inf")


def in_ms(seconds: float) -> float | None:
    return round(1000 * seconds, 1) if np.isfinite(seconds) else None


def tell_step(step: Row) -> str:
    failed = ", ".join(f"{count} x {status}" for status, count in step["failed"].items())
    return (f"{step['rate']:7.1f} asked {step['throughput']:7.1f} answered/s  p50 {step['p50_ms'] or 0:7.1f}  "
            f"p99 {step['p99_ms'] or float('inf'):7.1f} ms  {step['cores']:.2f} cores  {step['peak_mib']} MiB"
            + (f"  failed: {failed}" if failed else ""))  # fmt: skip


def make_table(rounds: dict[str, list[Row]]) -> list[Row]:
    """Best and median over the rounds; `times` is how much less the others do than the best of ours."""
    table = []
    for name, runs in rounds.items():
        reached = [run["best"]["throughput"] if run.get("best") else 0.0 for run in runs if "error" not in run]
        if reached:
            table.append({"contestant": name, "best": max(reached), "median": statistics.median(reached),
                          "rounds": reached, "peak_mib": max(run.get("peak_mib", 0) for run in runs)})  # fmt: skip
        elif runs:
            table.append({"contestant": name, "error": runs[-1]["error"]})
    ours = max((row["median"] for row in table if "median" in row and "bertsmith" in row["contestant"]), default=0.0)
    for row in table:
        if ours and row.get("median") and "bertsmith" not in row["contestant"]:
            row["ours_by_theirs"] = round(ours / row["median"], 2)
    return table


def tell_table(table: list[Row]) -> Iterator[str]:
    yield f"\nrequests a second with p99 <= {1000 * TARGET:.0f} ms"
    for row in table:
        if "error" in row:
            yield f"  {row['contestant']:24} did not run: {row['error'].splitlines()[-1]}"
            continue
        times = f"  we do {row['ours_by_theirs']:.2f} x as many" if "ours_by_theirs" in row else ""
        yield f"  {row['contestant']:24} {row['median']:7.1f} (best {row['best']:.1f})  {row['peak_mib']} MiB{times}"


# -- too much load ----------------------------------------------------------------------------------------------------


def overload(chosen: dict[str, list[str]], options: argparse.Namespace) -> dict[str, Row]:
    """A light load, four times too much, and the light load again, at once."""
    known = json.loads(options.source.read_text(encoding="utf-8"))["table"] if options.source else []
    capacities = {row["contestant"]: row["median"] for row in known if "median" in row}
    found = {}
    for name, command in chosen.items():
        capacity = options.capacity or capacities[name]
        with Server(command, options.model) as server:
            check_answers(name, server, options)
            load(server, options, capacity / 10, 5, 1)
            found[name] = flood(server, options, capacity)
        print(name, json.dumps(found[name], indent=1), flush=True)
    return found


def flood(server: Server, options: argparse.Namespace, capacity: float) -> Row:
    calm = options.seconds / 2
    processes = server.processes()
    server.take_peak()
    before = load(server, options, capacity / 5, calm, 2)["rows"]
    peaks = [server.take_peak()]
    during = load(server, options, 4 * capacity, options.seconds, 3)
    peaks.append(server.take_peak())
    after = load(server, options, capacity / 5, calm, 4)["rows"]
    peaks.append(server.take_peak())
    return {
        "capacity": capacity, "rate": 4 * capacity, "seconds": options.seconds,
        "before": summarize(before, 0, calm), "during": split_answers(during["rows"], options.seconds),
        "after, first 5 s": summarize(after, 0, 5), "after, then": summarize(after, 5, calm),
        "peak_mib": [round(peak / 2**20) for peak in peaks], "same_processes": server.processes() == processes,
        "late_p99_ms": round(during["late_p99_ms"], 1), "connections": during["connections"],
    }  # fmt: skip


def split_answers(rows: Sequence[Sequence[float]], seconds: float) -> Row:
    """By status: how many, how long they took; 0 is a broken connection, -1 one that was given up."""
    by_status: dict[int, list[float]] = {}
    for _, took, status in rows:
        by_status.setdefault(int(status), []).append(took)
    told = {}
    for status, took in sorted(by_status.items()):
        shares = {f"p{share}_ms": in_ms(percentile(took, share)) for share in (50, 99)}
        told[str(status)] = {"requests": len(took), "a_second": round(len(took) / seconds, 1), **shares}
    return told


if __name__ == "__main__":
    main()
