"""What only a GPU can show of pretraining: compiled passes against plain ones, and a stopped run against a whole one.

    python benchmarks/pretraining_checks.py CORPUS --device cuda [--only smith,bert] [--steps 16]
    python benchmarks/pretraining_checks.py                # a corpus of this project's own words, on the CPU

For each way of asking, at small sizes: the losses of compiled passes in bf16 must be those of plain ones in autocast to
rounding, with every kernel made ready beside them; and with `deterministic` a run that was stopped and goes on must end
with the bits of one that was not. Prints a line a check; ends with status 1 if one fails.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.layers import warming
from bertsmith.training.compiled import TwinPasses
from bertsmith.training.progress import Watcher

SIZES: dict[str, Any] = {"depth": 3, "width": 128, "heads": 2, "tokens": 16_384, "pass_tokens": 8192, "dropout": 0.0,
                         "rate": 1e-3, "log_every": 1, "guard": 0.0}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {
    "smith": {"recipe": "smith", "lengths": "128:0.5,512:0.5"},
    "bert": {"recipe": "bert", "lengths": "128:0.5,256:0.5"},
    "albert": {"recipe": "albert", "lengths": "128"},
    "electra": {"recipe": "electra", "lengths": "128"},
    "roberta, dropout": {"recipe": "roberta", "lengths": "128", "dropout": 0.1},
    "windows": {"recipe": "modernbert", "lengths": "256"},
    "causal first": {"recipe": "smith", "asks": "causal:0.5,masked:0.5", "lengths": "128"},
    "whole words": {"recipe": "bert", "asks": "masked", "whole_words": True, "lengths": "128"},
}
CLOSE = 0.02  # between losses of bf16 and autocast


class Stop(Watcher):
    def __init__(self, at: int) -> None:
        self.at = at

    def stepped(self, step: int, record: Any, speed: Any) -> None:
        if step == self.at:
            raise KeyboardInterrupt


def train(options: argparse.Namespace, out: Path, way: dict[str, Any], **more: Any) -> tuple[list[float], float]:
    """The loss of each step, and how long it took."""
    begun = time.perf_counter()
    given = {**SIZES, **way, "max_steps": options.steps, "evaluate_every": options.steps, **more}
    recipe = given.pop("recipe")
    bertsmith.pretrain(options.corpus, out, recipe, device=options.device, keep_checkpoints=True, **given)
    log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [record["loss"] for record in log if "loss" in record], time.perf_counter() - begun


def check_losses(options: argparse.Namespace, folder: Path, way: dict[str, Any]) -> str:
    compiled, seconds = train(options, folder / "compiled", way)
    plain, _ = train(options, folder / "plain", way, compile=False)
    apart = max(abs(one - other) / other for one, other in zip(compiled, plain, strict=True))
    if warming.failures:
        return f"FAILED: kernels were not made ready: {warming.failures[0]}"
    if TwinPasses.failures:
        return f"FAILED: passes could not be recorded: {TwinPasses.failures[0]}"
    told = f"loss {compiled[0]:.4f} to {compiled[-1]:.4f}, plain {plain[-1]:.4f}, apart {apart:.2%}, {seconds:.0f} s"
    # Where chance is drawn in another place, what is dropped differs: there both must only learn.
    is_fine = apart < CLOSE or way.get("dropout", 0.0) > 0
    return told if is_fine and compiled[-1] < compiled[0] else f"FAILED: {told}"


def check_resume(options: argparse.Namespace, folder: Path, way: dict[str, Any]) -> str:
    train(options, folder / "whole", way, deterministic=True)
    try:
        train(options, folder / "parts", way, deterministic=True, watchers=[Stop(options.steps // 2)])
    except BertsmithError as stopped:
        if "goes on from there" not in str(stopped):
            raise
    train(options, folder / "parts", way, deterministic=True)
    one, other = (safetensors.torch.load_file(folder / name / "model.safetensors") for name in ("whole", "parts"))
    apart = max((one[name].float() - other[name].float()).abs().max().item() for name in one)
    return "bit-equal" if apart == 0 else f"FAILED: weights differ by {apart:.3g}"


def make_corpus(folder: Path) -> Path:
    root = Path(__file__).parent.parent
    texts = folder / "texts.txt"
    pages = [page.read_text(encoding="utf-8") for page in (*root.glob("*.md"), *root.glob("src/bertsmith/**/*.py"))]
    texts.write_text("\n\n".join(pages), encoding="utf-8")
    bertsmith.train_tokenizer(texts, folder / "pieces", size=1500)
    bertsmith.build_corpus(texts, folder / "pieces", folder / "corpus", filters=False)
    return folder / "corpus"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", type=lambda text: text.split(","), default=None)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--checks", type=lambda text: text.split(","), default=["losses", "resume"])
    options = parser.parse_args()
    options.steps = options.steps or (16 if options.device == "cuda" else 4)
    if options.device == "cpu":  # does it run, not what it shows
        options.only = options.only or ["smith"]
        SIZES.update(width=32, tokens=2048, pass_tokens=1024)
    torch.set_float32_matmul_precision("high")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        options.corpus = options.corpus or make_corpus(Path(folder))
        for name in options.only or WAYS:
            for check, run in (("losses", check_losses), ("resume", check_resume)):
                if check in options.checks:
                    told = run(options, Path(folder, f"{name} {check}".replace(" ", "-").replace(",", "")), WAYS[name])
                    failed |= told.startswith("FAILED")
                    print(f"{name}: {check}: {told}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
