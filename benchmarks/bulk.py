"""A file too large for memory, answered into a file, killed and continued: rows, memory and pace.

    python benchmarks/bulk.py                                  # 4 MB of made-up rows, a minute
    python benchmarks/bulk.py --megabytes 200 --kills 2        # what benchmarks/results/bulk.txt shows

The model is a tiny one with random weights (two layers of 32), so that the file and not the model is what is measured.
The command is killed with SIGKILL at even distances, then continued; its output must hold every row once, in order, and
be equal to the byte to that of a run that nobody killed (with --undisturbed).
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = [
    "the", "film", "was", "good", "bad", "river", "town", "paris", "london", "sad", "happy", "song", "it", "is", "of",
    "a", "and", "in", "to", "very",
]  # fmt: skip
PEAK = """
import resource, sys
sys.argv = ["bertsmith", *sys.argv[1:]]
from bertsmith.cli import main
try:
    main()
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=4.0, help="of the JSON Lines file")
    parser.add_argument("--characters", type=int, default=1000, help="about so many in a text")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--undisturbed", action="store_true", help="run once more without kills, and compare the bytes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model, source = make_model(place / "model"), place / "big.jsonl"
        rows = write_rows(source, options.megabytes, options.characters)
        print(f"{source.stat().st_size / 1e6:.1f} MB of JSON Lines, {rows:,} rows")
        print("\n| run | rows done | wall s | CPU s | rows a CPU second | peak RSS MiB |")
        print("|---|---:|---:|---:|---:|---:|", flush=True)
        out = place / "answers.jsonl"
        marks = [rows * (number + 1) // (options.kills + 1) for number in range(options.kills)]
        for number, mark in enumerate(marks, 1):
            run(f"{number}, killed", source, out, model, mark)
        run(f"{len(marks) + 1}, to the end" if marks else "1", source, out, model, None)
        check(source, out, rows)
        if options.undisturbed:
            other = place / "undisturbed.jsonl"
            run("undisturbed", source, other, model, None)
            print(f"\nEqual to the undisturbed run to the byte: {out.read_bytes() == other.read_bytes()}.")


def run(name: str, source: Path, out: Path, model: Path, mark: int | None) -> None:
    """One run of the command, killed once so many rows are done."""
    before, cpu, start = rows_done(out), children_seconds(), time.perf_counter()
    words = ["classify", "--in", source, "--out", out, "--model", model, "--device", "cpu", "--threads", "1"]
    command = [sys.executable, "-c", PEAK, *map(str, words)]
    peak = 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while process.poll() is None:
            peak = max(peak, read_peak(process.pid))
            if mark is not None and rows_done(out) >= mark:
                process.send_signal(signal.SIGKILL)
                process.wait()
            time.sleep(0.05)
        said = process.stderr.read()
    if mark is None and process.returncode:
        raise SystemExit(said)
    told = [int(line.split()[1]) for line in said.splitlines() if line.startswith("peak ")]
    peak = max([peak, *told])
    seconds, wall = children_seconds() - cpu, time.perf_counter() - start
    done = rows_done(out)
    rate = (done - before) / seconds
    print(f"| {name} | {done:,} | {wall:.1f} | {seconds:.1f} | {rate:,.0f} | {peak / 1024:.0f} |", flush=True)


def check(source: Path, out: Path, rows: int) -> None:
    """Each row once, in order, with its own id and text; a pass over both files, line by line."""
    count = 0
    with open(source, encoding="utf-8") as asked, open(out, encoding="utf-8") as answered:
        for count, (question, answer) in enumerate(zip(asked, answered, strict=True), 1):
            given, found = json.loads(question), json.loads(answer)
            assert (found["row"], found["id"], found["input"]) == (count, given["id"], given["text"]), count
            assert len(found["answers"]) == 2, count
    assert count == rows
    print(f"\n{count:,} rows asked, {count:,} answered: each once and in order, with its id and its text.")


def rows_done(out: Path) -> int:
    try:
        done: int = json.loads(out.with_name(f"{out.name}.journal").read_text())["counts"]["rows"]
    except FileNotFoundError:
        return 0
    return done


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_peak(pid: int) -> int:
    """KiB; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


def write_rows(path: Path, megabytes: float, characters: int) -> int:
    rng, rows = random.Random(0), 0
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            words = rng.choices(WORDS, k=max(1, round(rng.gauss(characters / 4.7, characters / 12))))
            file.write(json.dumps({"id": f"r{rows}", "text": " ".join(words)}) + "\n")
            rows += 1
    return rows


def make_model(folder: Path) -> Path:
    import torch
    import transformers

    folder.mkdir()
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [*letters, *(f"##{letter}" for letter in letters)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *WORDS]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(dict.fromkeys(vocabulary)), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
