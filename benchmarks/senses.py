"""How well each layer of an encoder tells the senses of a word apart: CoarseWSD-20 by the nearest use.

    python benchmarks/senses.py DIR --out benchmarks/results/senses.json
    python benchmarks/senses.py DIR --model FOLDER --model FOLDER --device cuda --out benchmarks/results/senses.json

Each use of a word in the test set gets the sense of the nearest use in the training set, by the cosine of their
vectors at a layer (the mean of the word's pieces); nothing is trained. DIR holds a folder a word, as it is distributed.
Beside the figures a picture is written, OUT with the ending .svg. `--most N` draws N uses of each word and split.
"""

import argparse
import json
import shlex
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import torch
from origins import find_commit, find_model, name_machine

import bertsmith
from bertsmith.inspection.senses_scores import SenseScores, draw_scores, score_senses
from bertsmith.models.hub import HOUSE, name_of


def main() -> None:
    if len(sys.argv) == 1:  # `make bench` calls every script, and the data is not shipped
        return print(__doc__)
    options = read_options()
    found: dict[str, SenseScores] = {}
    seconds: dict[str, float] = {}
    for folder in options.model or [find_model(), HOUSE]:
        name = name_of(Path(folder)).rpartition("/")[2]
        model = bertsmith.load(folder, device=options.device, threads=options.threads)
        start = time.perf_counter()
        found[name] = score_senses(model, options.data, most=options.most, tell=tell)
        seconds[name] = round(time.perf_counter() - start, 1)
        print_table(name, found[name])
        if options.out:
            write(options, found, seconds)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DIR", help="folder of CoarseWSD-20")
    parser.add_argument("--model", action="append", help="folder of an encoder; may be repeated; else the default")
    parser.add_argument("--most", type=int, help="uses of each word and split, where there are more; else all")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the figures as JSON, and the picture beside them")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    return parser.parse_args()


def tell(name: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{total} {name}", end="", file=sys.stderr, flush=True)


def print_table(name: str, scores: SenseScores) -> None:
    print(f"\n{name}: {sum(one['test'] for one in scores.words):,} uses, {len(scores.words)} words")
    print(f"{'layer':>12} {'micro':>7} {'macro':>7} {'balanced':>9}")
    for row in zip(scores.layers, scores.micro, scores.macro, scores.balanced, strict=True):
        print("{:>12} {:7.4f} {:7.4f} {:9.4f}".format(*row))
    print(f"{'frequent':>12} {scores.frequent['micro']:7.4f} {scores.frequent['macro']:7.4f}", flush=True)


def write(options: argparse.Namespace, found: dict[str, SenseScores], seconds: dict[str, float]) -> None:
    record: dict[str, Any] = {
        "about": f"{name_machine(options)}, torch {torch.__version__}",
        "date": str(date.today()),
        "commit": options.commit or find_commit(),
        "command": spell_script(),
        "seconds": seconds,
        "models": {name: scores.data() for name, scores in found.items()},
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    options.out.with_suffix(".svg").write_text(draw_scores(found), encoding="utf-8")


def spell_script() -> str:
    """The command without the folders of whoever ran it."""
    words, place = [], 0
    given = sys.argv[1:]
    while place < len(given):
        word = given[place]
        words.append("DIR" if not word.startswith("-") and Path(word).is_dir() else word)
        if word == "--out" and place + 1 < len(given):
            place += 1
            words.append(f"benchmarks/results/{Path(given[place]).name}")
        place += 1
    return shlex.join(["python", "benchmarks/senses.py", *words])


if __name__ == "__main__":
    main()
