"""What the scripts share that fine-tune many times: options, runs through the command line, figures kept as they come.

A run is a process of its own, so that it costs and says what it would for a person who types it.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

from origins import find_commit, find_model, name_machine


def make_parser(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the datasets")
    parser.add_argument("--model", type=Path, help="folder of the encoder; the default is all-MiniLM-L6-v2")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--flags", type=shlex.split, default=[], help="more flags of finetune, as in '--max-steps 20'")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, after every run")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
    return parser


def finetune(
    words: list[str], options: argparse.Namespace, look: Callable[[Path], Any] | None = None
) -> dict[str, Any]:
    """Run `bertsmith finetune WORDS`: its metrics, speed and time; one that fails leaves the end of what it said.

    `look` may read more of the run's folder before it goes, into `seen`.
    """
    threads = {"OMP_NUM_THREADS": str(options.threads), "RAYON_NUM_THREADS": str(options.threads)}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run")
        line = [sys.executable, "-m", "bertsmith", "finetune", *words, "--out", str(out)]
        line += ["--model", str(options.model or find_model())]
        line += ["--device", options.device, "--threads", str(options.threads), *options.flags]
        done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **threads})
        if done.returncode:
            return {"error": (done.stderr or done.stdout)[-2000:]}
        report = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
        seen = {} if look is None else {"seen": look(out)}
    found = {"metrics": report["metrics"], "speed": report["speed"], "lengths": report["lengths"]}
    return {**found, **seen, "wall_s": round(time.perf_counter() - start, 1)}


def side_by_side(
    turns: Iterable[Any],
    work: Callable[[Any], dict[str, Any]],
    options: argparse.Namespace,
    tell: Callable[[dict[str, Any]], str],
    table: Callable[[list[dict[str, Any]]], Any],
) -> tuple[list[dict[str, Any]], int]:
    """Work through the turns, `jobs` at a time; after each its line is printed and all figures are written.

    Gives the runs and the exit status: 1 where one failed.
    """
    runs: list[dict[str, Any]] = []
    lock = threading.Lock()

    def keep(turn: Any) -> None:
        one = work(turn)
        with lock:
            runs.append(one)
            print(one["error"] if "error" in one else tell(one), flush=True)
            write(options, {"table": table(runs), "runs": runs})

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(keep, turns))
    return runs, int(any("error" in one for one in runs))


def write(options: argparse.Namespace, found: dict[str, Any]) -> None:
    """The figures with where they are from; what is done stays done if the time runs out."""
    if options.out is None:
        return
    import torch

    beside = f", {options.jobs} runs side by side" if options.jobs > 1 else ""
    about = {
        "about": f"{name_machine(options)}, torch {torch.__version__}{beside}",
        "date": str(date.today()),
        "commit": options.commit or find_commit(),
        "command": spell_script(),
    }
    options.out.write_text(json.dumps({**about, **found}, indent=1) + "\n", encoding="utf-8")


def spell_script() -> str:
    """The command of the script without the folders of whoever ran it."""
    folders = ("--data", "--model", "--out", "--cache", "--keep", "--held-out", "--blimp")
    words = ["", *sys.argv[1:]]
    shown = ["DIR" if words[place - 1] in folders else hide_folder(words[place]) for place in range(1, len(words))]
    return f"python benchmarks/{Path(sys.argv[0]).name} {shlex.join(shown)}".rstrip()


def hide_folder(word: str) -> str:
    """A path, alone or behind NAME=, without where it is."""
    name, equals, _ = word.rpartition("=")
    return f"{name}{equals}DIR" if "/" in word else word
