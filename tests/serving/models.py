"""Small models for a server: one for every head, and adapters on one encoder."""

from pathlib import Path

from whole.tiny import comparisons, make_encoder, reviews

import bertsmith

LEARN = {"epochs": 2, "batch": 8, "rate": 1e-2, "device": "cpu", "threads": 1, "lora": 4, "dropout": 0.0}
TAGS = [{"words": ["Ann", "lives", "in", word], "tags": ["B-PER", "O", "O", tag]}
        for word, tag in (("Oslo", "B-LOC"), ("Rome", "B-LOC"), ("it", "O"), ("this", "O"))] * 6  # fmt: skip
NLI = {0: "contradiction", 1: "neutral", 2: "entailment"}


def make_heads(place: Path) -> dict[str, Path]:
    """A model folder for each head that the reference has, by the name of its job."""
    return {
        "bare": make_encoder(place / "bare"),
        "fill": make_encoder(place / "fill", "ForMaskedLM"),
        "follows": make_encoder(place / "follows", "ForPreTraining"),
        "classify": make_encoder(place / "classify", "ForSequenceClassification", num_labels=3, id2label=NLI),
        "score": make_encoder(place / "score", "ForSequenceClassification", num_labels=1),
        "tag": make_encoder(place / "tag", "ForTokenClassification", num_labels=3,
                            id2label={0: "O", 1: "B-PER", 2: "I-PER"}),
        "answer": make_encoder(place / "answer", "ForQuestionAnswering"),
        "choose": make_encoder(place / "choose", "ForMultipleChoice"),
    }  # fmt: skip


def make_adapters(place: Path, encoder: Path) -> dict[str, Path]:
    """Three adapters on one encoder, by name."""
    asked = {"liked": ("classify", reviews()), "better": ("classify", comparisons()), "names": ("tag", TAGS)}
    for name, (task, rows) in asked.items():
        bertsmith.finetune(task, rows, rows, out=place / name, model=encoder, check=False, **LEARN)
    return {name: place / name for name in asked}
