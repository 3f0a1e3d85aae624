"""Runs that never happened, with facts as a real one has them: for the tests of the report."""

import math
import random

from bertsmith.evaluation.report import RunFacts


def make_curves(steps: int, metrics: tuple[str, ...], seed: int = 0) -> list[dict]:
    draw = random.Random(seed)
    records: list[dict] = []
    for step in range(1, steps + 1):
        done = step / steps
        loss = 0.25 + 1.2 * math.exp(-5 * done) + draw.gauss(0, 0.09)
        rate = 5e-5 * min(done / 0.1, (1 - done) / 0.9)
        records.append({"step": step, "epoch": 3 * done, "loss": max(loss, 0.02), "rate": rate,
                        "norm": abs(draw.gauss(2.2, 0.9)) + 3 * math.exp(-9 * done), "tokens": 900 * step})  # fmt: skip
        if step % max(steps // 8, 1) == 0:
            found = {name: 0.93 - 0.05 * i - 0.3 * math.exp(-4 * done) - 0.02 * done for i, name in enumerate(metrics)}
            records.append({"step": step, "epoch": 3 * done, "split": "dev", "metrics": {**found, "loss": loss + 0.08}})
    return records


def make_scores(names: tuple[str, ...], n: int) -> dict:
    values = [0.9243 - 0.031 * i for i in range(len(names))]
    return {k: {"value": v, "low": v - 0.0152, "high": v + 0.0139, "n": n} for k, v in zip(names, values, strict=True)}


def make_confusion(labels: list[str], seed: int = 1) -> dict:
    draw = random.Random(seed)
    counts = [[0] * len(labels) for _ in labels]
    for i in range(len(labels)):
        for _ in range(draw.randint(30, 160)):
            wrong = draw.random() < 0.15
            counts[i][draw.choice([(i + 1) % len(labels), draw.randrange(len(labels))]) if wrong else i] += 1
    return {"labels": labels, "counts": counts}


def rows_of(confusion: dict) -> list[dict]:
    counts, rows = confusion["counts"], []
    for i, label in enumerate(confusion["labels"]):
        right, said, gold = counts[i][i], sum(row[i] for row in counts), sum(counts[i])
        rows.append({"label": label, "precision": right / (said or 1), "recall": right / (gold or 1),
                     "f1": 2 * right / ((said + gold) or 1), "support": gold})  # fmt: skip
    return rows


def make_lengths(n: int, mean: float, limit: int, policy: str, seed: int = 2) -> dict:
    draw = random.Random(seed)
    found = [min(int(draw.lognormvariate(math.log(mean), 0.6)) + 3, 900) for _ in range(n)]
    edges = [20 * i for i in range(max(found) // 20 + 2)]
    counts = [sum(low <= x < low + 20 for x in found) for low in edges[:-1]]
    cut = [x - limit for x in found if x > limit]
    return {"edges": edges, "counts": counts, "limit": limit, "policy": policy, "examples": n, "examples_cut": len(cut),
            "tokens": sum(found), "tokens_cut": 0 if policy == "windows" else sum(cut)}  # fmt: skip


def make_bins() -> list[dict]:
    return [{"confidence": 0.05 + i / 10, "accuracy": max(0.0, min(1.0, 0.02 + i / 10 - 0.05 * math.sin(i))),
             "count": [0, 0, 3, 9, 17, 31, 44, 70, 160, 900][i]} for i in range(10)]  # fmt: skip


SETTINGS = {
    "task": "classify", "epochs": 3, "batch": 32, "rate": 5e-5, "schedule": "linear", "warmup": 0.1, "decay": 0.01,
    "clip": 1.0, "seed": 13, "dtype": "bfloat16", "layer_decay": 0.95, "early_stop": None, "smoothing": 0.0,
    "weights": False, "adam": {"beta1": 0.9, "beta2": 0.999}, "columns": ["text", "label"],
}  # fmt: skip
SPEED = {"examples_per_second": 1432.7, "tokens_per_second": 51234.0, "seconds": 402.6, "device": "NVIDIA H200",
         "peak_memory": 3_412_000_000}  # fmt: skip
COMMAND = "bertsmith finetune --task classify --train news/train.csv --dev news/dev.csv --model minilm --out news-model"


def classify_facts() -> RunFacts:
    labels = ["business", "entertainment", "health", "politics", "science and technology", "sport", "travel", "weather"]
    confusion = make_confusion(labels)
    long = "The committee met on Tuesday. " * 6000
    errors = [
        {"text": "Shares in the football club fell by nine per cent after the final was lost.", "pair": None,
         "gold": "business", "predicted": "sport", "score": 0.997, "where": "news/dev.csv, row 812"},
        {"text": "Heat record broken again: what a week above 40 degrees does to the body, and how to sleep.",
         "gold": "health", "predicted": "weather", "score": 0.981, "where": "news/dev.csv, row 77"},
        {"text": long, "gold": "politics", "predicted": "business", "score": 0.93, "where": "news/dev.csv, row 1,204"},
        {"text": "اتفق الوزراء على ميزانية جديدة للبحث العلمي", "gold": "science and technology",
         "predicted": "politics", "score": 0.88, "where": "news/dev.csv, row 19"},
        *({"text": f"Number {i}: rain stopped play, and the minister left early for the airport.",
           "gold": labels[i % 8], "predicted": labels[(i + 3) % 8], "score": 0.8 - i / 50} for i in range(24)),
    ]  # fmt: skip
    return RunFacts(
        task="classify", title="News topics", base="microsoft/MiniLM-L12-H384-uncased", date="2026-03-14",
        version="0.3.0", labels=labels,
        metrics={"dev": make_scores(("accuracy", "macro F1", "weighted F1", "matthews", "ECE"), 1234)},
        curves=make_curves(800, ("accuracy", "macro F1", "matthews")), best_step=600, confusion=confusion,
        per_label=rows_of(confusion),
        reliability={"bins": make_bins(), "before": [{**b, "accuracy": b["accuracy"] * 0.85} for b in make_bins()],
                     "ece_before": 0.0712, "ece_after": 0.0143, "temperature": 1.62},
        errors=errors,
        lengths={"train": make_lengths(6000, 90, 256, "head+tail"), "dev": make_lengths(1234, 95, 256, "head+tail", 5)},
        data={"counts": {"train": 6000, "dev": 1234}, "files": {"train": "news/train.csv", "dev": "news/dev.csv"},
              "balance": {"train": {k: 1500 // (i + 1) + 40 for i, k in enumerate(labels)},
                          "dev": {k: 300 // (i + 1) + 9 for i, k in enumerate(labels)}},
              "findings": [{"level": "warning", "sentence": "14 texts stand in both news/train.csv and news/dev.csv."},
                           {"level": "note", "sentence": "news/train.csv, column label: “Sport” looks like “sport”."}],
              "facts": {"median length": 88, "empty texts": 0}},
        settings=SETTINGS, speed=SPEED, command=COMMAND,
    )  # fmt: skip


def tag_facts() -> RunFacts:
    labels = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC"]
    words = [
        "Officials",
        "of",
        "the",
        "Bank",
        "of",
        "Washington",
        "met",
        "Jordan",
        "Smith",
        "in",
        "Berlin",
        "on",
        "Friday",
        ",",
        "the",
        "Tagesspiegel",
        "reported",
        ".",
    ]
    gold = [
        "O",
        "O",
        "O",
        "B-ORG",
        "I-ORG",
        "I-ORG",
        "O",
        "B-PER",
        "I-PER",
        "O",
        "B-LOC",
        "O",
        "O",
        "O",
        "O",
        "B-ORG",
        "O",
        "O",
    ]
    said = [
        "O",
        "O",
        "O",
        "B-ORG",
        "I-ORG",
        "B-LOC",
        "O",
        "B-LOC",
        "I-PER",
        "O",
        "B-LOC",
        "O",
        "O",
        "O",
        "O",
        "B-MISC",
        "O",
        "O",
    ]
    errors = [{"words": words, "gold": gold, "predicted": said, "score": 0.99, "where": "eng.testa, line 5,120"},
              {"words": words * 400, "gold": gold * 400, "predicted": gold * 399 + said, "score": 0.71}]  # fmt: skip
    types = make_confusion(["PER", "ORG", "LOC", "MISC"], 4)
    return RunFacts(
        task="tag", title="Names in the news", base="bert-base-cased", date="2026-03-14", version="0.3.0",
        labels=labels, metrics={"dev": make_scores(("F1", "precision", "recall", "token accuracy"), 3250),
                 "test": make_scores(("F1", "precision", "recall", "token accuracy"), 3453)},
        curves=make_curves(1300, ("F1", "precision", "recall", "token accuracy"), 3), best_step=1296,
        confusion=make_confusion(labels, 6), per_label=rows_of(types), errors=errors,
        lengths={"train": make_lengths(4000, 22, 128, "windows"), "dev": make_lengths(1000, 22, 128, "windows", 8)},
        data={"counts": {"train": 14041, "dev": 3250, "test": 3453},
              "files": {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"},
              "balance": {"train": {"PER": 6600, "ORG": 6321, "LOC": 7140, "MISC": 3438}}},
        settings={**SETTINGS, "task": "tag"}, speed=SPEED, command=COMMAND.replace("classify", "tag"),
    )  # fmt: skip


def span_facts() -> RunFacts:
    context = (
        "The Normans were the people who in the 10th and 11th centuries gave their name to Normandy, a region in "
        "France. They were descended from Norse raiders and pirates from Denmark, Iceland and Norway who, under their "
        "leader Rollo, agreed to swear fealty to King Charles III of West Francia. "
    )
    filler = "Through generations of assimilation their descendants merged with the cultures around them. " * 300
    errors = [
        {"question": "Who was the Norse leader?", "context": context + filler, "gold": ["Rollo"],
         "gold_start": context.index("Rollo"), "predicted": "King Charles III",
         "predicted_start": context.index("King"), "score": 0.97, "where": "dev.json, question 12"},
        {"question": "When did they give their name?", "context": filler + context, "gold": ["10th and 11th centuries"],
         "predicted": "in the 10th and 11th", "score": 0.91, "where": "dev.json, question 14"},
        {"question": "Who gave their name to Normandy in the 1000's and 1100's?", "context": context, "gold": [],
         "predicted": "The Normans", "score": 0.62, "where": "dev.json, question 15"},
        {"question": "What country is it in?", "context": context, "gold": ["France"], "predicted": "", "score": 0.55},
    ]  # fmt: skip
    return RunFacts(
        task="span", title="Questions about articles", base="models/minilm", date="2026-03-14", version="0.3.0",
        metrics={"dev": {"F1": {"value": 81.784, "low": 80.91, "high": 82.6, "n": 11873},
                         "exact": {"value": 78.742, "low": 77.9, "high": 79.6, "n": 11873},
                         "no-answer accuracy": {"value": 84.11, "low": 83.2, "high": 85.0, "n": 11873}}},
        curves=make_curves(400, ("F1", "exact"), 7), best_step=400, thresholds={"no answer": -1.317}, errors=errors,
        reliability={"bins": make_bins(), "ece_before": 0.041},
        lengths={"train": make_lengths(3000, 150, 384, "windows"), "dev": make_lengths(900, 160, 384, "windows", 9)},
        data={"counts": {"train": 20000, "dev": 11873}, "facts": {"questions without an answer": "33 %"}},
        settings={**SETTINGS, "task": "span", "stride": 128}, speed=SPEED, command=COMMAND.replace("classify", "span"),
    )  # fmt: skip
