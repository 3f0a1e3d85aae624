"""What it costs to begin: processor seconds of `--help` and of the imports, beside those of the neighbours.

    python benchmarks/startup.py

Each line is the least of several fresh processes, user and system time together, on top of a bare interpreter.
"""

import os
import subprocess
import sys

CASES = {
    "bertsmith --help": "import sys; sys.argv = ['bertsmith', '--help']; from bertsmith.cli import main; main()",
    "import bertsmith": "import bertsmith",
    "import torch": "import torch",
    "import torch, bertsmith.model": "import torch, bertsmith.model",
    "from transformers import pipeline": "from transformers import pipeline",
    "import sentence_transformers": "import sentence_transformers",
}


def cpu_seconds(code: str, rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        best = min(best, used)
    return best


def main() -> None:
    bare = cpu_seconds("pass")
    print(f"{'bare interpreter':36} {bare:6.2f} s")
    for name, code in CASES.items():
        print(f"{name:36} {cpu_seconds(code) - bare:6.2f} s more")


if __name__ == "__main__":
    main()
