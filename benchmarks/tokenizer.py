"""How tokenizers are trained: the same bytes, how fast, in how much memory, and how few tokens, beside `tokenizers`.

    python benchmarks/tokenizer.py
    python benchmarks/tokenizer.py wiki.txt --size 30000 --runs 20 --peer --out benchmarks/results/tokenizer-cpu.json

Without arguments it trains each kind four times on the documentation beside this script. Every run is a process of its
own, in turn with 1 and 2 threads and under another hash seed. One document in twenty takes no part in training.
Tokens a word are of that held-out text and of the text trained on, words being what stands between spaces; the peer is
the trainer of the `tokenizers` library with the same normalizer, the same splitting into words, the same special tokens
and size, and, for unigram, also as it comes, with pieces that hold letters and punctuation (`--join-punctuation` here).
Seconds are of the clock and of the processors; memory is that of all processes of a run together, looked at 20 times a
second.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Engine
from tokenizers import models, trainers

from bertsmith.text.parts import cut_parts
from bertsmith.text.sources import list_sources, read_documents
from bertsmith.text.training.parallel import count_parts
from bertsmith.text.training.recipes import Recipe, make_recipe

CASES = {"wordpiece": ("wordpiece", False), "bpe": ("bpe", False), "unigram": ("unigram", False),
         "unigram, joined": ("unigram", True)}  # fmt: skip
Row = dict[str, Any]


def main() -> None:
    options = read_options()
    if options.train_peer:
        train_peer(*options.train_peer)
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        train, held_out = split(options.files, Path(folder))
        megabytes = [path.stat().st_size / 1e6 for path in (train, held_out)]
        print(f"{megabytes[0]:.3f} MB to train on, {megabytes[1]:.3f} MB held out", flush=True)
        for name in options.cases:
            rows += measure(name, train, held_out, options, Path(folder))
    if options.out:
        result = {"cores": os.cpu_count(), "megabytes": megabytes[0], "rows": rows}
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="text to train on: files, folders, globs")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--peer", action="store_true", help="train with the tokenizers library too")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    parser.add_argument("--train-peer", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.files:
        root = Path(__file__).parents[1]
        options.files, options.peer = [root / "README.md", root / "docs"], True
    return options


def split(files: list[str], folder: Path) -> tuple[Path, Path]:
    """All but every twentieth document, and those."""
    train, held_out = folder / "train.txt", folder / "held-out.txt"
    with train.open("w", encoding="utf-8") as most, held_out.open("w", encoding="utf-8") as few:
        for number, document in enumerate(read_documents(list_sources(files), unit="blank-line")):
            (few if number % 20 == 19 else most).write(document.text + "\n\n")
    return train, held_out


def measure(name: str, train: Path, held_out: Path, options: argparse.Namespace, folder: Path) -> list[Row]:
    kind, joined = CASES[name]
    ours, digests, costs = folder / "ours", set(), {1: [], 2: []}
    for run in range(options.runs):
        threads = 1 + run % 2
        words = ["-m", "bertsmith", "tokenizer", "train", train, "--kind", kind, "--size", options.size, "--out", ours]
        words += ["--threads", threads, "--overwrite", *(["--join-punctuation"] if joined else [])]
        costs[threads].append(cost(words, {"PYTHONHASHSEED": str(run)}))
        digests.add(digest(ours))
    recipe = make_recipe(kind, joined=joined)
    row = {"trainer": "bertsmith", "case": name, "size": options.size, "runs": options.runs, "digests": sorted(digests),
           **tokens_a_word(ours, recipe, train, held_out)}  # fmt: skip
    for threads, measured in costs.items():
        if measured:
            row[f"threads {threads}"] = {key: min(one[key] for one in measured) for key in measured[0]}
            row[f"threads {threads}"]["megabytes"] = max(one["megabytes"] for one in measured)
    rows = [row]
    if options.peer:
        theirs = folder / "theirs"
        theirs.mkdir(exist_ok=True)
        words = [__file__, "--train-peer", kind, str(int(joined)), str(options.size), train, theirs]
        spent = cost(words, {"RAYON_NUM_THREADS": "2"})
        rows.append({"trainer": "tokenizers", "case": name, "size": options.size, "threads 2": spent,
                     **tokens_a_word(theirs, recipe, train, held_out)})  # fmt: skip
    for one in rows:
        print(describe(one), flush=True)
    return rows


def describe(row: Row) -> str:
    said = f"{row['case']:16} {row['trainer']:10} "
    said += f"tokens/word {row['trained']:.4f} trained {row['held out']:.4f} held out"
    for threads in (1, 2):
        if spent := row.get(f"threads {threads}"):
            said += f"; {threads} threads: {spent['seconds']:.1f} s, {spent['processor']:.1f} s of processors, "
            said += f"{spent['megabytes']:,.0f} MB"
    return said + (f"; {row['runs']} runs, {len(row['digests'])} SHA-256" if "digests" in row else "")


def cost(words: list[Any], environment: dict[str, str]) -> dict[str, float]:
    """Runs a command of this Python: seconds of the clock, of the processors, and the most memory at a time."""
    before, begin, most = os.times(), time.perf_counter(), 0.0
    settings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    process = subprocess.Popen([sys.executable, *map(str, words)], stdout=subprocess.DEVNULL, env=settings,
                               stderr=subprocess.PIPE)  # fmt: skip
    while process.poll() is None:
        most = max(most, memory(process.pid))
        time.sleep(0.05)
    assert process.stderr is not None
    if process.returncode:
        raise SystemExit(process.stderr.read().decode())
    process.stderr.close()
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": time.perf_counter() - begin, "processor": processor, "megabytes": most / 1e6}


def memory(process: int) -> float:
    """Bytes of a process and those it started."""
    try:
        tasks = Path(f"/proc/{process}/task")
        children = " ".join((task / "children").read_text() for task in tasks.iterdir()).split()
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:  # it has just ended, or this is not Linux
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(memory(int(child)) for child in children)


def digest(folder: Path) -> str:
    """Of all files together."""
    parts = [path.name.encode() + b"\0" + path.read_bytes() for path in sorted(folder.iterdir())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def tokens_a_word(folder: Path, recipe: Recipe, *texts: Path) -> dict[str, float]:
    """On each text: its distinct words are cut once and counted as often as they occur."""
    model = Engine.from_file(str(folder / "tokenizer.json")).model
    found = {}
    for name, text in zip(("trained", "held out"), texts, strict=True):
        counted = count_parts(cut_parts(list_sources(text)), recipe)
        tokens = sum(count * len(model.tokenize(word)) for word, count in counted.words.items())
        found[name] = tokens / counted.chunks
    return found


def train_peer(kind: str, joined: str, size: str, text: str, folder: str) -> None:
    """The `tokenizers` library's trainer on the same documents."""
    recipe = make_recipe(kind, joined=joined == "1")
    options: dict[str, Any] = {"vocab_size": int(size), "special_tokens": list(recipe.specials.values()),
                               "show_progress": False}  # fmt: skip
    if kind == "wordpiece":
        engine = Engine(models.WordPiece(unk_token="[UNK]"))
        trainer = trainers.WordPieceTrainer(min_frequency=2, limit_alphabet=1000, **options)
    elif kind == "bpe":
        engine = Engine(models.BPE())
        trainer = trainers.BpeTrainer(min_frequency=2, initial_alphabet=recipe.splitter().alphabet(), **options)
    else:
        engine = Engine(models.Unigram())
        trainer = trainers.UnigramTrainer(unk_token="<unk>", **options)
    if recipe.normalizer() is not None:
        engine.normalizer = recipe.normalizer()
    engine.pre_tokenizer = recipe.splitter()
    engine.train_from_iterator((document.text for document in read_documents(list_sources(text))), trainer)
    engine.save(f"{folder}/tokenizer.json")


if __name__ == "__main__":
    main()
