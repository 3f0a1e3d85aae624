"""Does every objective work: presets, what is asked, how words are hidden, a teacher; equal minutes, the same text.

    python benchmarks/objectives.py CORPUS --device cuda --compile-anew --blimp DIR --keep DIR --out FILE
    python benchmarks/objectives.py CORPUS --tiny --out FILE      # seconds a row on a CPU: does it run
    python benchmarks/objectives.py --figure FILE                 # draws an .svg beside it

Presets keep their parts, questions, masking and optimizer. What a run of minutes needs is changed for all of them: 8
layers of 512 (of which ALBERT shares one; gated ones have an inner width of 1,368, so that a layer has as many weights
as BERT's), 32,768 tokens a step in rows of 128 (two minutes are short of steps, not of tokens: with twice as many
tokens a step those that normalise behind the sum spent a third of the run before they looked around themselves), no
dropout, warm-up over 5 %; `bert` learns at 5e-4, as its 1e-4 is for a million steps, `albert` too and by AdamW (with
LAMB it did not learn in 2 minutes, at its paper's rate nor at 1e-2) in steps of 16,384 tokens, `modernbert` falls over
20 % in place of 3 %. `electra` warms up over 10 %: in steps of its paper's 16,384 tokens it told nothing replaced
in 7,620 steps, its generator filling 41 % of the masks, and at 2e-4 both stayed near where they began. Then one shape,
BERT's, and one change at a time against `masked`; `bert` is that with next sentences. Last a small student,
DistilBERT's parts, alone and, as its recipe has it, taught by the best of all of them; it is compared with its teacher
at the hidden words alone, as at all of them (the paper's way) it made half the steps. With --compile-anew all rows
compile from nothing, in a process that has all imported; while one compiles, the one before it is measured.

`masked at 15 %` is measured the same for all: pieces, held-out rows of 128, the same masks; what a run measures by its
own questions stands beside it. The mask head of ELECTRA is its generator's: masked words and BLiMP are that one's.
"""

import argparse
import json
import shlex
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pretrained import Figures, make_parser, measure_blimp, measure_masked, measure_parts, pretrain
from pretrained_open import compare

from bertsmith.training.recipes import Asking, find_recipe

ALL = "--tokens 32768 --lengths 128 --dropout 0 --warmup 0.05"
SHAPE = "--depth 8 --width 512 --heads 8"
GATED = f"{SHAPE} --inner 1368"
TINY_ALL = "--tokens 1024 --lengths 32 --dropout 0 --warmup 0.05"
TINY = {SHAPE: "--depth 2 --width 32 --heads 2", GATED: "--depth 2 --width 32 --heads 2 --inner 88"}
BERT = "--recipe bert --rate 5e-4"
MOST = 2 / 3  # of a row's minutes are steps, or its name in the figure says how long they took


@dataclass(frozen=True)
class Row:
    group: str
    flags: str
    shape: str = SHAPE
    is_taught: bool = False
    own: str = ""  # in place of what all have


ROWS = {
    "bert": Row("preset", BERT),
    "roberta": Row("preset", "--recipe roberta"),
    "albert": Row("preset", "--recipe albert --optimizer adamw --rate 5e-4", own="--tokens 16384"),
    "electra": Row("preset", "--recipe electra", own="--warmup 0.1"),
    "modernbert": Row("preset", "--recipe modernbert --cooldown 0.2", GATED),
    "smith": Row("preset", "--recipe smith", GATED),
    "masked": Row("one change", f"{BERT} --asks masked"),
    "masked+order": Row("one change", f"{BERT} --asks masked+order"),
    "static": Row("one change", f"{BERT} --asks masked --static"),
    "whole-words": Row("one change", f"{BERT} --asks masked --whole-words"),
    "student": Row("student", "--recipe distilbert --asks masked", "STUDENT"),
    "distilbert": Row("student", "--recipe distilbert --asks distilled --distil-masked", "STUDENT", is_taught=True),
}
TEACHERS = tuple(name for name, row in ROWS.items() if row.group != "student" and name != "electra")


def spell(name: str, options: argparse.Namespace, teacher: str = "BEST") -> list[str]:
    """The flags of `bertsmith pretrain` for a row."""
    row = ROWS[name]
    shape = student_shape(options) if row.shape == "STUDENT" else TINY[row.shape] if options.tiny else row.shape
    words = shlex.split(f"{row.flags} {shape} {TINY_ALL if options.tiny else f'{ALL} {row.own}'}")
    taught = ["--teacher", teacher] if row.is_taught else []
    return [*words, *taught, "--minutes", f"{options.minutes:.5g}"]


def student_shape(options: argparse.Namespace) -> str:
    depth, width = ("1", "32") if options.tiny else options.student.split("x")
    return f"--depth {depth} --width {width} --heads {max(1, int(width) // (16 if options.tiny else 64))}"


def choose_teacher(figures: Figures, options: argparse.Namespace) -> str:
    """The row with the best masked words whose folder is still there; ELECTRA's own network fills no masks."""
    known = {name: figures.rows[name]["masked"]["accuracy"] for name in TEACHERS
             if "masked" in figures.rows.get(name, {}) and (options.keep / name / "config.json").exists()}  # fmt: skip
    if not known:
        raise RuntimeError(f"no folder of {', '.join(TEACHERS)} is in {options.keep}; make one of them --again.")
    return max(known, key=lambda name: known[name])


def train(name: str, figures: Figures, options: argparse.Namespace) -> dict[str, Any]:
    row = ROWS[name]
    teacher = choose_teacher(figures, options) if row.is_taught else ""
    words = spell(name, options, str(options.keep / teacher))
    found: dict[str, Any] = {"group": row.group, **({"teacher": teacher} if teacher else {})}
    return found | pretrain(words, options.keep / name, options)


def measure(name: str, found: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """What the folder of a run says, beside what is known of the run."""
    folder, length, words = options.keep / name, 32 if options.tiny else 128, spell(name, options)
    filling = folder / "generator" if (folder / "generator").is_dir() else folder
    found["masked"] = measure_masked(filling, options, length=length)
    parts: dict[str, Callable[[], Any]] = {
        "transformers": lambda: compare(folder, options.corpus, asking_of(words), length)
    }
    if options.blimp is not None:
        parts["blimp"] = lambda: measure_blimp(filling, options.blimp, options, 5 if options.tiny else options.pairs)
    return found | measure_parts(parts)


def make_rows(names: list[str], figures: Figures, options: argparse.Namespace) -> None:
    """One after the other. A row is measured while the next one compiles and its device is idle; with nothing to
    compile, or where a teacher must be chosen among those that are known, the next one waits for that."""
    with ThreadPoolExecutor(1) as beside:
        measured: list[Future[Any]] = [beside.submit(import_module, "transformers")]  # takes as long as a measurement
        for name in names:
            if not options.compile_anew or ROWS[name].is_taught:
                wait(measured)
            if figures.has(name):
                continue
            try:
                found = train(name, figures, options)
            except Exception:
                found = {"error": traceback.format_exc()[-2000:]}
            make = partial(dict, found) if "error" in found else partial(measure, name, found, options)
            measured.append(beside.submit(figures.make, name, make))


def asking_of(words: list[str]) -> Asking:
    """What a run's flags ask of a batch, its teacher aside."""
    recipe = words[words.index("--recipe") + 1]
    asks = words[words.index("--asks") + 1] if "--asks" in words else find_recipe(recipe, {}).asking.asks
    return Asking("masked" if asks == "distilled" else asks)


def draw(path: Path) -> None:
    """Bars for masked words and BLiMP, and the curves of the presets."""
    import matplotlib  # type: ignore[import-not-found,unused-ignore]

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [row for row in found["rows"] if "masked" in row]
    colours = {"preset": "#4c72b0", "one change": "#dd8452", "student": "#55a868"}
    figure, axes = pyplot.subplots(1, 3, figsize=(14, 0.32 * len(rows) + 1.6), width_ratios=(1, 1, 1.1))
    names = [tell_name(row, found["minutes"]) for row in rows]
    shown = {
        "masked words right, held out, %": (0, [100 * row["masked"]["accuracy"] for row in rows]),
        "BLiMP, %, from chance on": (50, [100 * row.get("blimp", {}).get("accuracy", float("nan")) for row in rows]),
    }
    for axis, (title, (start, values)) in zip(axes, shown.items(), strict=False):
        bars = axis.barh(names, values, color=[colours[row["group"]] for row in rows])
        axis.bar_label(bars, fmt="%.1f", padding=2, fontsize=8)
        axis.invert_yaxis()
        axis.set_title(title, fontsize=10)
        axis.set_xlim(start, start + 1.15 * (max((v for v in values if v == v), default=start + 1) - start))
    for row in rows:
        if row["group"] != "student" and row["name"] in names:  # the first figure of others is another one
            points = row["curve"]["held_out"]
            style = {"linestyle": "-" if row["group"] == "preset" else "--", "marker": ".", "linewidth": 1}
            axes[2].plot([x for x, _ in points], [100 * y for _, y in points], label=row["name"], **style)
    axes[2].set_title("masked words by a run's own masks, %", fontsize=10)
    axes[2].set_xlabel("share of the run")
    axes[2].legend(fontsize=7)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def tell_name(row: dict[str, Any], minutes: float) -> str:
    """What its bars must be read with: whose they are, and the seconds of a run that had less than most of its time."""
    short = f" ({row['seconds']:.0f} s)" if row["seconds"] < MOST * 60 * minutes else ""
    return row["name"] + (" (generator)" if row["name"] == "electra" else short)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="of training, a row")
    parser.add_argument("--seconds", type=float, help="the same in seconds")
    parser.add_argument("--blimp", type=Path, help="the folder of BLiMP; else it is left out")
    parser.add_argument("--pairs", type=int, help="of each set of BLiMP; else all")
    parser.add_argument("--compile-anew", action="store_true", help="every run compiles anew; its process is ready")
    parser.add_argument("--student", default="4x384", help="LAYERSxWIDTH; a teacher as wide lends its states too")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the figures of this file and run nothing")
    options = parser.parse_args()
    if options.figure:
        return draw(options.figure)
    options.minutes = options.seconds / 60 if options.seconds else 0.05 if options.tiny else options.minutes
    names = options.only or list(ROWS)
    if unknown := [name for name in names if name not in ROWS]:
        parser.error(f"there is no row {unknown[0]}; the rows are {', '.join(ROWS)}")
    if options.list or options.corpus is None:  # `make bench` calls every script, and the text cannot be shipped
        for name in names:
            print(f"bertsmith pretrain --corpus CORPUS {shlex.join(spell(name, options))} --out runs/{name}")
        return None
    command = f"python benchmarks/objectives.py CORPUS --device {options.device} --minutes {options.minutes:g}"
    command += " --cold" * options.cold + " --compile-anew" * options.compile_anew
    command += " --blimp DIR" * bool(options.blimp) + (f" --pairs {options.pairs}" if options.pairs else "")
    figures = Figures(options, command)
    figures.facts["minutes"] = options.minutes
    make_rows(names, figures, options)
    sys.exit(figures.status())


if __name__ == "__main__":
    main()
