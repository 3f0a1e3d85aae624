"""The tables of docs/results.md about pretraining."""

from typing import Any

from tables import heading, read_results, table

NAMES = {
    "ours": "bertsmith",
    "ours-all": "bertsmith, predicting at every token",
    "peer-autocast": "transformers, autocast",
    "peer-bf16": "transformers, bf16 weights",
    "peer-bf16-mask": "transformers, bf16 weights, a mask",
}


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def objectives() -> str:
    """One row a run: what it measured by its own questions, the same masked words for all, BLiMP, and who opens it."""
    parts = []
    for found in read_results("objectives.json"):
        rows = []
        for row in (row for row in found["rows"] if "masked" in row):
            own, peer = row["held_out"], row.get("transformers", {})
            teacher = f" of `{row['teacher']}`" if "teacher" in row else ""
            rows.append([
                f"`{row['name']}`{teacher}", percent(row["masked"]["accuracy"]), percent(own.get("masked_accuracy")),
                percent(own.get("next_sentence_accuracy")), percent(own.get("sentence_order_accuracy")),
                percent(own.get("replaced_accuracy")), percent(own.get("replaced_auc")),
                percent(row.get("blimp", {}).get("accuracy")),
                f"{row['steps']:,} in {row['seconds']:.0f} s", f"{row['tokens_per_second'] / 1e6:.2f}M",
                f"{peer.get('class', '–')}{'' if peer.get('opens') else ' (not as here)'}",
            ])  # fmt: skip
        head = ["", "masked at 15 %", "by its own masks", "next sentence", "sentence order", "replaced or not",
                "the same, AUC", "BLiMP", "steps", "tokens/s", "opens in"]  # fmt: skip
        parts.append(f"{heading(found)}, {found['minutes']:g} minutes a row\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def starting_line() -> str:
    """The recipe beside the plain script, and below it what each change of the recipe does."""
    parts = []
    for found in read_results("starting-line*.json"):
        told = {"masked": "masked at 15 %", "loss": "loss", "masked_stream": "masked, running text", "blimp": "BLiMP",
                "cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "rte": "RTE", "stsb": "STS-B", "mean": "mean of five",
                "mnli": "MNLI-m (10k)"}  # fmt: skip
        ways = {"plain": "plain script", "smith": "`smith`", "smith_replaced": "`smith`, replaced tokens too",
                "smith_rows": "`smith`, rows set apart as the script did"}  # fmt: skip
        ways |= {f"{way}_warm": f"{title}, from MNLI-10k" for way, title in ways.items() if way != "smith_rows"}
        summary = found.get("summary", {})
        rows = [
            [title, *(f"{summary[way][key]:.{3 if key == 'loss' else 1}f}" if key in summary.get(way, {}) else ""
                      for key in told)]
            for way, title in ways.items()
            if way in summary
        ]  # fmt: skip
        parts.append(f"{heading(found)}\n\n{table(['', *told.values()], rows)}")
        changes = [row for row in found["rows"] if row.get("kind") == "ablation" and "masked" in row]
        rows = [
            [row["name"].removeprefix("ablate "), percent(row["masked"]["accuracy"]), f"{row['masked']['loss']:.3f}",
             f"{row['tokens_per_second'] / 1e6:.2f}M", f"{row['steps']:,}"]
            for row in sorted(changes, key=lambda row: row["masked"]["loss"])
        ]  # fmt: skip
        parts += [table(["one change", "masked at 15 %", "loss", "tokens/s", "steps"], rows)] if rows else []
    return "\n\n".join(parts)


def pretraining_text() -> str:
    parts = []
    for found in read_results("pretraining-text*.json"):
        rows = [
            [str(row["length"]), name_reader(row), f"{row['tokens_per_second']:,}", percent(row["real_share"]) + " %",
             "" if row["times"] is None else f"{row['times']:.2f}", f"{row['memory_mib']:,} MiB"]
            for row in found["table"]
        ]  # fmt: skip
        head = ["longest row", "", "real tokens/s", "of what is computed", "ours / its", "peak memory"]
        words = f", {found['vocabulary']:,} pieces" if "vocabulary" in found else ""
        parts.append(f"{heading(found)}{words}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def name_reader(row: dict[str, Any]) -> str:
    """What a contestant makes a row of text of."""
    if row["kind"] == "ours":
        return "bertsmith, documents packed"
    each = {"lines": "a line a row", "documents": "a document a row", "sentences": "a sentence a row", "": "full rows"}
    return f"transformers, {each[row['lines']]}{', a mask' * (row['kind'] == 'grouped-mask')}"


def pretraining_speed() -> str:
    """At equal work beside each form of the peer; below it our own shapes, which have none."""
    parts: list[str] = []
    for found in read_results("pretraining-speed*.json"):
        fine = [row for row in found["rows"] if "error" not in row]
        ours = {row["length"]: row["tokens_per_second"] for row in fine if row["contestant"] == "ours"}
        rows = []
        for row in fine:
            name, rate = row["contestant"], row["tokens_per_second"]
            rows.append([
                NAMES.get(name, f"`smith`, {name.removeprefix('own-')}"), f"{row['length']} × {row['rows']}",
                f"{rate:,}", f"{ours[row['length']] / rate:.2f}" if row["length"] in ours and name in NAMES else "",
                f"{percent(row['mfu'])} %", f"{row['first_step_s']:.0f} s", f"{row['memory_mib']:,} MiB",
            ])  # fmt: skip
        head = ["", "length × rows", "tokens/s", "ours / its", "MFU", "first step", "peak memory"]
        parts.append(f"{heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def tokenizers() -> str:
    """Each kind beside the trainer of the `tokenizers` library, on the same words."""
    parts = []
    for found in read_results("tokenizer-*.json"):
        rows = [
            [row["case"], row["trainer"], f"{row['trained']:.3f}", f"{row['held out']:.3f}",
             f"{row['threads 2']['seconds']:.1f} s", f"{row['threads 2']['processor']:.1f} s",
             f"{row['threads 2']['megabytes']:,.0f} MB",
             f"{len(row['digests'])} in {row['runs']} runs" if "digests" in row else ""]
            for row in found["rows"]
        ]  # fmt: skip
        head = ["kind", "trainer", "tokens a word", "held out", "2 threads", "of processors", "memory", "SHA-256"]
        told = f"{found['about']}: `{found['commands'][0]}` ({found['date']})"
        parts.append(f"{told}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


PRETRAINING = {
    "tokenizers": tokenizers,
    "pretraining-speed": pretraining_speed,
    "pretraining-text": pretraining_text,
    "objectives": objectives,
    "starting-line": starting_line,
}
