"""Short pretrainings before the long one: a change each, what was expected of it, and what came of it.

    python benchmarks/proxies.py uncased-16384=DIR cased-16384=DIR --device cuda --blimp DIR --held-out FILE --out FILE
    python benchmarks/proxies.py uncased-16384=DIR --only smith,free,12x512 --data DIR --jobs 6 --device cuda --out FILE
    python benchmarks/proxies.py uncased-16384=DIR --tiny --out FILE      # seconds a row on a CPU: does it run
    python benchmarks/proxies.py --list                                  # the rows, their predictions and their seconds

A corpus is NAME=FOLDER, by `python house/make.py corpus`; a row is made where its corpus is given. `masked` is of the
corpus's own held-out rows, so it compares rows of one corpus only; `words` are the same places of held-out text for
every tokenizer (a cased one must get the case right too). With --data the five tasks of the house model's first row
are fine-tuned from each of the rows asked for, side by side once all are trained. `free` is no architecture that other
libraries open (free_form.py), `moved` asks what the package does not (moved_form.py); the rows -120, -300 and -500 are
longer runs. Of rows that end with replaced tokens the encoder's own mask head is measured, which it then no longer
trains.
"""

import argparse
import json
import shlex
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import free_form
import moved_form
from pretrained import Figures, make_parser, measure_blimp, measure_masked, measure_parts, pretrain
from runs import spell_script

sys.path.insert(0, str(Path(__file__).parent.parent / "house"))
from gathering import shorten

from bertsmith.many import Job, run_job
from bertsmith.workers import Lost, Workers

USUAL = "uncased-16384"
SECONDS = 68.0
LONGER = 120 / SECONDS
AROUND = 30.0  # seconds of compiling, loading and measuring beside the training of a row, for the plan


@dataclass(frozen=True)
class Trial:
    flags: str
    expected: str  # written before it was run
    corpus: str = USUAL
    times: float = 1.0  # of the seconds of a row
    recipe: str = "smith"


# In the order in which they are worth their time.
TRIALS = {
    "smith": Trial("", "the recipe as it stands, by which the others are judged: about 52.7 % of masked words"),
    "free": Trial("", "0.2 to 0.6 points more masked words than smith: the skips and ReLU² each gave about as much",
                  recipe="free"),
    "12x512": Trial("--depth 12 --width 512 --heads 8 --inner 1368",
                    "0.3 points fewer masked words: as many weights, but a tenth fewer tokens a second"),
    "10x640": Trial("--depth 10 --width 640 --heads 10 --inner 1728", "0.4 fewer now; a candidate for 20 minutes"),
    "cased-16384": Trial("", "1.5 points fewer words right, as case must be guessed too; 2 more of F1 in names",
                         "cased-16384"),
    "zero-outputs": Trial("--zero-outputs", "0.1 to 0.3 more, as in the plain script"),
    "replaced-half": Trial("--asks masked:0.5,replaced:0.5",
                           "masked words stay behind by 3; grammar and CoLA gain, as in ELECTRA"),
    "whole-words": Trial("--whole-words", "lower by the masks of pieces, a point higher by whole words"),
    "uncased-24576": Trial("", "more words right (0.5), fewer tokens to read; a third of the weights in the table",
                           "uncased-24576"),
    "seed-2": Trial("--seed 2", "within 0.15 points of the first seed: what less than that says is noise"),
    "half-batch": Trial("--tokens 65536 --first-tokens 32768", "0.3 more in a short run; nothing in a long one"),
    "12x576": Trial("--depth 12 --width 576 --heads 9 --inner 1536",
                    "0.5 fewer now, as it sees a quarter fewer tokens; in 20 minutes it may win, being larger"),
    "average": Trial("--average 0.999", "0.1 more: the fall of the rate does most of it already"),
    "masks-30-10": Trial("--mask-rate 0.3:0.1", "within noise at 15 %"),
    "6x768": Trial("--depth 6 --width 768 --heads 12 --inner 2048",
                   "equal masked words at a higher speed, worse on BLiMP: grammar wants depth"),
    "cased-24576": Trial("", "makes up for most of what case costs", "cased-24576"),
    "uncased-32768": Trial("", "as 24,576 in words, slower by the larger softmax", "uncased-32768"),
    "replaced-light": Trial("--asks masked:0.7,replaced:0.3 --generator-share 0.25 --replaced-weight 10",
                            "loses less of the masked words, gains half as much"),
    "length-early": Trial("--lengths 128:0.7,512:0.3", "0.3 fewer at rows of 128, more at long documents"),
    "length-256": Trial("--lengths 128:0.6,256:0.3,512:0.1", "0.1 fewer at rows of 128"),
    "masks-40-15": Trial("--mask-rate 0.4:0.15", "0.2 lower: too little is left to guess from"),
    "spans": Trial("--spans", "lower in both; spans pay where answers are spans"),
    "double-batch": Trial("--tokens 262144 --first-tokens 131072", "1 fewer in a short run; a candidate for the end"),
    "rate-3e-3": Trial("--rate 3e-3", "0.2 fewer"),
    "z-loss": Trial("--z-loss 1e-4", "no difference"),
    "modernbert-local": Trial("--preset modernbert-base --depth 8 --width 640 --heads 10 --inner 1728 --positions 512",
                              "no difference: with rows of 128 a window of 64 to each side is nearly everything"),
    "smith-120": Trial("", "56 % of masked words; the row that free-120 and replaced-120 are judged by",
                       times=LONGER),
    "free-120": Trial("", "0.3 to 0.6 points more masked words than smith-120, no more than 1.0 in the mean of tasks",
                      times=LONGER, recipe="free"),
    "replaced-120": Trial("--asks masked:0.5,replaced:0.5",
                          "CoLA 2 to 4 above smith-120, the others below it: equal in the mean of tasks",
                          times=LONGER),
    "hybrid-120": Trial("--asks masked:0.5,replaced:0.5 --stay-hidden 0.5",
                        "2 points of masked words below smith-120; of what replaced-120 gains in CoLA, most",
                        times=LONGER),
    "hybrid-30-120": Trial("--asks masked:0.5,replaced:0.5 --stay-hidden 0.5 --mask-rate 0.3",
                           "as many tokens are replaced as in ELECTRA: a point more of CoLA than hybrid-120",
                           times=LONGER),
    "hybrid-light-120": Trial("--asks masked:0.5,replaced:0.5 --stay-hidden 0.5 --mask-rate 0.3 --replaced-weight 10",
                              "two points more masked words than hybrid-30-120, two fewer of CoLA", times=LONGER),
    "hybrid-masked-120": Trial("--asks masked:0.4,replaced:0.5,masked:0.1 --stay-hidden 0.5",
                               "masks alone at the end: pseudo-perplexity of 11, CoLA as hybrid-120", times=LONGER),
    "hybrid-all-120": Trial("--asks replaced --stay-hidden 0.5",
                            "as hybrid-120 in tasks, 2 more points of masked words behind: fewer tokens are read",
                            times=LONGER),
    "replaced-then-masked-120": Trial("--asks masked:0.45,replaced:0.45,masked:0.1",
                                      "masked words a point below smith-120; half of what replaced-120 gains in CoLA",
                                      times=LONGER),
    "hybrid-late-120": Trial("--asks masked:0.75,replaced:0.15,masked:0.1 --stay-hidden 0.5",
                             "half of what hybrid-120 gains in CoLA, 1.5 points of masked words below smith-120",
                             times=LONGER),
    "moved-120": Trial("", "CoLA 4 points above smith-120, masked words half a point below, BLiMP a point above",
                       times=LONGER, recipe="moved"),
    "moved-heavy-120": Trial("", "a point more of CoLA than moved-120, a point of masked words below it", times=LONGER,
                             recipe="moved-heavy"),
    "near-120": Trial("", "CoLA 5 points above smith-120, masked words a point below; the other tasks as they are",
                      times=LONGER, recipe="near"),
    "smith-300": Trial("", "60 % of masked words, BLiMP 76, a mean of 70; the row that hybrid-late-300 is judged by",
                       times=300 / SECONDS),
    "hybrid-late-300": Trial("--asks masked:0.7,replaced:0.2,masked:0.1 --stay-hidden 0.5",
                             "CoLA 4 above smith-300 and the mean 1.2, BLiMP a point below, pseudo-perplexity 6 to 5",
                             times=300 / SECONDS),
    "causal-120": Trial("--asks causal:0.25,masked:0.75",
                        "half a point more masked words than smith-120 and a point more of BLiMP, tasks within noise",
                        times=LONGER),
    "smith-500": Trial("", "63 % of masked words, the plain script's figure", times=500 / SECONDS),
    "free-500": Trial("", "0.5 points above smith at the same seconds, below 1.0 in the mean of tasks",
                      times=500 / SECONDS, recipe="free"),
}  # fmt: skip
FORMS = {free_form.NAME: free_form, **dict.fromkeys(moved_form.WEIGHTS, moved_form)}  # recipes of their own programs
LONG = tuple(name for name, trial in TRIALS.items() if trial.times > 1)  # only by name
TINY = "--depth 4 --width 64 --heads 4 --inner 128 --tokens 1024 --lengths 32"

# Task -> files, metric, epochs. No dropout, as in pretraining; one rate for all rows, the middle of the house model's.
TASKS = {
    "cola": ("classify", "glue/CoLA/train.tsv", "glue/CoLA/dev.tsv", "matthews", 6),
    "sst2": ("classify", "glue/SST-2/train.tsv", "glue/SST-2/dev.tsv", "accuracy", 1),
    "mrpc": ("classify", "glue/MRPC/train.tsv", "glue/MRPC/dev.tsv", "accuracy", 8),
    "rte": ("classify", "glue/RTE/train.tsv", "glue/RTE/dev.tsv", "accuracy", 8),
    "stsb": ("regress", "glue/STS-B/train.tsv", "glue/STS-B/dev.tsv", "spearman", 6),
}
TASK_SETTINGS = {"rate": 6e-5, "length": 256, "batch": 32, "evaluate_every": 1_000_000}
SEEDS = (1, 2)


def spell(name: str, options: argparse.Namespace) -> list[str]:
    """The flags of `bertsmith pretrain` for a row."""
    trial = TRIALS[name]
    flags = drop_sizes(trial.flags) if options.tiny else trial.flags
    words = ["--recipe", trial.recipe, *shlex.split(TINY if options.tiny else ""), *shlex.split(flags)]
    if options.tiny:
        return [*words, "--max-steps", "6"]
    return [*words, "--minutes", f"{options.seconds * trial.times / 60:.5g}"]


def drop_sizes(flags: str) -> str:
    """What is asked and how, without sizes that a CPU cannot do."""
    words = shlex.split(flags)
    large = ("--depth", "--width", "--heads", "--inner", "--preset", "--positions", "--tokens", "--first-tokens",
             "--lengths")  # fmt: skip
    return shlex.join(w for i, w in enumerate(words) if w not in large and (not i or words[i - 1] not in large))


def work(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """A run, and what is measured of it; what the run cost is kept though something behind it fails."""
    trial, folder, length = TRIALS[name], options.keep / name, 32 if options.tiny else 128
    options.corpus = options.corpora[trial.corpus]
    program = (FORMS[trial.recipe].__file__ or "",) if trial.recipe in FORMS else ("-m", "bertsmith")
    found: dict[str, Any] = {"corpus": trial.corpus, "expected": trial.expected}
    found |= pretrain(spell(name, options), folder, options, program)
    parts = {
        "masked": lambda: measure_masked(folder, options, length=length),
        "blimp": lambda: measure_blimp(folder, options.blimp, options, 3 if options.tiny else 100),
        "words": lambda: measure_words(folder, options),
    }
    needs = {"blimp": options.blimp, "words": options.held_out}
    wanted = {part: measure for part, measure in parts.items() if part not in needs or needs[part] is not None}
    return found | measure_parts(wanted)


def measure_words(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    import bertsmith

    model = bertsmith.load(folder, device=options.device)
    found = bertsmith.evaluate_masked(options.held_out, model, samples=20 if options.tiny else 2000, length=128)
    return {kind: one["value"] for kind, one in found["accuracy"].items()}


def measure_tasks(names: list[str], figures: Figures, options: argparse.Namespace) -> None:
    """All rows' tasks side by side, the mean of the seeds of each; the weights of the last epoch."""
    given = {"device": options.device, **TASK_SETTINGS, **({"max_steps": 2} if options.tiny else {})}
    jobs, whose = [], []
    for row, (name, (kind, train, dev, metric, epochs)), seed in product(names, TASKS.items(), SEEDS):
        files = {"train": options.data / train, "dev": options.data / dev}
        if options.tiny:
            files = {side: shorten(file, options.keep / "short") for side, file in files.items()}
        mine = {**given, "model": str(options.keep / row), "task": kind, "epochs": epochs, "metric": metric,
                "seed": seed, **{side: str(file) for side, file in files.items()}}  # fmt: skip
        home = options.keep / "tasks" / f"{row}-{name}-{seed}"
        jobs.append(Job(f"{row} {name} {seed}", home, {}, mine, (metric,), overwrite=True))
        whose.append((row, name, metric))
    scores: dict[str, dict[str, list[float]]] = {row: {name: [] for name in TASKS} for row in names}
    with Workers(min(options.jobs, len(jobs)), options.threads, run_free) as workers:
        for place, done in workers.run(jobs):
            row, name, metric = whose[place]
            if isinstance(done, Lost) or done.error:
                told = done.why if isinstance(done, Lost) else done.error
                figures.rows[row]["tasks"] = {"error": f"{jobs[place].name}: {told}"}
            elif "error" not in figures.rows[row].get("tasks", {}):
                scores[row][name].append(round(100 * done.value(metric), 2))
                figures.rows[row]["tasks"] = sum_up(scores[row])
            figures.write()


def sum_up(scores: dict[str, list[float]]) -> dict[str, Any]:
    """The means of tasks and of all, where every seed is known; the seeds beside them."""
    means = {name: round(fmean(found), 2) for name, found in scores.items() if len(found) == len(SEEDS)}
    whole = {"mean": round(fmean(means.values()), 2)} if len(means) == len(TASKS) else {}
    return {**means, **whole, "seeds": scores}


def run_free(job: Job) -> Any:
    """A fine-tuning in a fresh process, of a free form too."""
    free_form.install()
    return run_job(job)


def tell(row: dict[str, Any]) -> str:
    """One line: what came of it."""
    masked, words, blimp = row.get("masked", {}), row.get("words", {}), row.get("blimp", {})
    parts = [f"masked {100 * masked['accuracy']:.2f} % (loss {masked['loss']:.3f})"] if "accuracy" in masked else []
    parts += [f"words {100 * words['all']:.1f} %"] if "all" in words else []
    parts += [f"BLiMP {100 * blimp['accuracy']:.1f}"] if "accuracy" in blimp else []
    parts += [f"tasks {row['tasks']['mean']:.1f}"] if "mean" in row.get("tasks", {}) else []
    return f"{row['name']:16} {', '.join(parts)}; {row['tokens_per_second'] / 1e6:.2f}M tokens/s"


def list_trials(names: list[str], options: argparse.Namespace) -> None:
    total = 0.0
    for name in names:
        trial = TRIALS[name]
        seconds = options.seconds * trial.times + AROUND + (40 if options.data else 0)
        total += seconds
        print(f"{name:16} {trial.corpus:14} about {seconds:4.0f} s: {shlex.join(spell(name, options))}\n"
              f"{'':16} expected: {trial.expected}")  # fmt: skip
    print(f"{'all':16} about {total:.0f} s")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("more", nargs="*", metavar="NAME=CORPUS", help="the corpora; a bare folder is " + USUAL)
    parser.add_argument("--seconds", type=float, help=f"of training, a row; else {SECONDS:g}")
    parser.add_argument("--blimp", type=Path, help="the folder of BLiMP; else it is left out")
    parser.add_argument("--held-out", type=Path, help="a text of held-out documents; else words are left out")
    parser.add_argument("--data", type=Path, help="the folder of the tasks; else none is fine-tuned")
    parser.add_argument("--jobs", type=int, default=10, help="fine-tunings side by side")
    options = parser.parse_args()
    options.seconds = options.seconds or SECONDS
    given = [str(one).rpartition("=") for one in [options.corpus, *options.more] if one]
    options.corpora = {name or USUAL: Path(folder) for name, _, folder in given}
    names = options.only or [name for name in TRIALS if name not in LONG]
    if unknown := [name for name in names if name not in TRIALS]:
        parser.error(f"there is no row {unknown[0]}; the rows are {', '.join(TRIALS)}")
    if options.list or not options.corpora:  # `make bench` calls every script, and the text cannot be shipped
        return list_trials(names, options)
    free_form.install()
    figures = Figures(options, spell_script())
    figures.facts["seconds"] = options.seconds
    for name in names:
        if TRIALS[name].corpus not in options.corpora:
            print(f"{name}: needs the corpus {TRIALS[name].corpus}", flush=True)
            continue
        row = figures.make(name, lambda name=name: work(name, options))  # type: ignore[misc]
        print(row["error"][-300:] if "error" in row else tell(row), flush=True)
    made = [name for name in names if "tokens" in figures.rows.get(name, {})]
    unknown_tasks = [name for name in made if options.again or "mean" not in figures.rows[name].get("tasks", {})]
    if options.data and unknown_tasks:
        measure_tasks(unknown_tasks, figures, options)
    print(json.dumps({name: tell(row) for name, row in figures.rows.items() if "error" not in row}, indent=1))
    sys.exit(figures.status())


if __name__ == "__main__":
    main()
