"""How well and how fast folders are searched: BM25, vectors, both fused, and optionally reranked.

    python benchmarks/search.py squad dev-v1.1.json
    python benchmarks/search.py squad dev-v1.1.json --limit 500 --rerank-model my-cross-encoder
    python benchmarks/search.py memory book.txt news.txt --passages 100000

`squad` asks all questions of a SQuAD file against all of its paragraphs; the paragraph that a question was asked about
is the relevant one. `memory` cuts the files into that many passages (numbered, and from the start again when the text
runs out, so that no two are equal), indexes and searches them in a process of its own, and says what it took.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

from bertsmith.evaluation.intervals import compare, interval
from bertsmith.models.hub import name_of
from bertsmith.searching import index
from bertsmith.tasks.retrieval import score_rankings

DEEP = 100  # paragraphs that each ranking gives
Row = dict[str, Any]


# -- how well ---------------------------------------------------------------------------------------------------------


def read_squad(path: Path) -> tuple[list[str], list[tuple[str, int]]]:
    """The paragraphs, each once, and the questions with the number of theirs."""
    paragraphs: dict[str, int] = {}
    questions = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            number = paragraphs.setdefault(paragraph["context"], len(paragraphs))
            questions += [(asked["question"].strip(), number) for asked in paragraph["qas"]]
    return list(paragraphs), questions


def measure_squad(options: argparse.Namespace) -> Row:
    paragraphs, questions = read_squad(options.files[0])
    if options.limit:
        questions = random.Random(0).sample(questions, min(options.limit, len(questions)))
    report: Row = {"data": options.files[0].name, "paragraphs": len(paragraphs), "questions": len(questions)}
    with tempfile.TemporaryDirectory() as place:
        lines = [json.dumps({"text": paragraph}) + "\n" for paragraph in paragraphs]
        (Path(place) / "paragraphs.jsonl").write_text("".join(lines), encoding="utf-8")
        begun = time.perf_counter()
        made = index(place, options.model, passage_tokens=options.tokens, device=options.device,
                     threads=options.threads)  # fmt: skip
        report |= {"model": name_of(made.model.folder), "device": str(made.model.device), "passages": len(made),
                   "passage_tokens": options.tokens, "index_seconds": time.perf_counter() - begun,
                   "index_bytes": measure_folder(made.place)}  # fmt: skip
        report["ways"] = measure_ways(made, questions, options)
    return report


def measure_ways(made: Any, questions: list[tuple[str, int]], options: argparse.Namespace) -> Row:
    import bertsmith

    ways: dict[str, Row] = {how: {"how": how} for how in ("bm25", "dense", "hybrid")}
    if options.rerank_model:
        judge = bertsmith.load(options.rerank_model, device=options.device)
        ways |= {f"{how} + rerank": {"how": how, "rerank": judge} for how in ("dense", "hybrid")}
    relevant = [{f"paragraphs.jsonl:{number + 1}": 1.0} for _, number in questions]
    scored, found = {}, {}
    for name, way in ways.items():
        begun = time.perf_counter()
        results = made.search([question for question, _ in questions], 2 * DEEP, **way)
        seconds = time.perf_counter() - begun
        rankings = [list(dict.fromkeys(answer["document"] for answer in result))[:DEEP] for result in results]
        scored[name] = score_rankings(rankings, relevant)
        metrics = {key: [measure.point, *interval(measure)] for key, measure in scored[name].items()}
        found[name] = {"metrics": metrics, "queries_per_second": len(questions) / seconds,
                       "milliseconds_alone": measure_alone(made, questions, way)}  # fmt: skip
        if name != "bm25":
            better = compare(scored[name]["mrr@10"], scored["bm25"]["mrr@10"], samples=2000)
            found[name]["mrr_over_bm25"] = [better.difference, better.low, better.high, better.p]
        print_way(name, found[name])
    return found


def measure_alone(made: Any, questions: list[tuple[str, int]], way: Row) -> float:
    """The median time of one query at a time."""
    times = []
    for question, _ in questions[:100]:
        begun = time.perf_counter()
        made.search(question, 10, **way)
        times.append(time.perf_counter() - begun)
    return 1000 * statistics.median(times)


def print_way(name: str, row: Row) -> None:
    shown = "  ".join(f"{key} {100 * point:5.1f} [{100 * low:.1f}, {100 * high:.1f}]"
                      for key, (point, low, high) in row["metrics"].items())  # fmt: skip
    print(f"{name:16} {shown}\n{'':16} {row['queries_per_second']:,.0f} queries/s together, "
          f"{row['milliseconds_alone']:.1f} ms for one alone", flush=True)  # fmt: skip


def measure_folder(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# -- how much ---------------------------------------------------------------------------------------------------------


def measure_memory(options: argparse.Namespace) -> Row:
    """Writes the passages here and lets another process index and search them, so that only its memory counts."""
    with tempfile.TemporaryDirectory() as place:
        write_passages(Path(place), options)
        words = [sys.executable, __file__, "child", place, "--tokens", str(options.tokens), "--device", options.device]
        words += ["--model", str(options.model)] if options.model else []
        words += ["--threads", str(options.threads)] if options.threads else []
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=os.environ)
    report: Row = json.loads(done.stdout.splitlines()[-1])
    for key, value in report.items():
        print(f"{key:24} {value:,.1f}" if isinstance(value, float) else f"{key:24} {value:,}")
    return report


def write_passages(folder: Path, options: argparse.Namespace) -> None:
    """JSON Lines of `--words` words each, 10,000 to a file."""
    words = [word for path in options.files for word in path.read_text(encoding="utf-8", errors="ignore").split()]
    starts = (i * options.words for i in count())
    for first in range(0, options.passages, 10_000):
        with (folder / f"part-{first:07d}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(first, min(first + 10_000, options.passages)):
                at = next(starts) % max(len(words) - options.words, 1)
                text = f"{number} {' '.join(words[at : at + options.words])}"
                file.write(json.dumps({"text": text}) + "\n")


def measure_child(options: argparse.Namespace) -> None:
    begun = time.perf_counter()
    made = index(options.files[0], options.model, passage_tokens=options.tokens, device=options.device,
                 threads=options.threads, progress=show_progress)  # fmt: skip
    report: Row = {"passages": len(made), "index_seconds": time.perf_counter() - begun,
                   "index_bytes": measure_folder(made.place), "peak_mib_indexing": peak_mib()}  # fmt: skip
    queries = [(answer["text"][:80], 0) for answer in made.search("the", 50, how="dense")]
    for how in ("bm25", "dense", "hybrid"):
        report[f"milliseconds_{how}"] = measure_alone(made, queries, {"how": how})
    begun = time.perf_counter()
    made.search([query for query, _ in queries] * 20)
    report["hybrid_queries_per_second"] = 20 * len(queries) / (time.perf_counter() - begun)
    report["peak_mib"] = peak_mib()
    print(json.dumps(report))


def show_progress(done: int, total: int) -> None:
    if done % 10_240 == 0 or done == total:
        print(f"{done:,} of {total:,} passages, {peak_mib():,.0f} MiB at most", file=sys.stderr, flush=True)


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("squad", "memory", "child"))
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rerank-model", type=Path)
    parser.add_argument("--tokens", type=int, default=128, help="in a passage, at most")
    parser.add_argument("--limit", type=int, help="so many questions only, drawn at random")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=80, help="in a passage of `memory`")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, help="write the report here too, as JSON")
    options = parser.parse_args()
    if options.mode == "child":
        measure_child(options)
        return
    report = measure_squad(options) if options.mode == "squad" else measure_memory(options)
    if options.out:
        said = " ".join(Path(word).name for word in sys.argv[1:])
        about = {"date": date.today().isoformat(), "command": f"benchmarks/search.py {said}", **report}
        options.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
