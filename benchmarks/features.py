"""A head on a frozen encoder beside full fine-tuning, on CoNLL-2003: the ablation of the BERT paper's table 7.

    python benchmarks/features.py --data DIR --device cuda --seeds 1,2,3,4,5 --jobs 8 --out features.json
    python benchmarks/features.py --data DIR --rows last,mix --seeds 1 --flags '--max-steps 20'
    python benchmarks/features.py --list                    # the commands only

DIR holds eng.train and eng.testa, or conll2003/ with them. As in the paper the figure is the entity F1 on the
development file, by which the best epoch of every row alike was chosen; each row is several runs that differ in their
seed. Runs that read the same layers share one file of features, so that the encoder reads each sentence once for all of
them. `steps_s` is what the optimizer steps alone took, without the features and the evaluations.
"""

import argparse
import shlex
import statistics
import sys
import tempfile
from itertools import product
from typing import Any

from runs import finetune, make_parser, side_by_side

LAYERS = ("last", "sum4", "concat4", "mix")
LINEAR, BILSTM = "--rate 5e-3 --epochs 10", "--recurrent 256 --rate 2e-3 --epochs 10"
ROWS = {
    "full": "--rate 1e-4 --epochs 5",  # as in benchmarks/finetune.py
    **{layers: f"--features {layers} {LINEAR}" for layers in LAYERS},
    **{f"{layers}-bilstm": f"--features {layers} {BILSTM}" for layers in LAYERS},
}
TOLD = {
    "full": "all of it learns",
    "last": "last layer",
    "sum4": "sum of the last four",
    "concat4": "last four side by side",
    "mix": "learned mix of all",
}


def command(name: str, seed: int, data: str) -> list[str]:
    files = ["--task", "tag", "--train", f"{data}/eng.train", "--dev", f"{data}/eng.testa"]
    return [*files, *shlex.split(ROWS[name]), "--seed", str(seed)]


def spell(name: str, seed: int) -> str:
    """What a person types; $DATA is the folder with the two files."""
    cache = "" if name == "full" else " --cache features"
    return f"bertsmith finetune {' '.join(command(name, seed, '$DATA'))} --out runs/{name}-{seed}{cache}"


def work(turn: tuple[int, str], cache: str, options: argparse.Namespace) -> dict[str, Any]:
    seed, name = turn
    words = [*command(name, seed, str(options.data)), "--no-check", *([] if name == "full" else ["--cache", cache])]
    return {"name": name, "seed": seed, "command": spell(name, seed), **finetune(words, options)}


def tabulate(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The median and the deviation over seeds of each row, in the order of ROWS."""
    table = []
    for name in ROWS:
        mine = [one for one in runs if one["name"] == name and "error" not in one]
        if mine:
            scores = [one["metrics"]["dev"]["f1"]["value"] for one in mine]
            line = {"name": name, "median": statistics.median(scores), "seeds": len(mine)}
            line["sd"] = statistics.stdev(scores) if len(mine) > 1 else 0.0
            line["steps_s"] = statistics.median(one["speed"]["seconds"] for one in mine)
            table.append({**line, "wall_s": statistics.median(one["wall_s"] for one in mine)})
    return table


def show(table: list[dict[str, Any]]) -> None:
    print(f"\n{'what a head reads':24} {'head':7} {'dev F1':>13} {'seeds':>5} {'steps':>8} {'whole run':>10}")
    for line in table:
        layers, _, head = line["name"].partition("-")
        score = f"{100 * line['median']:.2f} ± {100 * line['sd']:.2f}"
        print(f"{TOLD[layers]:24} {head or 'linear':7} {score:>13} {line['seeds']:>5} {line['steps_s']:>6.1f} s "
              f"{line['wall_s']:>8.0f} s")  # fmt: skip


def parse() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS), help=", ".join(ROWS))
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--cache", help="folder to keep the features in; else they go with this script")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]}; the rows are {', '.join(ROWS)}")
    return options


def tell(one: dict[str, Any]) -> str:
    score = 100 * one["metrics"]["dev"]["f1"]["value"]
    return f"{one['name']:16} seed {one['seed']}: f1 {score:.2f}, {one['wall_s']} s"


def main() -> None:
    options = parse()
    if options.list or options.data is None:  # `make bench` calls every script, and the data cannot be shipped
        for name in options.rows:
            print(spell(name, options.seeds[0]))
        return
    inner = options.data / "conll2003"
    options.data = inner if inner.is_dir() else options.data
    with tempfile.TemporaryDirectory() as temporary:
        cache = options.cache or temporary
        # Seed by seed: the first of each row computes the features that the others find.
        turns = product(options.seeds, options.rows)
        runs, status = side_by_side(turns, lambda turn: work(turn, cache, options), options, tell, tabulate)
    show(tabulate(runs))
    sys.exit(status)


if __name__ == "__main__":
    main()
