"""Fine-tunes with `transformers`' Trainer and prints one JSON object: the other side of benchmarks/finetune.py.

    python benchmarks/finetune_peer.py --task sst2 --train train.tsv --dev dev.tsv --model FOLDER --epochs 3

Dynamic padding by the library's own collators, its optimizer, its schedule; every setting from the command line. The
development data is scored after each epoch, outside the clock. Where `accelerate` is missing, which Trainer needs, a
plain loop of the same steps takes its place and the output says so ("loop").
"""

import argparse
import json
import math
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from origins import read_peak_memory
from peer_tasks import TASKS, Logits, Work, prepare

SETTINGS = ("epochs", "batch", "rate", "warmup", "weight_decay", "clip", "length", "device", "precision", "steps")


class Clock:
    """Seconds of training alone: all of it, and what came after the first `skip` optimizer steps."""

    def __init__(self, device: str, skip: int) -> None:
        self.device, self.skip = device, skip
        self.whole = self.counted = 0.0
        self.steps = self.since = 0
        self.warm = False

    def start(self) -> None:
        self.since = self.now()

    def stop(self) -> None:
        passed = self.now() - self.since
        self.whole += passed
        self.counted += passed if self.warm else 0.0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.skip:
            self.stop()
            self.warm = True
            self.start()

    def now(self) -> float:
        import torch

        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


class Scorer:
    """Scores the development data when asked, with the clock stopped."""

    def __init__(self, work: Work, collator: Any, clock: Clock, options: argparse.Namespace) -> None:
        self.work, self.collator, self.clock, self.options = work, collator, clock, options
        self.epochs: list[dict[str, float]] = []

    def __call__(self, model: Any) -> None:
        self.clock.stop()
        if self.options.score:
            self.epochs.append(self.work.score(self.predict(model)))
            print(f"epoch {len(self.epochs)}: {self.epochs[-1]}", file=sys.stderr, flush=True)
        self.clock.start()

    def predict(self, model: Any) -> Logits:
        import torch

        model.eval()
        found: Logits = []
        for start in range(0, len(self.work.dev), 128):
            some = [{name: one[name] for name in one if name != "labels"} for one in self.work.dev[start : start + 128]]
            given = self.collator.tokenizer.pad(some, return_tensors="pt").to(self.options.device)
            with torch.inference_mode(), autocast(self.options):
                made = model(**given)
            scores = [made[name].float().cpu().numpy() for name in self.work.outputs]
            sizes = given["attention_mask"].sum(dim=1).tolist()
            found += [tuple(s[i, :size] if s.shape[1:2] == (given["input_ids"].shape[1],) else s[i] for s in scores)
                      for i, size in enumerate(sizes)]  # fmt: skip
        model.train()
        return found


def autocast(options: argparse.Namespace) -> Any:
    import torch

    return torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16")


def make_model(work: Work, options: argparse.Namespace) -> Any:
    import torch
    import transformers

    labels = {"id2label": dict(enumerate(work.labels)), "num_labels": len(work.labels)} if work.labels else {}
    # Full precision whatever the file holds: Trainer's autocast wants it, and the library would take the file's.
    model = getattr(transformers, work.model).from_pretrained(options.model, dtype=torch.float32, **labels)
    return model.to(options.device)


def count_steps(work: Work, options: argparse.Namespace) -> int:
    return options.steps or math.ceil(len(work.train) / options.batch) * options.epochs


def count_examples(steps: int, work: Work, options: argparse.Namespace) -> int:
    """The last batch of an epoch may be a small one."""
    epochs, rest = divmod(steps, math.ceil(len(work.train) / options.batch))
    return epochs * len(work.train) + rest * options.batch


def train_with_trainer(model: Any, work: Work, collator: Any, clock: Clock, scorer: Scorer, options: Any) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Watch(TrainerCallback):
        def on_train_begin(self, *given: Any, **named: Any) -> None:
            clock.start()

        def on_step_end(self, *given: Any, **named: Any) -> None:
            clock.step()

        def on_epoch_end(self, *given: Any, **named: Any) -> None:
            scorer(named["model"])

        def on_train_end(self, *given: Any, **named: Any) -> None:
            clock.stop()

    total = count_steps(work, options)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, num_train_epochs=options.epochs, max_steps=options.steps or -1, seed=options.seed,
            per_device_train_batch_size=options.batch, learning_rate=options.rate, weight_decay=options.weight_decay,
            warmup_steps=math.ceil(options.warmup * total), lr_scheduler_type="linear", max_grad_norm=options.clip,
            bf16=options.precision == "bf16", use_cpu=options.device == "cpu", torch_compile=options.compile,
            dataloader_num_workers=options.workers, dataloader_persistent_workers=options.workers > 0,
            remove_unused_columns=False, report_to="none", save_strategy="no", disable_tqdm=True, logging_steps=500,
            **({"train_sampling_strategy": "group_by_length"} if options.grouped else {}),
        )  # fmt: skip
        Trainer(model, arguments, data_collator=collator, train_dataset=work.train, callbacks=[Watch()]).train()


def train_plainly(model: Any, work: Work, collator: Any, clock: Clock, scorer: Scorer, options: Any) -> None:
    """What Trainer does, in order: loader, autocast, clip, fused AdamW in two groups, linear schedule."""
    import torch
    from torch.utils.data import DataLoader
    from transformers import get_linear_schedule_with_warmup

    small = [p for p in model.parameters() if p.ndim < 2]  # biases and norms
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": options.weight_decay},
              {"params": small, "weight_decay": 0.0}]  # fmt: skip
    optimizer = torch.optim.AdamW(groups, lr=options.rate, fused=True)
    total = count_steps(work, options)
    schedule = get_linear_schedule_with_warmup(optimizer, math.ceil(options.warmup * total), total)
    loader = DataLoader(
        work.train, options.batch, shuffle=True, collate_fn=collator, num_workers=options.workers,
        pin_memory=options.device == "cuda", persistent_workers=options.workers > 0,
    )  # fmt: skip
    run = torch.compile(model) if options.compile else model
    model.train()
    clock.start()
    while clock.steps < total:
        for given in loader:
            with autocast(options):
                loss = run(**given.to(options.device, non_blocking=True)).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            clock.step()
            if clock.steps == total:
                break
        scorer(model)
    clock.stop()


def contest(options: argparse.Namespace) -> dict[str, Any]:
    import torch
    import transformers

    torch.set_num_threads(options.threads)
    transformers.set_seed(options.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    work = prepare(options.task, tokenizer, options.train, options.dev, options.length, options.limit)
    model = make_model(work, options)
    collator = getattr(transformers, work.collator)(tokenizer)
    clock = Clock(options.device, options.skip)
    scorer = Scorer(work, collator, clock, options)
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    train = train_with_trainer if options.loop == "trainer" else train_plainly
    train(model, work, collator, clock, scorer, options)
    seen, skipped = (count_examples(steps, work, options) for steps in (clock.steps, options.skip))
    speed = (seen - skipped) / clock.counted if clock.warm else seen / clock.whole
    length = sum(len(feature["input_ids"]) for feature in work.train) / len(work.train)  # type: ignore[arg-type]
    best = max(scorer.epochs, key=lambda metrics: metrics[work.main], default={})
    return {
        "metrics": best if options.choose == "best" else (scorer.epochs or [{}])[-1],
        "by_epoch": scorer.epochs,
        "main": work.main,
        "examples_per_second": round(speed, 1),
        "tokens_per_second": round(speed * length),
        "tokens": round(seen * length),
        "steps": clock.steps,
        "seconds": round(clock.whole, 2),
        "memory_mib": round(peak_memory(options.device)),
    }


def peak_memory(device: str) -> float:
    import torch

    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return read_peak_memory()


def find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", required=True, choices=TASKS)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="folder of the encoder to start from")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--warmup", type=float, default=0.1, help="share of the steps")
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, help="stop after so many optimizer steps")
    parser.add_argument("--skip", type=int, default=20, help="optimizer steps before the clock of the speed starts")
    parser.add_argument("--limit", type=int, help="take the first so many examples of each file")
    parser.add_argument("--choose", default="best", choices=("best", "last"), help="the epoch whose metrics count")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--grouped", action="store_true", help="batches of like lengths")
    parser.add_argument("--workers", type=int, default=0, help="processes that collate batches")
    parser.add_argument("--no-score", dest="score", action="store_false", help="measure speed only")
    parser.add_argument("--loop", choices=("trainer", "plain"), help="the default is Trainer where it can run")
    return parser.parse_args()


def main() -> None:
    if len(sys.argv) == 1:  # `make bench` calls every script; this one is called by finetune.py
        return print("benchmarks/finetune.py runs this; --help lists what it takes.")
    options = parse()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    options.loop = options.loop or ("trainer" if find_version("accelerate") else "plain")
    packages = ("torch", "transformers", "accelerate", "tokenizers")
    about = {
        "task": options.task,
        "contestant": "transformers",
        "loop": options.loop,
        "variant": {"compile": options.compile, "grouped": options.grouped, "workers": options.workers},
        "seed": options.seed,
        "settings": {name: getattr(options, name) for name in SETTINGS},
        "versions": {"python": platform.python_version(), **{name: find_version(name) for name in packages}},
    }
    print(json.dumps({**about, **contest(options)}))


if __name__ == "__main__":
    main()
