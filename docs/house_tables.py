"""The tables about the house model, for README.md and its card; one without figures says that they are missing."""

from typing import Any

from tables import heading, read_results, table

MISSING = "*not measured yet*"
TITLES = {
    "glue5": "CoLA (MCC), SST-2, MRPC (accuracy), RTE, STS-B (Spearman): mean, straight from the encoder",
    "glue5-warm": "the same, with RTE, MRPC and STS-B started from its NLI model",
    "blimp": "BLiMP, 67 sets, pseudo-log-likelihood",
    "squad": "SQuAD 1.1 dev, F1, from the questions there are",
    "conll2003": "CoNLL-2003 dev, F1 (a measurement: nothing trained on it is shipped)",
    "nli": "MNLI matched dev, accuracy, from the NLI sets there are",
    "fill-words": "5,000 words of held-out documents, all pieces hidden: first guess right, %",
}
TASKS = {"cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "rte": "RTE", "stsb": "STS-B", "rte-warm": "RTE, from NLI",
         "mrpc-warm": "MRPC, from NLI", "stsb-warm": "STS-B, from NLI", "nli": "MNLI-m", "squad": "SQuAD 1.1",
         "conll2003": "CoNLL-2003"}  # fmt: skip


def cell(one: dict[str, Any] | None) -> str:
    """A value with its 95 % interval."""
    if one is None:
        return ""
    if "cannot" in one:
        return "no mask head"
    if one.get("value") is None:
        return "…"
    tasks = one.get("tasks", {}).items()
    missing = [TASKS[name].partition(",")[0] for name, task in tasks if task["seeds"] < task["of_seeds"]]
    told = f" (seeds missing: {', '.join(missing)})" if missing else ""
    told = f" ({one['seeds']} of {one['of_seeds']} seeds)" if one.get("seeds", 0) < one.get("of_seeds", 0) else told
    return f"{one['value']:.1f} [{one['low']:.1f}, {one['high']:.1f}]{told}"


def house() -> str:
    """The marks and every model beside them."""
    parts = []
    for found in read_results("house.json"):
        models = list(found.get("summary", {}))
        rows = [
            [
                title,
                *(f"{mark:g}" for mark in found["marks"][measure]),
                *(cell(found["summary"][model].get(measure)) for model in models),
            ]
            for measure, title in TITLES.items()
        ]
        parts.append(f"{heading(found)}\n\n{table(['', 'floor', 'goal', 'moonshot', *models], rows)}")
    return "\n\n".join(parts)


def house_tasks() -> str:
    """The tasks one by one, with the rate that was chosen and the seeds."""
    parts = []
    for found in read_results("house.json"):
        for model, measures in found.get("summary", {}).items():
            tasks: dict[str, Any] = {}
            for measure, one in measures.items():
                tasks |= one.get("tasks", {measure: one} if "scores" in one else {})
            rows = [
                [TASKS[name], one["metric"], cell(one), ", ".join(f"{score:.1f}" for score in one["scores"]),
                 f"{one['rate']:g} of {', '.join(f'{rate:g}' for rate in one['rates'])}",
                 f"{one['epochs']} × batches of {one['batch']}"]
                for name, one in tasks.items()
            ]  # fmt: skip
            words = measures.get("fill-words", {})
            told = (f"\n\nWords guessed: content words {words['content']:.1f} %, function words "
                    f"{words['function']:.1f} %." if "content" in words and "function" in words else "")  # fmt: skip
            head = ["", "metric", "median", "each seed", "rate", "epochs"]
            parts.append(f"`{model}`\n\n{table(head, rows)}{told}")
    for found in read_results("house-warm-cpu.json"):
        for model, measures in found["summary"].items():
            rows = [
                [TASKS[name], one["metric"], cell(one), ", ".join(f"{score:.1f}" for score in one["scores"]),
                 f"{how['rate']:g}", f"{how['epochs']:g} × batches of {how['batch']}"]
                for name, one in measures["glue5-warm"]["tasks"].items() if (how := one.get("settings"))
            ]  # fmt: skip
            parts.append(f"`{model}`, adapters that go on from `nli`: {heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def house_heads() -> str:
    """What the shipped heads score, by each way to train them."""
    parts = []
    for found in read_results("house-heads.json"):
        ways = [way for way in ("lora", "together", "full") if any(way in line for line in found["table"])]
        sizes = {row["head"]: row.get("mb") for row in found["rows"] if row.get("way") == "lora"}
        rows = [
            [f"`{line['head']}`", line["metric"], *(f"{line[way]:.1f}" if way in line else "" for way in ways),
             f"{sizes[line['head']]:.1f}" if sizes.get(line["head"]) else ""]
            for line in found["table"]
        ]  # fmt: skip
        parts.append(f"{heading(found)}\n\n{table(['head', 'metric', *ways, 'MB of an adapter in fp32'], rows)}")
    return "\n\n".join(parts)


def house_text() -> str:
    """What was read, dropped and kept, and the paragraphs that were dropped for each benchmark."""
    parts = []
    for found in read_results("house-corpus.json"):
        kept = found["kept"]
        rows = [["read", f"{found['read']['documents']:,} documents", f"{found['read']['characters']:,} characters"]]
        rows += [[f"dropped: {why}", f"{one['count']:,}", f"{one['characters']:,} characters"]
                 for why, one in found["dropped"].items()]  # fmt: skip
        rows += [[f"kept: {side}", f"{one['documents']:,} documents", f"{one['tokens']:,} tokens"]
                 for side, one in kept.items()]  # fmt: skip
        parts.append(f"`{found['corpus']}`, {found['date']}: `{found['command']}`\n\n{table(['', '', ''], rows)}")
        rows = [[one["benchmark"], f"{one['strings']:,}", f"{one['paragraphs']:,}"] for one in found["excluded"]]
        head = ["benchmark", f"texts of {found['gram']} words or more", "paragraphs of the corpus dropped for it"]
        parts.append(table(head, rows))
    return "\n\n".join(parts)


def house_cost() -> str:
    parts = []
    for found in read_results("house-pretraining.json"):
        shape, settings = found["shape"], found["settings"]
        flops = "" if found["flops"] is None else f"{found['flops']:.2e}"
        rows = [
            ["architecture", f"`{found['model_type']}`: {shape['num_hidden_layers']} layers of {shape['hidden_size']}, "
             f"{shape['num_attention_heads']} heads, inner width {shape['intermediate_size']}, "
             f"{shape['vocab_size']:,} pieces, rows to {shape['max_position_embeddings']}"],
            ["weights", f"{found['parameters']:,}, of which {found['table']:,} in the word table"],
            ["training", f"{found['seconds'] / 60:.1f} minutes on {found['machine']}, {found['steps']:,} steps, "
             f"{found['tokens']:,} tokens at {found['tokens_per_second']:,} a second"],
            ["floating-point operations", flops],
            ["settings", ", ".join(f"{name} {value}" for name, value in settings.items())],
            ["held out", ", ".join(f"{name} {value:.4g}" for name, value in found["held_out"].items())],
        ]  # fmt: skip
        parts.append(f"`{found['command']}` ({found['date']})\n\n{table(['', ''], rows)}")
    return "\n\n".join(parts)


def proxies() -> str:
    """Every trial with what was expected of it and what came of it."""
    parts = []
    for found in read_results("proxies*.json"):
        rows = []
        for row in (row for row in found["rows"] if "masked" in row):
            masked, words, blimp = row["masked"], row.get("words", {}), row.get("blimp", {})
            rows.append([
                f"`{row['name']}`", row["corpus"], row["expected"],
                f"{100 * masked['accuracy']:.2f}" if "accuracy" in masked else "",
                f"{masked['loss']:.3f}" if "loss" in masked else "",
                f"{100 * words['all']:.1f}" if "all" in words else "",
                f"{row['held_out']['pseudo_perplexity']:.1f}" if "pseudo_perplexity" in row["held_out"] else "",
                f"{100 * blimp['accuracy']:.1f}" if "accuracy" in blimp else "",
                tell_tasks(row.get("tasks", {})),
                f"{row['tokens_per_second'] / 1e6:.2f}M", f"{row['seconds']:.0f} s",
            ])  # fmt: skip
        head = ["trial", "corpus", "expected", "masked at 15 %", "loss", "words", "pseudo-perplexity",
                "BLiMP (100 a set)", "mean of CoLA, SST-2, MRPC, RTE, STS-B", "tokens/s", "trained"]  # fmt: skip
        parts.append(f"{heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def tell_tasks(tasks: dict[str, Any]) -> str:
    """The mean, and the five by themselves; one that was cut off is a dash."""
    if not tasks or "error" in tasks:
        return ""
    each = ", ".join(f"{tasks[name]:.1f}" if name in tasks else "–" for name in ("cola", "sst2", "mrpc", "rte", "stsb"))
    return f"{tasks['mean']:.1f} ({each})" if "mean" in tasks else f"({each})"


HOUSE = {
    "house": house,
    "house-tasks": house_tasks,
    "house-heads": house_heads,
    "house-text": house_text,
    "house-cost": house_cost,
    "proxies": proxies,
}
