"""How fast pretraining goes on real text, in real tokens a second: documents as they are, not full rows of random ids.

    python benchmarks/pretraining_text.py CORPUS --device cuda --out benchmarks/results/pretraining-text-gpu-h200.json
    python benchmarks/pretraining_text.py CORPUS --tiny                  # a tiny shape on the CPU: does it run

Exact BERT-base with the corpus's vocabulary, dropout 0, fused AdamW, clipping, the same tokens a step; a process for
each contestant. Ours is `bertsmith.pretrain` itself: documents packed without padding and without attending across.
Peers are `transformers`' BertForMaskedLM under torch.compile, in autocast and with bf16 weights. `lines`: a line a row,
cut at the longest, each batch padded to its longest row (to a multiple of 64, so that there are few shapes), compiled
for each shape or (`lines-dynamic`) once for all; a line is one of a text file (--lines FILE, as the text was before it
became a corpus: what `run_mlm.py --line_by_line` reads), a document or a sentence. `grouped`: documents behind each
other with their special tokens, cut into full rows; `grouped-mask` with a mask that hides nothing, as another kernel
then computes attention. What is hidden is chosen on the device, and their rows are made before the clock starts.
Counted are tokens that are neither special nor padding, the same way for all.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pretrained import Figures, make_parser

import bertsmith
from bertsmith.data.rows_plan import open_passes
from bertsmith.data.shards import Corpus
from bertsmith.text.loading import load_tokenizer
from bertsmith.training.loop import Speed, Watcher
from bertsmith.training.recipes import find_recipe

WAYS = ("lines", "lines-dynamic", "grouped", "grouped-mask")
PEERS = tuple(f"{rows}-{kind}" for rows in WAYS for kind in ("autocast", "bf16"))
CONTESTANTS = ("ours", *PEERS)
BASE = {"width": 768, "depth": 12, "heads": 12, "inner": 3072}
TINY = {"width": 64, "depth": 2, "heads": 2, "inner": 128}
ROUND = 64
NONE = -100
KINDS = ("documents", "sentences")  # of lines that the corpus knows the bounds of
Array = np.ndarray[Any, Any]


class Clock(Watcher):
    """Seconds from the end of the last warming step to the end of the last timed one."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.begun = options, time.perf_counter()
        self.marks: dict[int, float] = {}

    def stepped(self, step: int, record: Any, speed: Speed) -> None:
        if step in (1, self.options.warm, self.options.warm + self.options.steps):
            wait(self.options)
            self.marks[step] = time.perf_counter()

    def read(self) -> tuple[float, float]:
        """Of the timed steps, and until the first one was done."""
        first, last = self.options.warm, self.options.warm + self.options.steps
        return self.marks[last] - self.marks[first], self.marks[1] - self.begun


def wait(options: argparse.Namespace) -> None:
    if options.device == "cuda":
        torch.cuda.synchronize()


def run_ours(options: argparse.Namespace) -> dict[str, Any]:
    sizes = TINY if options.tiny else BASE
    count = options.warm + options.steps
    given = {**sizes, "asks": "masked", "lengths": str(options.length), "tokens": options.tokens, "dropout": 0.0,
             "rate": 1e-4, "max_steps": count, "evaluate_every": count, "save_minutes": 1e6}  # fmt: skip
    clock = Clock(options)
    with tempfile.TemporaryDirectory() as folder:
        out, device = Path(folder, "run"), options.device
        bertsmith.pretrain(options.corpus, out, "bert", device=device, watchers=[clock], **given)
    seconds, first = clock.read()
    training = find_recipe("bert", given).training
    size, corpus = training.pass_size(options.device), Corpus.open(options.corpus)
    (passes,) = open_passes(corpus, training.phases(), size, "single", training.seed)
    each = training.tokens_at(0, 1, size) // size
    read = [passes.rows_of(number) for number in range(each * options.warm, each * count)]
    return tell(options, seconds, first, sum(rows.ordinary for rows in read), len(read) * size,
                sum(len(rows.lengths) for rows in read))  # fmt: skip


def cut_rows(corpus: Corpus, options: argparse.Namespace) -> Iterator[Array]:
    """The rows of a peer, in an order of their own: lines, or full rows of everything."""
    cls, sep = corpus.specials["cls"], corpus.specials["sep"]
    if options.contestant.startswith("lines"):
        for text in read_lines(corpus, options):
            if len(text):
                yield np.concatenate([[cls], text[: options.length - 2], [sep]]).astype(np.int64)
        return
    rest = np.empty(0, np.int64)
    for number in np.random.default_rng(1).permutation(len(corpus)):
        rest = np.concatenate([rest, [cls], corpus.document(int(number)).astype(np.int64), [sep]])
        whole = len(rest) // options.length
        yield from rest[: whole * options.length].reshape(whole, options.length)
        rest = rest[whole * options.length :]


def read_lines(corpus: Corpus, options: argparse.Namespace) -> Iterator[Array]:
    if options.lines in KINDS:
        bounds = corpus.sentences if options.lines == "sentences" else corpus.documents
        for number in np.random.default_rng(1).permutation(len(bounds) - 1):
            yield corpus.tokens[int(bounds[number]) : int(bounds[number + 1])]
        return
    tokenizer = load_tokenizer(options.corpus / "tokenizer")
    lines = [line for line in Path(options.lines).read_text(encoding="utf-8").splitlines() if line.strip()]
    np.random.default_rng(1).shuffle(lines)
    for start in range(0, len(lines), 1000):
        for encoding in tokenizer.encode_many(lines[start : start + 1000]):
            yield np.asarray(encoding.ids[1:-1])


def make_batches(corpus: Corpus, options: argparse.Namespace) -> list[Array]:
    """Each padded to its longest row; as many rows in all of them as make the tokens of a step on the average."""
    source: Iterator[Array] = cut_rows(corpus, options)
    pad = corpus.specials["pad"]
    some = [row for row, _ in zip(source, range(2000), strict=False)]
    # Twice the places at most: with short lines and one long one the rest is padding, and memory has an end.
    rows = min(options.tokens / np.mean([len(row) for row in some]), 2 * options.tokens / options.length)
    rows = max(1, round(rows))
    source = chain(some, source)
    batches = []
    for _ in range(options.warm + options.steps):
        mine = [row for _, row in zip(range(rows), source, strict=False)]
        if len(mine) < rows:
            raise RuntimeError("the corpus is too small for so many steps")
        longest = max(map(len, mine))
        room = np.full((rows, min(-(-longest // ROUND) * ROUND, options.length)), pad)
        for place, row in enumerate(mine):
            room[place, : len(row)] = row
        batches.append(room)
    return batches


def make_peer(options: argparse.Namespace, corpus: Corpus) -> Callable[[torch.Tensor], None]:
    import transformers

    sizes, device, contestant = TINY if options.tiny else BASE, options.device, options.contestant
    config = transformers.BertConfig(
        vocab_size=corpus.vocabulary, hidden_size=sizes["width"], num_hidden_layers=sizes["depth"],
        num_attention_heads=sizes["heads"], intermediate_size=sizes["inner"], hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, pad_token_id=corpus.specials["pad"],
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).to(device).train()
    model = model.bfloat16() if contestant.endswith("bf16") else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    torch._dynamo.config.recompile_limit = 64
    dynamic = "dynamic" in contestant
    run: Any = torch.compile(model, dynamic=dynamic) if device == "cuda" else model
    special = torch.zeros(corpus.vocabulary, dtype=torch.bool, device=device)
    special[[*corpus.specials.values()]] = True

    def step(ids: torch.Tensor) -> None:
        given, labels = hide(ids, special, corpus)
        has_mask = not contestant.startswith("grouped") or "mask" in contestant
        seen = {"attention_mask": (ids != corpus.specials["pad"]).long()} if has_mask else {}
        with torch.autocast(device, torch.bfloat16, enabled=contestant.endswith("autocast")):
            loss = run(input_ids=given, labels=labels, **seen).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def hide(ids: torch.Tensor, special: torch.Tensor, corpus: Corpus) -> tuple[torch.Tensor, torch.Tensor]:
    """15 %, 80/10/10, as DataCollatorForLanguageModeling has it."""
    chosen = (torch.rand(ids.shape, device=ids.device) < 0.15) & ~special[ids]
    fate = torch.rand(ids.shape, device=ids.device)
    drawn = torch.randint(corpus.vocabulary, ids.shape, device=ids.device)
    put = torch.where(fate < 0.8, corpus.specials["mask"], torch.where(fate < 0.9, drawn, ids))
    return torch.where(chosen, put, ids), torch.where(chosen, ids, NONE)


def run_peer(options: argparse.Namespace) -> dict[str, Any]:
    torch.set_float32_matmul_precision("high")
    corpus = Corpus.open(options.corpus)
    batches = make_batches(corpus, options)
    given = [torch.from_numpy(batch) for batch in batches]
    given = [batch.pin_memory() if options.device == "cuda" else batch for batch in given]
    begun = time.perf_counter()
    step = make_peer(options, corpus)
    step(given[0].to(options.device))
    wait(options)
    first = time.perf_counter() - begun
    shapes = {batch.shape[1]: batch for batch in given}  # every shape that will be met is compiled before the clock
    for batch in [*shapes.values(), *given[1 : options.warm]]:
        step(batch.to(options.device))
    wait(options)
    start = time.perf_counter()
    for batch in given[options.warm :]:
        step(batch.to(options.device, non_blocking=True))
    wait(options)
    seconds, timed = time.perf_counter() - start, batches[options.warm :]
    special = [*corpus.specials.values(), *corpus.header.get("special_ids", ())]
    real = sum(int((~np.isin(batch, special)).sum()) for batch in timed)
    return tell(options, seconds, first, real, sum(batch.size for batch in timed), sum(map(len, timed)))


def tell(options: argparse.Namespace, seconds: float, first: float, real: int, slots: int, rows: int) -> dict[str, Any]:
    memory = torch.cuda.max_memory_allocated() / 2**20 if options.device == "cuda" else 0
    return {
        "contestant": options.contestant, "length": options.length, "lines": name_lines(options), "rows": rows,
        "tokens_per_second": round(real / seconds), "slots_per_second": round(slots / seconds),
        "real_share": round(real / slots, 4), "tokens_a_row": round(real / rows, 1),
        "tokens_a_step": round(real / options.steps), "first_step_s": round(first, 1), "memory_mib": round(memory),
    }  # fmt: skip


def name_lines(options: argparse.Namespace) -> str:
    """What a row is of; only for those who read lines."""
    if not options.contestant.startswith("lines"):
        return ""
    return options.lines if options.lines in KINDS else "lines"


def measure(contestant: str, length: int, options: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own."""
    line = [sys.executable, __file__, str(options.corpus), "--contestant", contestant, "--lengths", str(length),
            "--device", options.device, "--lines", options.lines, "--steps", str(options.steps), "--warm",
            str(options.warm), "--tokens", str(options.tokens), *(["--tiny"] if options.tiny else [])]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "TQDM_DISABLE": "1"})
    if done.returncode:
        raise RuntimeError(done.stderr[-1500:])
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At each length, ours against the faster form of each peer; full rows with a mask are apart from those without."""
    best: dict[tuple[int, str, str], dict[str, Any]] = {}
    for row in rows:
        if "tokens_per_second" in row:
            way = row["contestant"].rpartition("-")[0]
            kind = row["contestant"] if not way else "lines" if way.startswith("lines") else way
            key = (row["length"], kind, row["lines"] if kind == "lines" else "")
            best[key] = max(best.get(key, row), row, key=lambda one: one["tokens_per_second"])
    found = []
    for (length, kind, _), row in sorted(best.items(), key=lambda one: (one[0][0], -one[1]["tokens_per_second"])):
        ours = best.get((length, "ours", ""))
        times = round(ours["tokens_per_second"] / row["tokens_per_second"], 3) if ours else None
        found.append({**row, "kind": kind, "times": times})
    return found


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--lengths", type=lambda text: [int(part) for part in text.split(",")], help="of rows: 128,512")
    parser.add_argument("--lines", default="documents", metavar="FILE|documents|sentences", help="what a line is")
    parser.add_argument("--tokens", type=int, default=0, help="in a step: 65,536")
    parser.add_argument("--steps", type=int, default=0, help="that are timed; else 30 on CUDA")
    parser.add_argument("--warm", type=int, default=0)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.tokens = options.tokens or (1024 if options.tiny else 65_536)
    options.steps = options.steps or (3 if options.tiny else 30)
    options.warm = options.warm or (2 if options.tiny else 8)
    lengths = options.lengths or ([32] if options.tiny else [128, 512])
    if options.contestant:
        options.length = lengths[0]
        print(json.dumps((run_ours if options.contestant == "ours" else run_peer)(options)))
        return
    if options.list or options.corpus is None:  # `make bench` calls every script, and the text cannot be shipped
        print(f"give a corpus; contestants: {', '.join(CONTESTANTS)}")
        return
    lines = f" --lines {options.lines if options.lines in KINDS else 'FILE'}"
    only = f" --only {','.join(options.only)}" if options.only else ""
    figures = Figures(options, f"python benchmarks/pretraining_text.py CORPUS{lines}{only} --device {options.device}")
    for length in lengths:
        for each in CONTESTANTS:
            if not options.only or each in options.only:
                options.contestant = each
                figures.make(f"{each} {length} {name_lines(options)}".strip(), lambda: measure(each, length, options))  # noqa: B023
                figures.facts["vocabulary"] = Corpus.open(options.corpus).vocabulary
                figures.facts["table"] = compare(list(figures.rows.values()))
                figures.write()
    sys.exit(figures.status())


if __name__ == "__main__":
    main()
