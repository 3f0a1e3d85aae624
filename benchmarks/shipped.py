"""What the shipped form costs: bytes on disk, seconds from the folder to the first answer, and what storage changes.

    python benchmarks/shipped.py                        # random models of two shapes with six adapters, 2 CPU threads
    python benchmarks/shipped.py --model FOLDER         # a real one, with the adapters in its folder

Times are those of fresh processes, after the imports, which have a line of their own; the median of several. Vectors
and fills are compared with those of the same model in float32. Random weights have no margins: a real model's fills
agree far more often.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from origins import find_model

SHAPES = {"modernbert 12 x 512": ("modernbert-base", 12, 512), "modernbert 8 x 640": ("modernbert-base", 8, 640),
          "bert 12 x 512": ("bert-base-uncased", 12, 512)}  # fmt: skip
VOCABULARY, RANK = 16_384, 8
ADAPTERS = {
    "sentiment": ("classify", ["negative", "positive"], False),
    "nli": ("classify", ["contradiction", "entailment", "neutral"], True),
    "similarity": ("regress", ["score"], True),
    "follows": ("classify", ["follows", "does not follow"], True),
    "names": ("tag", ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"], None),
    "answers": ("span", ["start", "end"], None),
}
HEADS = {"regress": "classify"}  # of a task that is not called as its head
DEFAULTS = {"classify": "sentiment", "classify-pair": "nli", "zero-shot": "nli", "follows": "follows"}
TEXTS = [
    "The river rose so fast that nobody in the village had time to move.",
    "She opened the letter, read it twice and put it back into the drawer.",
    "A good film needs a story, and this one has three of them.",
    "The committee will meet again in March to decide about the new bridge.",
    "Milk, bread and two lemons.",
    "He said that the results were better than anyone had expected, and left.",
    "Rain is likely in the north, while the south stays dry until the evening.",
    "The museum shows the tools of smiths who worked here two hundred years ago.",
]
START = """
import json, sys, time
begun = time.perf_counter()
import torch
import bertsmith.loading
torch.set_num_threads(2)
imported = time.perf_counter()
model = bertsmith.loading.load(sys.argv[1])
loaded = time.perf_counter()
model.fill(f"The river {model.tokenizer.mask_token} fast.") if "mask" in model.checkpoint.heads else model.embed("a")
first = time.perf_counter()
if model.adapters:
    model.tag("Ann lives in Oslo.") if "names" in model.adapters else None
print(json.dumps({"import": imported - begun, "load": loaded - imported, "first": first - imported,
                  "tagged": time.perf_counter() - imported}))
"""


def make_base(folder: Path, preset: str, depth: int, width: int) -> None:
    """A random encoder with a masked-token head and a vocabulary of real words."""
    from bertsmith.models.checkpoint import save_checkpoint
    from bertsmith.models.fresh import make_fresh

    words = (find_model() / "vocab.txt").read_text(encoding="utf-8").split("\n")[:VOCABULARY]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    about = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    tokens = {"pad": 0, "cls": words.index("[CLS]"), "sep": words.index("[SEP]")}
    sizes = {"vocabulary": VOCABULARY}
    save_checkpoint(make_fresh(preset, ["mask"], sizes, tokens, changed={"depth": depth, "width": width}), folder)


def make_adapters(base: Path, folder: Path) -> dict[str, Path]:
    """Adapters of random numbers for six jobs."""
    import torch

    from bertsmith.models.adapters import open_checkpoint, write_adapter
    from bertsmith.models.fitting import fit_head
    from bertsmith.models.lora import LoraShape, put_lora
    from bertsmith.tasks.catalog import find_task

    found = {}
    for seed, (name, (task, labels, pairs)) in enumerate(ADAPTERS.items()):
        fitted, _ = fit_head(open_checkpoint(base), HEADS.get(task, task), labels, seed=seed)
        put_lora(fitted, LoraShape(RANK), seed)
        with torch.no_grad():
            for part, parameter in fitted.network.named_parameters():
                if ".low.up" in part:
                    parameter.normal_(0, 0.02)
        found[name] = folder / name
        write_adapter(fitted, folder / name, base)
        settings = {**find_task(task).settings_from(labels, None), "pairs": pairs}
        (folder / name / "bertsmith.json").write_text(json.dumps({"task": task, "settings": settings}))
    return found


def time_start(folder: Path, rounds: int) -> dict[str, object]:
    runs = []
    for _ in range(rounds):
        done = subprocess.run([sys.executable, "-c", START, str(folder)], check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    seconds = {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # processor seconds of one thread do not grow on a busy machine
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            START.replace("perf_counter", "process_time").replace("threads(2)", "threads(1)"),
            str(folder),
        ],
        check=True,
        capture_output=True,
        text=True,
        env=alone,
    )
    return {**seconds, "processor": {key: round(value, 3) for key, value in json.loads(done.stdout).items()}}


def compare(plain: Path, adapters: dict[str, Path], shipped: Path) -> dict[str, float]:
    """How alike the two are: the least cosine of vectors, how often the first fill is the same, of adapters' labels."""
    import numpy as np

    import bertsmith

    one, other = bertsmith.load(plain, adapters=adapters or None), bertsmith.load(shipped)
    vectors = [model.embed(TEXTS, normalize=True) for model in (one, other)]
    found = {"least_cosine": float(np.min(np.sum(np.asarray(vectors[0]) * np.asarray(vectors[1]), axis=1)))}
    if "mask" in one.checkpoint.heads:
        masked = [" ".join([*words[:i], one.tokenizer.mask_token or "", *words[i + 1 :]])
                  for words in (text.split() for text in TEXTS) for i in range(len(words))]  # fmt: skip
        fills = [[result[0]["token"] for result in model.fill(masked, top_k=1)] for model in (one, other)]
        found["same_fill"] = float(np.mean([a == b for a, b in zip(*fills, strict=True)]))
    for name in one.adapters:
        if "classify" in one.adapters[name].checkpoint.heads and one.adapters[name].trained.get("task") == "classify":
            seconds = TEXTS[::-1] if one.adapters[name].trained["settings"].get("pairs") else None
            both = [model.use(name).classify(TEXTS, seconds, raw=True) for model in (one, other)]
            scores = [[{a["label"]: a["score"] for a in result} for result in results] for results in both]
            gaps = [abs(a[label] - b[label]) for a, b in zip(*scores, strict=True) for label in a]
            found[f"raw_score_gap:{name}"] = max(gaps)
    return {key: round(value, 5) for key, value in found.items()}


def measure(plain: Path, adapters: dict[str, Path], store: str, place: Path, rounds: int) -> dict[str, object]:
    import bertsmith

    defaults = {job: name for job, name in DEFAULTS.items() if name in adapters}
    made = bertsmith.export_model(plain, place, to="compact", store=store, adapters=adapters, defaults=defaults)
    parts = {name or "base": round(size / 2**20, 2) for name, size in made.sizes.items()}
    errors = {name or "base": round(error, 5) for name, error in made.errors.items()}
    return {
        "store": store, "MiB": round(made.size / 2**20, 2), "parts": parts, "relative_error": errors,
        "seconds": time_start(place, rounds), **compare(plain, adapters, place),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, help="a plain folder, with its adapters in it")
    parser.add_argument("--stores", nargs="+", default=["int8", "bf16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    import torch

    torch.set_num_threads(2)
    report: dict[str, object] = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as scratch:
        for name, shape in SHAPES.items() if given.model is None else [(given.model.name, None)]:
            plain, adapters = given.model, {}
            if shape is not None:
                plain = Path(scratch) / name.replace(" ", "-") / "plain"
                make_base(plain, *shape)
                adapters = make_adapters(plain, plain.parent / "adapters-apart")
            rows = [measure(plain, adapters, store, Path(scratch) / f"{name}-{store}".replace(" ", "-"), given.rounds)
                    for store in given.stores]  # fmt: skip
            report[name] = {"plain_seconds": time_start(plain, given.rounds), "rows": rows}
            print(name, json.dumps(report[name], indent=2), flush=True)
    if given.out:
        given.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
