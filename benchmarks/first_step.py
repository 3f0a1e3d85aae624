"""Seconds from the start of `bertsmith pretrain` to its first steps, by its log as it grows.

    python benchmarks/first_step.py CORPUS --device cuda             # twice: as the machine is, and once more
    python benchmarks/first_step.py CORPUS --tiny                    # on a CPU: does it run

The first run on a machine that has just started reads torch from its disk and compiles all; the second one finds both.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLAGS = "--recipe smith --lengths 128 --max-steps 40 --log-every 1 --evaluate-every 1000000"
TINY = "--depth 2 --width 32 --heads 2 --inner 88 --tokens 1024"
TOLD = (1, 2, 10, 40)  # steps
LOOK = 0.02  # seconds between two looks at the log


def run(words: list[str], out: Path) -> dict[str, object]:
    """When each of the steps stood in the log; its record is written when its device is done with it, or later."""
    begun, seen = time.perf_counter(), dict[int, float]()
    process = subprocess.Popen(
        [sys.executable, "-m", "bertsmith", *words, "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    while process.poll() is None:
        log = out / "log.jsonl"
        done = sum('"rate"' in line for line in log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
        seen.update(dict.fromkeys(range(len(seen) + 1, done + 1), round(time.perf_counter() - begun, 2)))
        time.sleep(LOOK)
    if process.returncode:
        sys.exit(process.stdout.read() if process.stdout else "it failed")
    return {"step": {step: seen[step] for step in TOLD if step in seen}, "ended": round(time.perf_counter() - begun, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", type=Path, help="the folder that `bertsmith corpus build` wrote")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--flags", type=shlex.split, default=[], help="more flags of pretrain")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if options.corpus is None:  # `make bench` calls every script
        return parser.print_help()
    words = ["pretrain", *shlex.split(FLAGS), *(shlex.split(TINY) if options.tiny else []), *options.flags]
    print(f"bertsmith {shlex.join(words)} --corpus CORPUS --device {options.device}")
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            line = [*words, "--corpus", str(options.corpus), "--device", options.device]
            print(json.dumps(run(line, Path(folder, "run"))), flush=True)


if __name__ == "__main__":
    main()
