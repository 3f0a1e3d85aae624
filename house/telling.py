"""What the card says about text and training: folders of the corpus and of the encoder in, small records out."""

import json
import re
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

UNITS = {"G": 1e9, "T": 1e12, "P": 1e15}


def tell_corpus(folder: Path) -> dict[str, Any]:
    """How much was read, dropped and kept, and what was found of each benchmark."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    found: Counter[str] = Counter()
    strings: Counter[str] = Counter()
    for one in report["exclude"]:
        name = name_benchmark(Path(one["file"]))
        found[name] += one["paragraphs"]
        strings[name] += one["strings"] - one["too_short"]
    return {
        "corpus": folder.name.removeprefix("corpus-"),
        "sources": [{"name": Path(one["path"]).name, "bytes": one["size"]} for one in report["sources"]],
        "read": {key: report["read"][key] for key in ("documents", "characters")},
        "dropped": {why: {"count": told["count"], "characters": told["characters"]}
                    for why, told in report["dropped"].items()},
        "kept": report["kept"],
        "gram": report["settings"]["gram"],
        "excluded": [{"benchmark": name, "strings": strings[name], "paragraphs": found[name]} for name in found],
        "speed": report["speed"],
    }  # fmt: skip


def name_benchmark(path: Path) -> str:
    """A set is called as its folder: that of the data, or of the sentences that were made of it."""
    parts = path.parts
    start = parts.index("exclude") + 1 if "exclude" in parts else parts.index("data") + 1 if "data" in parts else -2
    return "/".join(parts[start : start + (2 if parts[start] in ("glue", "choice") else 1)])


def tell_encoder(folder: Path) -> dict[str, Any]:
    """What the run cost, as the run itself measured it."""
    report = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    speed, settings = report["speed"], report["settings"]
    tokens = speed["tokens_per_second"] * speed["seconds"]
    peak = re.match(r"([\d.]+) ([GTP])FLOP/s", speed.get("peak") or "")
    flops = float(peak[1]) * UNITS[peak[2]] * speed["utilization"] * speed["seconds"] if peak else None
    table = config["vocab_size"] * config["hidden_size"]
    return {
        "device": speed["device"],
        "machine": name_gpu(speed["device"]),
        "seconds": round(speed["seconds"], 1),
        "tokens": round(tokens),
        "tokens_per_second": round(speed["tokens_per_second"]),
        "utilization": speed.get("utilization"),
        "peak": speed.get("peak"),
        "flops": flops,
        "steps": settings["steps"],
        "parameters": count(folder),
        "table": table,
        "shape": {key: config[key] for key in ("num_hidden_layers", "hidden_size", "num_attention_heads",
                                               "intermediate_size", "vocab_size", "max_position_embeddings")},
        "model_type": config["model_type"],
        "settings": {key: settings[key] for key in ("recipe", "asks", "mask_rate", "lengths", "tokens", "first_tokens",
                                                    "rate", "optimizer", "schedule", "cooldown", "seed")},
        "held_out": {name: one["value"] for name, one in report["metrics"].get("held-out", {}).items()},
    }  # fmt: skip


def name_gpu(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device.startswith("cuda") and torch.cuda.is_available() else device


def count(folder: Path) -> int:
    from safetensors import safe_open

    total = 0
    with safe_open(folder / "model.safetensors", "np") as file:
        for name in file.keys():  # noqa: SIM118
            size = 1
            for side in file.get_slice(name).get_shape():
                size *= side
            total += size
    return total


def write_record(path: Path, record: dict[str, Any], command: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"date": str(date.today()), "command": command}
    path.write_text(json.dumps({**about, **record}, indent=1) + "\n", encoding="utf-8")
