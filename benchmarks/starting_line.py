"""The `smith` recipe for 500 seconds against a plain script of 130 lines on the same text, machine and time.

    python benchmarks/starting_line.py train CORPUS --device cuda --keep DIR --out FILE      # 500 seconds
    python benchmarks/starting_line.py measure CORPUS --device cuda --keep DIR --data GLUE --blimp DIR --out FILE
    python benchmarks/starting_line.py train CORPUS --of replaced ...                        # another form, then
    python benchmarks/starting_line.py measure CORPUS --of replaced ...                      # what came of it
    python benchmarks/starting_line.py cut CORPUS --keep DIR                                 # rows of it: DIR/rows
    python benchmarks/starting_line.py train DIR/rows --of rows ...                          # 500 seconds on that
    python benchmarks/starting_line.py ablate CORPUS --device cuda --seconds 68 --out FILE   # one row a change
    python benchmarks/starting_line.py figures --out FILE        # starting-line-curve.svg, starting-line-ablations.svg

Modes share one file of figures and may be calls of their own; `measure` is `blimp`, `glue` and `warm` side by side.
GLUE as the plain script had it: the mean of two seeds at the best of three rates, 10 epochs
(SST-2: 2 epochs, one seed), batch 32; the weights of the last epoch are scored, so nothing but the rate is chosen on
dev. `warm` starts RTE, MRPC and STS-B from a model of MNLI's first 10,000 examples.
Forms of the recipe are --of, in rows of figures whose names begin with theirs. `replaced` asks for replaced tokens
beside masked ones in the middle of the run, as the house model's longest trial did. `rows` is what the plain script
did: it set rows of running text apart, not documents, so that it had read what stands around them; it read rows of 128
to the end. `cut` makes such rows of a corpus, each of them a document, and sets one in a hundred apart by its hash. The
plain script's 769M tokens at 1.54M a second fill its 500 seconds without compilation; here the clock includes what is
compiled: with --cold all of it, else what no run before it has.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from pretrained import Figures, environment, make_parser, measure_blimp, measure_masked, pretrain

from bertsmith.data.shards import FILES, HEADER, SPLITS, TOKENIZER, Corpus, file_digest

PLAIN = {"masked": 63.1, "loss": 1.798, "blimp": 74.8, "cola": 46.8, "sst2": 90.1, "mrpc": 78.7, "rte": 54.7,
         "stsb": 84.1, "mean": 70.9, "mnli": 62.9}  # fmt: skip
PLAIN_WARM = {"cola": 46.8, "sst2": 90.1, "mrpc": 80.5, "rte": 66.6, "stsb": 84.2, "mean": 73.6}
METRICS = {"cola": "matthews", "sst2": "accuracy", "mrpc": "accuracy", "rte": "accuracy", "stsb": "pearson"}
RATES = ("3e-5", "6e-5", "1.2e-4")
SMALL, PAIRED = ("cola", "mrpc", "rte", "stsb"), ("mrpc", "rte", "stsb")
LAST = ["--evaluate-every", "1000000"]  # never before the end: no epoch is chosen on dev
PAIR_OF_SEEDS = ["--seeds", "1,2", "--jobs", "2", "--epochs", "10"]
TINY = ["--depth", "2", "--width", "32", "--heads", "2", "--inner", "88", "--tokens", "1024", "--lengths", "32"]
MODES = ("train", "cut", "blimp", "glue", "warm", "measure", "ablate", "figures")
ROW = 126  # tokens, between [CLS] and [SEP]
FORMS = {
    "smith": "",
    "replaced": "--asks masked:0.45,replaced:0.45,masked:0.1 --stay-hidden 0.5",
    "rows": f"--lengths {ROW + 2}",
}

# One change each of the recipe, at the same seconds.
CHANGES = {
    "smith": "",
    "adamw 1e-3": "--optimizer adamw --rate 1e-3",
    "adamw 2e-3": "--optimizer adamw --rate 2e-3",
    "lamb 5e-3": "--optimizer lamb --rate 5e-3",
    "lamb 1e-2": "--optimizer lamb --rate 1e-2",
    "muon 1e-3": "--rate 1e-3",
    "muon 3e-3": "--rate 3e-3",
    "muon 4e-3": "--rate 4e-3",
    "masks 15 %": "--mask-rate 0.15",
    "masks 20 %": "--mask-rate 0.2",
    "masks 30 %": "--mask-rate 0.3",
    "masks only": "--mask-replace 1 --random-replace 0",
    "linear": "--schedule linear",
    "cosine": "--schedule cosine",
    "cooldown 0.2": "--cooldown 0.2",
    "65k tokens a step": "--tokens 65536",
    "131k tokens a step": "--tokens 131072",
    "33k to 65k tokens": "--tokens 65536 --first-tokens 32768",
    "rows of 128": "--lengths 128",
    "whole words": "--whole-words",
    "zero outputs": "--zero-outputs",
    "average 0.999": "--average 0.999",
    "adam 1e-3": "--adam-rate 1e-3",
    "adam 4e-3": "--adam-rate 4e-3",
    "12 x 512": "--depth 12 --width 512 --heads 8 --inner 1368",
    "causal first": "--asks causal+masked",
}


def spell(change: str, seconds: float, options: argparse.Namespace) -> list[str]:
    words = ["--recipe", "smith", *(TINY if options.tiny else []), *change.split()]
    if options.tiny:  # large steps are for large machines
        words = [{"65536": "1024", "131072": "2048", "32768": "512", "12": "3", "512": "64"}.get(w, w) for w in words]
    return [*words, "--minutes", f"{seconds / 60:.5g}"]


def train(change: str, name: str, seconds: float, options: argparse.Namespace) -> dict[str, Any]:
    """A run, and masked words at 15 % by both kinds of held-out rows."""
    length = 32 if options.tiny and options.of != "rows" else ROW + 2
    folder = options.keep / name.replace(" ", "-")
    found = pretrain(spell(change, seconds, options), folder, options)
    found["masked"] = measure_masked(folder, options, length=length)
    if options.of != "rows":  # they are no running text
        found["masked_stream"] = measure_masked(folder, options, "stream", length)
    return found


def cut(options: argparse.Namespace) -> None:
    """The text of a corpus, its held-out documents too, as a corpus of rows without bounds of documents."""
    whole, out = Corpus.open(options.corpus), options.keep / "rows"
    text = np.concatenate([np.asarray(Corpus.open(options.corpus, split).tokens) for split in SPLITS])
    rows = text[: len(text) // ROW * ROW].reshape(-1, ROW)
    digests = (hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    chosen = np.fromiter((int.from_bytes(one, "big") % 100 == 0 for one in digests), bool, len(rows))
    counts = {}
    for split in SPLITS:
        some = rows[chosen == (split == "held-out")]
        bounds = np.arange(0, some.size + 1, ROW, dtype="<u8")
        (out / split).mkdir(parents=True, exist_ok=True)
        for name, array in {"tokens": some, "documents": bounds, "sentences": bounds}.items():
            array.tofile(out / split / FILES[name])
        counts[split] = {"tokens": some.size, "documents": len(some), "sentences": len(some),
                         "sha256": {name: file_digest(out / split / file) for name, file in FILES.items()}}  # fmt: skip
    shutil.copytree(options.corpus / TOKENIZER, out / TOKENIZER, dirs_exist_ok=True)
    (out / HEADER).write_text(json.dumps({**whole.header, "splits": counts}, indent=1) + "\n", encoding="utf-8")
    print(f"{counts['train']['documents']:,} rows to train on in {out}")


def run_glue(name: str, words: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """`bertsmith evaluate --benchmark glue`: for each task the scores of its seeds. One that was cut off goes on."""
    line = [sys.executable, "-m", "bertsmith", "evaluate", "--benchmark", "glue", str(options.data), *words, "--batch",
            "32", "--device", options.device, "--out", str(options.keep / name), "--json", *LAST]  # fmt: skip
    line += ["--max-steps", "2"] if options.tiny else []
    line += ["--overwrite"] if options.again else []
    done = subprocess.run(line, capture_output=True, text=True, env=environment(options))
    if not done.stdout.strip():
        raise RuntimeError(done.stderr[-1500:])
    found = json.loads(done.stdout)
    failed = [run["error"] for task in found["tasks"] for run in task["runs"] if run["error"]]
    scores = {task["task"]: {metric: one["median"] for metric, one in task["metrics"].items()}
              for task in found["tasks"]}  # fmt: skip
    return {"tasks": scores, "seconds": round(found["seconds"], 1), **({"error": failed[0][-800:]} if failed else {})}


def sweep(kind: str, turns: dict[str, list[str]], figures: Figures, options: argparse.Namespace) -> None:
    """All of these side by side, a row each."""

    def work(turn: tuple[str, list[str]]) -> dict[str, Any]:
        name = own(turn[0], options)
        return figures.make(name, lambda: {"kind": own(kind, options), **run_glue(name, turn[1], options)})

    if turns:
        with ThreadPoolExecutor(len(turns)) as pool:
            list(pool.map(work, turns.items()))


def glue(figures: Figures, options: argparse.Namespace) -> None:
    """Side by side: each of the small tasks at each rate, and the one large task at each rate."""
    turns: dict[str, list[str]] = {}
    for rate in options.rates:
        some = ["--rate", rate, "--model", str(folder_of(options))]
        turns[f"sst2 {rate}"] = [*some, "--tasks", "sst2", "--seeds", "1", "--epochs", "2"]
        turns |= {f"{task} {rate}": [*some, "--tasks", task, *PAIR_OF_SEEDS] for task in SMALL}
    sweep("straight", pick(turns, options), figures, options)


def warm(figures: Figures, options: argparse.Namespace) -> None:
    """First MNLI's 10,000 at each rate, then the paired tasks from the best of those."""
    model = ["--model", str(folder_of(options))]
    first = {f"mnli {rate}": ["--rate", rate, *model, "--tasks", "mnli", "--seeds", "1", "--epochs", "5",
                              "--keep-models"] for rate in options.rates}  # fmt: skip
    sweep("mnli", pick(first, options), figures, options)
    rows = {name: figures.rows.get(own(name, options), {}) for name in first}
    scores = {name: row["tasks"]["mnli"]["accuracy"] for name, row in rows.items()
              if "tasks" in row and (options.keep / own(name, options) / "mnli-seed1").is_dir()}  # fmt: skip
    if not scores:
        return
    best = options.keep / own(max(scores, key=lambda name: scores[name]), options) / "mnli-seed1"
    turns = {f"warm {task} {rate}": ["--rate", rate, "--start", f"{task}={best}", "--tasks", task, *PAIR_OF_SEEDS]
             for rate in options.rates for task in PAIRED}  # fmt: skip
    sweep("warm", pick(turns, options), figures, options)


def blimp(figures: Figures, options: argparse.Namespace) -> None:
    limit = 5 if options.tiny else None
    figures.make(own("blimp", options), lambda: measure_blimp(folder_of(options), options.blimp, options, limit))


def folder_of(options: argparse.Namespace) -> Path:
    """The encoder that is measured."""
    found: Path = options.keep / name_run(options).replace(" ", "-")
    return found


def name_run(options: argparse.Namespace) -> str:
    return "smith" if options.of == "smith" else f"smith {options.of}"


def own(name: str, options: argparse.Namespace) -> str:
    """The name of a row of figures, which tells what was measured."""
    return name if options.of == "smith" else f"{options.of} {name}"


MEASURES = {"blimp": blimp, "glue": glue, "warm": warm}


def pick(turns: dict[str, list[str]], options: argparse.Namespace) -> dict[str, list[str]]:
    return {name: words for name, words in turns.items() if not options.only or name in options.only}


def summarize(figures: Figures) -> dict[str, Any]:
    """In percent, at the best rate of each task; beside the plain script's."""
    found: dict[str, Any] = {"plain": PLAIN, "plain_warm": PLAIN_WARM}
    for way, row, before in (("smith", "smith", ""), *((f"smith_{x}", f"smith {x}", f"{x} ") for x in list(FORMS)[1:])):
        ours: dict[str, float] = {}
        for part, end in (("masked", ""), ("masked_stream", "_stream")):
            if measured := figures.rows.get(row, {}).get(part):
                ours |= {f"masked{end}": 100 * measured["accuracy"], f"loss{end}": measured["loss"]}
        if "accuracy" in (grammar := figures.rows.get(f"{before}blimp", {})):
            ours["blimp"] = 100 * grammar["accuracy"]
        straight, mnli, after = (best_of(figures.rows, f"{before}{kind}") for kind in ("straight", "mnli", "warm"))
        found[way] = {**ours, **mnli, **with_mean(straight)}
        found[f"{way}_warm"] = with_mean({**straight, **after} if after else {})
    return {way: scores for way, scores in found.items() if scores}


def best_of(rows: dict[str, dict[str, Any]], kind: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in rows.values():
        for task, scores in row.get("tasks", {}).items() if row.get("kind") == kind else ():
            value = 100 * scores[METRICS.get(task, "accuracy")]
            found[task] = max(value, found.get(task, value))
    return found


def with_mean(scores: dict[str, float]) -> dict[str, float]:
    whole = all(task in scores for task in METRICS)
    return {**scores, "mean": fmean(scores[task] for task in METRICS)} if whole else scores


def draw(figures: Figures, out: Path) -> None:
    """The curve of the long run, and what each change does."""
    import matplotlib  # type: ignore[import-not-found,unused-ignore]

    matplotlib.use("Agg")
    from matplotlib import pyplot

    changes = [row for row in figures.rows.values() if row.get("kind") == "ablation"]
    runs = {
        "smith": "documents set apart, rows of 512 at last",
        "smith replaced": "replaced tokens beside masked ones, too",
        "smith rows": "rows set apart, as the script did",
    }
    if curves := {title: figures.rows[name] for name, title in runs.items() if name in figures.rows}:
        figure, axis = pyplot.subplots(figsize=(7, 4))
        for title, row in curves.items():
            points = row["curve"]["held_out"]
            seconds, right = zip(*((share * row["seconds"], 100 * value) for share, value in points), strict=True)
            axis.plot(seconds, right, marker=".", label=f"smith: {title}")
        axis.axhline(PLAIN["masked"], color="grey", linestyle="--", label=f"plain script at its end, {PLAIN['masked']}")
        axis.set(xlabel="seconds of training", ylabel="masked words right, %")
        axis.legend()
        axis.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        figure.savefig(out / "starting-line-curve.svg", metadata={"Date": None})
    good = sorted((row for row in changes if "masked" in row), key=lambda row: row["masked"]["loss"])
    if good:
        figure, axis = pyplot.subplots(figsize=(7, 0.3 * len(good) + 1.2))
        for place, row in enumerate(good):
            name, loss = row["name"].removeprefix("ablate "), row["masked"]["loss"]
            axis.plot(loss, place, "o", color="#dd8452" if name == "smith" else "#4c72b0")
            axis.annotate(f"{loss:.3f}  ({100 * row['masked']['accuracy']:.1f} %)", (loss, place), (8, -3),
                          textcoords="offset points", fontsize=8)  # fmt: skip
        axis.set_yticks(range(len(good)), [row["name"].removeprefix("ablate ") for row in good])
        axis.invert_yaxis()
        axis.margins(x=0.15)
        axis.grid(axis="x", color="#dddddd")
        axis.set_axisbelow(True)
        seconds = min(row["seconds"] for row in good), max(row["seconds"] for row in good)
        axis.set(
            xlabel=f"masked loss at 15 %, held out (words right), after {seconds[0]:.0f} to {seconds[1]:.0f} s of steps"
        )
        axis.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        figure.savefig(out / "starting-line-ablations.svg", metadata={"Date": None})


def main() -> None:
    parser = make_parser(__doc__, MODES)
    parser.add_argument("--seconds", type=float, help="of training: 500 for train, 68 for ablate")
    parser.add_argument("--blimp", type=Path, help="the folder of BLiMP")
    parser.add_argument("--data", type=Path, help="the folder of GLUE")
    parser.add_argument("--of", default="smith", choices=list(FORMS), help="the form that is trained, or measured")
    parser.add_argument(
        "--rates", type=lambda text: text.split(","), default=RATES, help=f"of fine-tuning: {', '.join(RATES)}"
    )
    options = parser.parse_args()
    if options.list or options.mode is None:  # `make bench` calls every script, and the text cannot be shipped
        for name, change in {**{f"train --of {form}": flags for form, flags in FORMS.items()}, **CHANGES}.items():
            print(f"{name:22} bertsmith pretrain --corpus CORPUS {' '.join(spell(change, 500, options))}")
        return
    wanted = {
        "measure": ("blimp", "data"),
        "blimp": ("blimp",),
        "glue": ("data",),
        "warm": ("data",),
        "figures": ("out",),
    }
    wants = (*(() if options.mode == "figures" else ("corpus",)), *wanted.get(options.mode, ()))
    if missing := [name for name in wants if getattr(options, name) is None]:
        parser.error(f"{options.mode} needs {'CORPUS' if missing[0] == 'corpus' else f'--{missing[0]}'}")
    figures = Figures(options, f"python benchmarks/starting_line.py MODE CORPUS --device {options.device}")
    long = options.seconds or (6 if options.tiny else 500 if options.mode == "train" else 68)
    if options.mode == "cut":
        return cut(options)
    if options.mode == "train":
        figures.make(name_run(options), lambda: train(FORMS[options.of], name_run(options), long, options))
    elif options.mode == "ablate":
        for name in options.only or CHANGES:
            work = lambda name=name: {"kind": "ablation", **train(CHANGES[name], f"ablate {name}", long, options)}  # noqa: E731
            figures.make(f"ablate {name}", work)
    elif options.mode == "figures":
        return draw(figures, options.out.parent)
    else:
        works = MEASURES if options.mode == "measure" else {options.mode: MEASURES[options.mode]}
        with ThreadPoolExecutor(len(works)) as pool:
            list(pool.map(lambda work: work(figures, options), works.values()))
    figures.finish(summarize(figures))


if __name__ == "__main__":
    main()
