"""How fast texts become vectors: bertsmith beside transformers, sentence-transformers and ONNX Runtime, in one run.

    python benchmarks/inference.py                      # both shapes on 2 CPU threads, a few minutes
    python benchmarks/inference.py --shapes minilm --without onnx
    python benchmarks/inference.py --device cuda --dtype bfloat16

Every contestant reads the same folder (made here, random weights, a real vocabulary) and the same texts, from string to
vector, in a process of its own, so that peak memory is its own too. The rounds take turns and the best of each counts.
"""

import argparse
import json
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from origins import find_commit, find_model

HERE = Path(__file__).parent
SHAPES = {"minilm": (6, 384, 12, 1536), "base": (12, 768, 12, 3072)}
CONTESTANTS = ("bertsmith", "transformers", "transformers-sorted", "sentence-transformers", "onnx", "ceiling")
SHORT = "The river rose so fast that nobody in the village had time to move"  # 16 tokens with [CLS] and [SEP]

Run = Callable[[list[str]], object]


def make_folder(folder: Path, shape: str, vocabulary: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    depth, width, heads, inner = SHAPES[shape]
    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=depth, hidden_size=width, num_attention_heads=heads, intermediate_size=inner)
    BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_bytes(vocabulary.read_bytes())
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def start_bertsmith(folder: Path, device: str, dtype: str, batch: int) -> Run:
    import bertsmith

    model = bertsmith.load(folder, device=device, dtype=dtype)
    return model.embed


def start_transformers(folder: Path, device: str, dtype: str, batch: int, by_length: bool = False) -> Run:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=getattr(torch, dtype)).to(device).eval()

    @torch.inference_mode()
    def run(texts: list[str]) -> list[torch.Tensor]:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i])) if by_length else list(range(len(texts)))
        found: dict[int, torch.Tensor] = {}
        for start in range(0, len(texts), batch):
            some = order[start : start + batch]
            given = tokenizer([texts[i] for i in some], padding=True, truncation=True, return_tensors="pt").to(device)
            mask = given["attention_mask"][..., None]
            pooled = (model(**given).last_hidden_state * mask).sum(1) / mask.sum(1)
            found.update(zip(some, pooled.cpu(), strict=True))
        return [found[i] for i in range(len(texts))]

    return run


def start_sentence_transformers(folder: Path, device: str, dtype: str, batch: int) -> Run:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device=device, model_kwargs={"dtype": dtype})
    return lambda texts: model.encode(texts, batch_size=batch, show_progress_bar=False)


def start_onnx(folder: Path, device: str, dtype: str, batch: int) -> Run:
    """ONNX Runtime over the exported encoder, length-sorted."""
    import numpy as np
    import onnxruntime
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    path = folder / "model.onnx"
    if not path.exists():
        model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        given = tokenizer(["one text", "and another one"], padding=True, return_tensors="pt")
        names = list(given)
        dynamic = {name: {0: torch.export.Dim("rows"), 1: torch.export.Dim("length", max=512)} for name in names}
        torch.onnx.export(
            model, (), str(path), kwargs=dict(given), input_names=names, output_names=["hidden", "pooled"],
            dynamic_shapes=dynamic, dynamo=True, verbose=False,
        )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def run(texts: list[str]) -> object:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        found = {}
        for start in range(0, len(texts), batch):
            some = order[start : start + batch]
            given = tokenizer([texts[i] for i in some], padding=True, truncation=True, return_tensors="np")
            hidden = session.run(["hidden"], {name: given[name].astype(np.int64) for name in names})[0]
            mask = given["attention_mask"][..., None]
            found.update(zip(some, (hidden * mask).sum(1) / mask.sum(1), strict=True))
        return [found[i] for i in range(len(texts))]

    return run


def start_ceiling(folder: Path, device: str, dtype: str, batch: int) -> Run:
    """Only the matrix products of the linear layers, on real tokens, in large batches: what no fp32 code undercuts."""
    import torch
    from torch.nn import functional as F
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    config = AutoConfig.from_pretrained(folder)
    width, inner = config.hidden_size, config.intermediate_size
    shapes = [(3 * width, width), (width, width), (inner, width), (width, inner)]
    made = {"device": device, "dtype": getattr(torch, dtype)}
    layers = [[torch.randn(*shape, **made) for shape in shapes] for _ in range(config.num_hidden_layers)]

    @torch.inference_mode()
    def run(texts: list[str]) -> None:
        tokens = sum(len(ids) for ids in tokenizer(texts, truncation=True)["input_ids"])
        most = 1024 if device == "cpu" else 65536
        for start in range(0, tokens, most):
            x = torch.randn(min(most, tokens - start), inner, **made)
            for weights in layers:
                for weight in weights:
                    F.linear(x[:, : weight.shape[1]], weight)
        if device == "cuda":
            torch.cuda.synchronize()

    return run


STARTS = {
    "bertsmith": start_bertsmith,
    "transformers": start_transformers,
    "transformers-sorted": lambda *given: start_transformers(*given, by_length=True),
    "sentence-transformers": start_sentence_transformers,
    "onnx": start_onnx,
    "ceiling": start_ceiling,
}


def contest(options: argparse.Namespace, texts: list[str]) -> None:
    """A contestant's process: reads `bulk` or `single` from standard input, answers with seconds and peak memory."""
    import torch

    torch.set_num_threads(options.threads)
    run = STARTS[options.contest](options.folder, options.device, options.dtype, options.batch)
    run(texts[:32])
    run([SHORT])
    print("ready", flush=True)
    for line in sys.stdin:
        single = line.strip() == "single"
        calls = [[SHORT]] * 40 if single else [texts]
        seconds = []
        for given in calls:
            start = time.perf_counter()
            run(given)
            seconds.append(time.perf_counter() - start)
        seconds.sort()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if options.device == "cuda":
            memory = torch.cuda.max_memory_allocated() / 2**20
        print(json.dumps({"seconds": seconds[len(seconds) // 2], "memory_mib": memory}), flush=True)


class Contestant:
    """Asleep while others run: it reads its next order from a pipe."""

    def __init__(self, name: str, folder: Path, options: argparse.Namespace) -> None:
        self.name = name
        command = [sys.executable, __file__, "--contest", name, "--folder", str(folder), "--texts", str(options.texts)]
        command += ["--copies", str(options.copies), "--batch", str(options.batch), "--device", options.device]
        command += ["--dtype", options.dtype, "--threads", str(options.threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.bulk: list[float] = []
        self.single: list[float] = []
        self.memory = 0.0
        if self._read() != "ready":
            assert self.process.stderr is not None
            raise SystemExit(f"{name} did not start:\n{self.process.stderr.read()[-2000:]}")

    def go(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        found = json.loads(self._read())
        (self.single if what == "single" else self.bulk).append(found["seconds"])
        self.memory = found["memory_mib"]

    def _read(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(("ready", "{")):
                return line.strip()
        return ""

    def stop(self) -> None:
        self.process.communicate()


def measure(shape: str, options: argparse.Namespace) -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_folder(folder, shape, options.vocabulary)
        contestants = [Contestant(name, folder, options) for name in options.names]
        for _ in range(options.rounds):
            for contestant in contestants:
                contestant.go("single")
            for contestant in contestants:
                contestant.go("bulk")
        for contestant in contestants:
            contestant.stop()
    ours = next(c for c in contestants if c.name == "bertsmith")
    rows = []
    for c in contestants:
        rows.append(
            {
                "shape": shape,
                "contestant": c.name,
                "bulk_s": round(min(c.bulk), 3),
                "times_ours": round(min(c.bulk) / min(ours.bulk), 2),
                "single_ms": round(1000 * min(c.single), 2),
                "ours_to_single": round(min(ours.single) / min(c.single), 2),
                "memory_mib": round(c.memory),
                "bulk_rounds_s": [round(s, 3) for s in c.bulk],
                "single_rounds_ms": [round(1000 * s, 2) for s in c.single],
            }
        )
    return rows


def show(rows: list[dict[str, object]]) -> None:
    print(f"{'shape':8} {'contestant':22} {'all texts':>9} {'x ours':>7} {'one text':>9} {'ours/its':>8} {'memory':>9}")
    for row in rows:
        bulk, single = f"{row['bulk_s']:.2f} s", f"{row['single_ms']:.2f} ms"
        print(
            f"{row['shape']:8} {row['contestant']:22} {bulk:>9} {row['times_ours']:>7} {single:>9} "
            f"{row['ours_to_single']:>8} {row['memory_mib']:>5} MiB"
        )


def describe(options: argparse.Namespace) -> str:
    """The machine and the precision, for the page that shows the figures."""
    import torch

    if options.device == "cuda":
        return f"{torch.cuda.get_device_name()}, {options.dtype}"
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    widest = torch.backends.cpu.get_cpu_capability()
    return f"{options.threads} threads of {model[1] if model else platform.processor()} ({widest}), {options.dtype}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--without", nargs="+", default=[], choices=CONTESTANTS[1:])
    parser.add_argument("--texts", type=Path, default=HERE / "data" / "sentences.txt", help="one text a line")
    parser.add_argument("--vocabulary", type=Path, help="a WordPiece vocab.txt")
    parser.add_argument("--copies", type=int, default=1, help="take the texts so many times")
    parser.add_argument("--batch", type=int, default=32, help="texts in a batch of the peers")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument("--contest", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parse()
    texts = options.texts.read_text(encoding="utf-8").splitlines() * options.copies
    if options.contest:
        return contest(options, texts)
    options.vocabulary = options.vocabulary or find_model("--vocabulary FILE") / "vocab.txt"
    options.names = [name for name in CONTESTANTS if name not in options.without]
    rows = [row for shape in options.shapes for row in measure(shape, options)]
    show(rows)
    if options.out:
        words = [word for word in sys.argv[1:] if word not in ("--out", str(options.out), "--commit", options.commit)]
        about = {
            "about": describe(options),
            "command": " ".join(["python benchmarks/inference.py", *words]),
            "date": str(date.today()),
            "commit": options.commit or find_commit(),
            "texts": len(texts),
        }
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
