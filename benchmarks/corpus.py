"""How fast raw text becomes a corpus on one thread, beside `tokenizers` and `datasets`, and what it takes of the disk.

    python benchmarks/corpus.py                                     # made-up text, a few seconds
    python benchmarks/corpus.py --text simplewiki.txt --megabytes 90 --exclude glue --runs 2

Wall and CPU seconds stand side by side, as the machine may be shared; the rates are of the CPU seconds, on one thread.
The ids of ours are compared with those of `tokenizers` for every document.
"""

import argparse
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_DATASETS_OFFLINE"] = "1"

import numpy as np
from origins import find_model

import bertsmith
from bertsmith.data.corpus.minhash import shingles, sign
from bertsmith.data.shards import Corpus
from bertsmith.text import load_tokenizer
from bertsmith.text.chunks import Encoder
from bertsmith.text.normalizing import normalize_text
from bertsmith.text.sentences import sentence_ends
from bertsmith.text.sources import list_sources, read_documents

BLOCK = 1000  # documents given to a tokenizer at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="a text with blank lines between documents; else some is made up")
    parser.add_argument("--tokenizer", help="folder of a tokenizer; else the demo model's")
    parser.add_argument("--megabytes", type=float, default=30.0, help="how much of the text is used")
    parser.add_argument("--exclude", nargs="*", default=(), help="benchmarks to keep out")
    parser.add_argument("--runs", type=int, default=1, help="the best of so many")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "text.txt"
        path.write_text(cut(options.text, options.megabytes) if options.text else make_up(), encoding="utf-8")
        folder = options.tokenizer or find_model("--tokenizer FOLDER")
        print("| step | MB a CPU second | wall s | CPU s |\n|---|---:|---:|---:|")
        steps(path, folder, options.runs)
        whole(path, folder, options, Path(place))


def steps(path: Path, folder: str, runs: int) -> None:
    size = path.stat().st_size / 1e6
    documents = measure("read", size, runs, lambda: [d.text for d in read_documents(list_sources(path))])
    texts = measure("cleaned", size, runs, lambda: [normalize_text(text) for text in documents])
    ends = measure("cut into sentences", size, runs, lambda: [sentence_ends(text) for text in texts])
    measure("read, cleaned and cut", size, runs, lambda: clean(path))
    tokenizer = load_tokenizer(folder)
    encoder = Encoder(tokenizer)
    found = measure("tokenized, cold", size, 1, lambda: encode(encoder, texts, ends))
    measure("tokenized, warm", size, runs, lambda: encode(encoder, texts, ends))
    lengths = [np.array([counts.sum() for counts in np.split(all_counts, np.cumsum([*map(len, block)])[:-1])])
               for (_, all_counts), block in zip(found, blocks(ends), strict=True)]  # fmt: skip
    measure("MinHash signatures", size, runs, lambda: [
        sign_all(ids, counts) for (ids, _), counts in zip(found, lengths, strict=True)
    ])  # fmt: skip
    engine = tokenizer._engine
    peer = measure("`tokenizers` encode_batch_fast", size, 1, lambda: [
        read.ids for block in blocks(texts) for read in engine.encode_batch_fast(block, add_special_tokens=False)
    ])  # fmt: skip
    same = np.array_equal(np.concatenate([ids for ids, _ in found]), np.concatenate([np.array(ids) for ids in peer]))
    if find_spec("datasets") is not None:
        work = make_map(texts, folder)
        measure("`datasets` map with it", size, 1, work)
    print(f"\nThe ids of {len(texts):,} documents are {'equal' if same else 'NOT equal'} to those of `tokenizers`.\n")


def clean(path: Path) -> list[list[int]]:
    return [sentence_ends(normalize_text(document.text)) for document in read_documents(list_sources(path))]


def encode(encoder: Encoder, texts: list[str], ends: list[list[int]]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [encoder.encode(some, stops) for some, stops in zip(blocks(texts), blocks(ends), strict=True)]


def sign_all(ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    hashes, counts = shingles(ids, lengths)
    return sign(hashes, counts[counts > 0])


def make_map(texts: list[str], folder: str) -> Callable[[], Any]:
    import datasets
    import transformers

    datasets.disable_progress_bars()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 10**9
    rows = datasets.Dataset.from_dict({"text": texts})
    return lambda: rows.map(
        lambda batch: {"ids": tokenizer(batch["text"], add_special_tokens=False)["input_ids"]},
        batched=True, remove_columns=["text"], keep_in_memory=True,
    )  # fmt: skip


def whole(path: Path, folder: str, options: argparse.Namespace, place: Path) -> None:
    """The build as a user calls it, with the most bytes that were seen on the disk."""
    size = path.stat().st_size
    print("| build | MB/s | MB a CPU second | s | most on the disk ÷ text | the corpus ÷ text |")
    print("|---|---:|---:|---:|---:|---:|")
    fit = {} if options.text else {"tokens_per_character": 1.0}  # no tokenizer knows made-up words
    for name, given in (
        ("without comparing or filters", {"near_duplicates": False, "duplicates": False, "filters": False}),
        ("without near-duplicates", {"near_duplicates": False, **fit}),
        ("all", fit),
        *([("all, benchmarks kept out", {"exclude": options.exclude, **fit})] if options.exclude else []),
    ):
        out = place / "out" / name.replace(" ", "-").replace(",", "")
        out.parent.mkdir(exist_ok=True)
        with Watch(out.parent) as watch:
            begun, cpu = time.monotonic(), time.process_time()
            bertsmith.build_corpus(path, folder, out, **given)
            seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
        final = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        print(
            f"| {name} | {size / 1e6 / seconds:.1f} | {size / 1e6 / cpu:.1f} | {seconds:.1f} "
            f"| {watch.most / size:.2f} | {final / size:.2f} |"
        )
    begun = time.perf_counter()
    opened = Corpus.open(out)
    took = 1000 * (time.perf_counter() - begun)
    print(f"\nOpening {len(opened.tokens):,} tokens took {took:.2f} ms.")


class Watch:
    """Looks at a folder again and again for the most bytes that are in it beyond those it began with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.most, self._over = folder, 0, threading.Event()
        self._before = self._size()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _size(self) -> int:
        total = 0
        for file in self.folder.rglob("*"):
            with suppress(OSError):
                total += file.stat().st_blocks * 512 if file.is_file() else 0
        return total

    def _look(self) -> None:
        while not self._over.wait(0.2):
            self.most = max(self.most, self._size() - self._before)


def measure(name: str, size: float, runs: int, work: Callable[[], Any]) -> Any:
    best = None
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        took = time.process_time() - cpu, time.perf_counter() - wall
        best = took if best is None or took < best else best
    assert best is not None
    print(f"| {name} | {size / best[0]:.1f} | {best[1]:.2f} | {best[0]:.2f} |", flush=True)
    return result


def blocks(items: list[Any]) -> list[list[Any]]:
    return [items[start : start + BLOCK] for start in range(0, len(items), BLOCK)]


def cut(path: Path, megabytes: float) -> str:
    with open(path, "rb") as file:
        text = file.read(int(megabytes * 1e6))
    return text[: text.rfind(b"\n\n") + 1].decode("utf-8") if b"\n\n" in text else text.decode("utf-8", "ignore")


def make_up() -> str:
    """A megabyte of made-up words, some far more frequent than others, as in any language."""
    draw = random.Random(0)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(1, 9))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    sentences = [" ".join(draw.choices(words, weights, k=15)).capitalize() + "." for _ in range(12_000)]
    return "\n\n".join(" ".join(sentences[start : start + 12]) for start in range(0, len(sentences), 12))


if __name__ == "__main__":
    main()
