"""How well and how fast folders are searched: BM25, vectors, both fused, and optionally reranked.

    python benchmarks/search.py score dev-v1.1.json
    python benchmarks/search.py pairs train-v1.1.json --without dev-v1.1.json --negatives 4 --out pairs.jsonl
    bertsmith finetune --task embed --train pairs.jsonl --batch 128 --epochs 2 --out my-encoder
    bertsmith finetune --task rerank --train pairs.jsonl --epochs 1 --length 256 --out my-reranker
    python benchmarks/search.py score dev-v1.1.json --embed-model my-encoder --rerank-model my-reranker
    python benchmarks/search.py memory book.txt news.txt --passages 100000

`score` asks all questions of a SQuAD file against all of its paragraphs; the paragraph that a question was asked about
is the relevant one. It does so for BM25, for the vectors of `--model` (else all-MiniLM-L6-v2) and both fused; again for
those of `--embed-model`, a tuned one; and reranks what the last of them found. `pairs` writes questions with their
paragraphs to train both on, and with each those other paragraphs that share most words with the question and do not
hold its answer; a paragraph of `--without` is not among them. `memory` cuts the files into that many passages
(numbered, and from the start again when the text runs out, so that no two are equal), indexes and searches them in a
process of its own, and says what it took.
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

from origins import find_model

from bertsmith.data.examples import RankExample
from bertsmith.data.negatives import mine
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
        folder = Path(place) / "texts"
        folder.mkdir()
        lines = [json.dumps({"text": paragraph}) + "\n" for paragraph in paragraphs]
        (folder / "paragraphs.jsonl").write_text("".join(lines), encoding="utf-8")
        encoders = {"": options.model} | ({"tuned ": options.embed_model} if options.embed_model else {})
        made = {}
        report["indexes"] = {}
        for name, model in encoders.items():
            begun = time.perf_counter()
            one = index(folder, model, place=Path(place) / f"index {name}".strip(), passage_tokens=options.tokens,
                        device=options.device, threads=options.threads)  # fmt: skip
            made[name] = one
            report["indexes"][name.strip() or "plain"] = {
                "model": name_of(one.model.folder), "device": str(one.model.device), "passages": len(one),
                "passage_tokens": options.tokens, "index_seconds": time.perf_counter() - begun,
                "index_bytes": measure_folder(one.place)}  # fmt: skip
        for name, facts in report["indexes"].items():
            print(f"{name:22} index of {facts['passages']:,} passages: {facts['index_bytes'] / 1e6:.1f} MB, "
                  f"{facts['index_seconds']:.1f} s")  # fmt: skip
        report["ways"] = measure_ways(made, questions, options)
    return report


def list_ways(made: dict[str, Any], options: argparse.Namespace) -> dict[str, tuple[Any, Row]]:
    """By name, an index and how it is asked."""
    import bertsmith

    ways: dict[str, tuple[Any, Row]] = {"bm25": (made[""], {"how": "bm25"})}
    for name, one in made.items():
        ways |= {f"{name}{how}": (one, {"how": how}) for how in ("dense", "hybrid")}
    if options.rerank_model:
        judge = bertsmith.load(options.rerank_model, device=options.device)
        last, one = list(made.items())[-1]
        more = {"rerank": judge, "rerank_depth": options.depth}
        ways |= {f"{last}{how} + rerank": (one, {"how": how, **more}) for how in ("dense", "hybrid")}
    return ways


def measure_ways(indexes: dict[str, Any], questions: list[tuple[str, int]], options: argparse.Namespace) -> Row:
    relevant = [{f"paragraphs.jsonl:{number + 1}": 1.0} for _, number in questions]
    scored, found = {}, {}
    for name, (made, way) in list_ways(indexes, options).items():
        begun = time.perf_counter()
        deep = way.get("rerank_depth", 2 * DEEP)  # several passages may be of one paragraph
        results = made.search([question for question, _ in questions], deep, **way)
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


def write_pairs(options: argparse.Namespace) -> None:
    """A line for each question: `query, positive`, and with `--negatives` the list `negative`."""
    held = {paragraph for path in options.without for paragraph in read_squad(path)[0]}
    asked: dict[str, tuple[str, list[str]]] = {}
    for path in options.files:
        for paragraph, question, answers in read_answered(path):
            if paragraph not in held and question not in asked:
                asked[question] = (paragraph, answers)
    questions = list(asked)
    if options.limit:
        questions = random.Random(0).sample(questions, min(options.limit, len(questions)))
    examples = [RankExample(question, (asked[question][0],)) for question in questions]
    if options.negatives:  # more than are wanted, as those that hold the answer are left out
        examples = mine(examples, 4 * options.negatives, "train")
    with options.out.open("w", encoding="utf-8") as file:
        for example in examples:
            row: Row = {"query": example.query, "positive": example.texts[0]}
            answers = [answer.casefold() for answer in asked[example.query][1]]
            others = [text for text in example.texts[1:] if not any(a in text.casefold() for a in answers)]
            row |= {"negative": others[: options.negatives]} if options.negatives else {}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    paragraphs = len({asked[question][0] for question in questions})
    print(f"{len(examples):,} questions about {paragraphs:,} paragraphs; {len(held):,} paragraphs were held out")


def read_answered(path: Path) -> list[tuple[str, str, list[str]]]:
    """Paragraph, question and answers; questions without an answer are left out."""
    return [
        (paragraph["context"], asked["question"].strip(), [answer["text"] for answer in asked["answers"]])
        for article in json.loads(path.read_text(encoding="utf-8"))["data"]
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
        if asked.get("answers") and asked["question"].strip()
    ]


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
    print(f"{name:22} {shown}\n{'':22} {row['queries_per_second']:,.0f} queries/s together, "
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
    if len(sys.argv) == 1:  # `make bench` calls every script, and the data is not shipped
        return print(__doc__)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("score", "pairs", "memory", "child"))
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--embed-model", type=Path, help="a tuned encoder, scored beside --model")
    parser.add_argument("--rerank-model", type=Path)
    parser.add_argument("--depth", type=int, default=50, help="passages that are reranked")
    parser.add_argument("--without", type=Path, nargs="*", default=[], help="SQuAD files whose paragraphs are held out")
    parser.add_argument("--negatives", type=int, default=0, help="for each question of `pairs`")
    parser.add_argument("--tokens", type=int, default=128, help="in a passage, at most")
    parser.add_argument("--limit", type=int, help="so many questions only, drawn at random")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=80, help="in a passage of `memory`")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, help="write the report here too, as JSON")
    options = parser.parse_args()
    options.model = options.model or find_model()
    if options.mode == "child":
        measure_child(options)
        return
    if options.mode == "pairs":
        if options.out is None:
            parser.error("pairs needs --out FILE.jsonl")
        write_pairs(options)
        return
    report = measure_squad(options) if options.mode == "score" else measure_memory(options)
    if options.out:
        said = " ".join(Path(word).name for word in sys.argv[1:])
        about = {"date": date.today().isoformat(), "command": f"benchmarks/search.py {said}", **report}
        options.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
