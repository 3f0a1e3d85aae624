"""A classifier as an ONNX graph: ours in fp32 and int8, torch's own export, and ONNX Runtime's quantizer on that.

    python benchmarks/graphs.py                                            # agreement alone, on prose
    python benchmarks/graphs.py --data dev.tsv --label-column label        # with accuracy

The texts are tokenized beforehand. Each contestant is a process of its own with numpy and ONNX Runtime and nothing
else, which reads length-sorted, padded batches, then one text at a time; the best of several rounds, taken in turn.
Two more are bertsmith itself, from the text to the scores: by the weights, and by the int8 graph in their place.
Answers that changed are counted against our graph in fp32.
"""

import argparse
import csv
import inspect
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from origins import find_commit, name_machine, read_peak_memory

HERE = Path(__file__).resolve().parent
Reader: TypeAlias = tuple[Callable[[], Any], Callable[[int], Any]]  # of all texts, and of one by its number
OURS, SMALL, THEIRS, QUANTIZED = "bertsmith", "bertsmith int8", "torch.onnx", "torch.onnx, quantize_dynamic"
LOADED = {"plain": "from text, by the weights", "int8": "from text, by the int8 graph"}  # folders in bertsmith.load
SINGLES = 40  # texts that are read one at a time


def make_graphs(place: Path, options: argparse.Namespace) -> dict[str, Path]:
    """The files of all contestants, from one model."""
    import bertsmith

    found = {}
    for name, store in ((OURS, "fp32"), (SMALL, "int8")):
        folder = bertsmith.export_model(options.model, place / store, to="onnx", head=options.head, store=store).folder
        (found[name],) = (folder / "onnx").iterdir()
    found[THEIRS] = place / "theirs.onnx"
    export_theirs(bertsmith.export_model(options.model, place / "plain", head=options.head).folder, found[THEIRS])
    from onnxruntime.quantization import QuantType, quantize_dynamic

    found[QUANTIZED] = place / "theirs-int8.onnx"
    quantize_dynamic(without_shapes(found[THEIRS]), found[QUANTIZED], weight_type=QuantType.QInt8, per_channel=True)
    return found | {name: place / folder for folder, name in LOADED.items()}


def without_shapes(path: Path) -> Any:
    """torch notes the shape of every value, with which the quantizer's own inference does not agree."""
    import onnx

    model = onnx.load(path)
    del model.graph.value_info[:]
    return model


def export_theirs(folder: Path, path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    given = AutoTokenizer.from_pretrained(folder)(["one text", "and another one"], padding=True, return_tensors="pt")
    given = {name: x for name, x in given.items() if name in inspect.signature(model.forward).parameters}
    dynamic = {name: {0: torch.export.Dim("rows"), 1: torch.export.Dim("length", max=512)} for name in given}
    torch.onnx.export(
        model, (), str(path), kwargs=given, input_names=list(given), output_names=["logits"],
        dynamic_shapes=dynamic, dynamo=True, verbose=False, external_data=False,
    )  # fmt: skip


def contest(options: argparse.Namespace) -> None:
    """A contestant's process: a line in, its seconds, memory and scores out."""
    open_ = open_folder if Path(options.contest).is_dir() else open_graph
    read_all, read_one = open_(options)
    scores = read_all()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        read_all()
        middle = time.perf_counter()
        for i in range(SINGLES):
            read_one(i)
        end = time.perf_counter()
        seconds = {"bulk": middle - start, "single": (end - middle) / SINGLES}
        print(json.dumps({**seconds, "memory": read_peak_memory()}), flush=True)
    print(json.dumps(scores), flush=True)


def open_graph(options: argparse.Namespace) -> Reader:
    import onnxruntime

    kept = np.load(options.rows / "rows.npz")
    ids = np.split(kept["ids"], np.cumsum(kept["lengths"])[:-1])
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(options.contest, settings, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def read(some: list[int]) -> Any:
        padded = np.zeros((len(some), max(len(ids[i]) for i in some)), np.int64)
        mask = np.zeros_like(padded)
        for place, i in enumerate(some):
            padded[place, : len(ids[i])], mask[place, : len(ids[i])] = ids[i], 1
        given = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
        return session.run(["logits"], {name: given[name] for name in names})[0]

    def read_all() -> Any:
        parts = [order[start : start + options.batch] for start in range(0, len(order), options.batch)]
        found = dict(zip(order, np.concatenate([read(part) for part in parts]), strict=True))
        return [found[i].tolist() for i in range(len(ids))]

    return read_all, lambda i: read([i])


def open_folder(options: argparse.Namespace) -> Reader:
    import bertsmith

    texts = json.loads((options.rows / "texts.json").read_text(encoding="utf-8"))
    model = bertsmith.load(options.contest, device="cpu", threads=options.threads)

    def read(some: list[str]) -> Any:
        every = model.classify(some, raw=True)
        told = [{answer["label"]: answer["score"] for answer in one} for one in every]
        return [[one[label] for label in model.checkpoint.labels] for one in told]

    return lambda: read(texts), lambda i: read([texts[i]])


def measure(graphs: dict[str, Path], rows: Path, options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    line = [sys.executable, __file__, "--rows", str(rows), "--threads", str(options.threads)]
    line += ["--batch", str(options.batch), "--contest"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes: dict[str, Any] = {name: subprocess.Popen([*line, str(path)], **pipes) for name, path in graphs.items()}
    for process in processes.values():
        process.stdout.readline()
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in graphs}
    for _ in range(options.rounds):
        for name, process in processes.items():
            process.stdin.write("go\n")
            process.stdin.flush()
            rounds[name].append(json.loads(process.stdout.readline()))
    return {
        name: {"rounds": rounds[name], "scores": np.asarray(json.loads(process.communicate()[0]))}
        for name, process in processes.items()
    }


def measure_size(path: Path) -> float:
    """In MiB: a graph, or the graph or the weights of a folder."""
    files = [path] if path.is_file() else [*path.glob("onnx/*"), *path.glob("*.safetensors")]
    return sum(file.stat().st_size for file in files) / 2**20


def read_texts(options: argparse.Namespace) -> tuple[list[str], list[str] | None]:
    if options.data is None:
        return (HERE / "data" / "sentences.txt").read_text(encoding="utf-8").splitlines(), None
    with options.data.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t" if options.data.suffix == ".tsv" else ","))
    return [row[options.text_column] for row in rows], [row[options.label_column] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model; the default is the one in the package")
    parser.add_argument("--head", default="sentiment", help="its adapter, or the job of its own head")
    parser.add_argument("--data", type=Path, help="CSV or TSV with labels")
    parser.add_argument("--text-column", default="sentence")
    parser.add_argument("--label-column", default="label", help="with numbers of the head's outputs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--contest", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contest:
        return contest(options)
    texts, labels = read_texts(options)
    import bertsmith

    tokenizer = bertsmith.load(options.model).tokenizer
    ids = [tokenizer.encode(text).ids[:512] for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        lengths = [len(row) for row in ids]
        (place / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        np.savez(place / "rows.npz", ids=np.concatenate(ids).astype(np.int64), lengths=np.asarray(lengths))
        graphs = make_graphs(place, options)
        found = measure(graphs, place, options)
        sizes = {name: measure_size(path) for name, path in graphs.items()}
    exact = found[OURS]["scores"]
    rows = []
    for name, one in found.items():
        scores, best = one["scores"], {key: min(r[key] for r in one["rounds"]) for key in ("bulk", "single")}
        right = None if labels is None else float(np.mean(scores.argmax(1) == np.asarray(labels, int)))
        rows.append(
            {
                "contestant": name, "file_mib": round(sizes[name], 1), "bulk_s": round(best["bulk"], 2),
                "single_ms": round(1000 * best["single"], 2), "memory_mib": round(one["rounds"][-1]["memory"]),
                "accuracy": None if right is None else round(right, 4),
                "changed": int((scores.argmax(1) != exact.argmax(1)).sum()),
                "usual_difference": float(f"{np.sqrt(np.mean((scores - exact) ** 2)):.3g}"),
                "largest_difference": float(f"{np.abs(scores - exact).max():.3g}"), "rounds": one["rounds"],
            }
        )  # fmt: skip
        print({key: value for key, value in rows[-1].items() if key != "rounds"}, flush=True)
    if options.out:
        options.device = "cpu"
        words = [word for word in sys.argv[1:] if word not in ("--out", str(options.out))]
        words = [Path(word).name if options.data and word == str(options.data) else word for word in words]
        about = {"about": name_machine(options), "command": " ".join(["python benchmarks/graphs.py", *words]),
                 "date": str(date.today()), "commit": find_commit(), "texts": len(texts)}  # fmt: skip
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
