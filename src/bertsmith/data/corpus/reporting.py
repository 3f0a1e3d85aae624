"""What a build did, for machines and for people. In: what its parts told. Out: report.json's content and report.md."""

from typing import Any

from bertsmith.data.corpus.dropping import OF_PARAGRAPHS, REASONS
from bertsmith.data.findings import counted
from bertsmith.text.sources import tell_unread

_MEGABYTE = 1_000_000
_UNKNOWN = 0.01  # share of the tokens from which on it is worth a word
_FILLED = 0.2  # share of the documents from which on it is worth one


def notes_on(report: dict[str, Any]) -> list[str]:
    """What a person should look at."""
    notes = tell_unread(report["unread"])
    read, dropped, kept = report["read"], report["dropped"], report["kept"]
    poor = dropped.get("poor fit", {"count": 0})["count"]
    if poor > 0.2 * read["documents"]:
        notes.append(
            f"{poor / read['documents']:.0%} of the documents have many tokens to a character or unknown ones: the "
            "tokenizer does not fit this text. Train one on it (bertsmith tokenizer train), or raise "
            "--tokens-per-character."
        )
    if report["unknown"] > _UNKNOWN:
        notes.append(
            f"{report['unknown']:.1%} of the tokens are the unknown one, of which a model learns nothing. Train a "
            "tokenizer on this text (bertsmith tokenizer train), or extend this one (bertsmith tokenizer extend)."
        )
    if report["settings"]["held_out"] and not kept["held-out"]["documents"]:
        notes.append("No document fell into the held-out part: there are too few for its share.")
    if read["cut"]:
        notes.append(f"{counted(read['cut'], 'time')} a document longer than 4 MiB was cut and goes on as another.")
    if report["settings"]["unit"] is None and read["filled"] > _FILLED * read["documents"]:
        notes.append(
            f"{read['filled']:,} of the {counted(read['documents'], 'document')} are one paragraph whose lines were "
            "filled to a width. If blank lines part paragraphs here and not documents, --unit file keeps each file "
            "together."
        )
    empty = [str(file["file"]) for file in report["exclude"] if not file["strings"]]
    if empty:
        them = "it" if len(empty) == 1 else "them"
        notes.append(f"Nothing was kept out for {', '.join(empty)}: there is no text in {them}.")
    strings, short = (sum(file[name] for file in report["exclude"]) for name in ("strings", "too_short"))
    if short:
        have, them = ("has", "it") if short == 1 else ("have", "them")
        notes.append(
            f"{short:,} of the {counted(strings, 'string')} in the excluded files {have} fewer than "
            f"{report['settings']['gram']} words, so the corpus may hold {them} (--gram N looks for shorter runs)."
        )
    return notes


def write_page(report: dict[str, Any]) -> str:
    """Markdown."""
    read, kept, speed, disk = report["read"], report["kept"], report["speed"], report["disk"]
    megabytes = read["bytes"] / _MEGABYTE
    unknown = "" if report["settings"]["codes"] else f" The tokenizer does not know {report['unknown']:.2%} of them."
    lines = [
        "# The corpus",
        "",
        f"{counted(len(report['sources']), 'file')}, {counted(read['documents'], 'document')}, {megabytes:,.1f} MB of "
        f"text became {counted(kept['train']['tokens'], 'token')} to train on and "
        f"{kept['held-out']['tokens']:,} held out.{unknown}",
        "",
        "| | documents | sentences | tokens |",
        "|---|---:|---:|---:|",
        *(
            f"| {split} | {counts['documents']:,} | {counts['sentences']:,} | {counts['tokens']:,} |"
            for split, counts in kept.items()
        ),
        "",
        f"{speed['megabytes_per_second']:.1f} MB/s in {speed['seconds']:.1f} s with "
        f"{counted(speed['processes'], 'process', 'processes')}, "
        f"{speed['megabytes_per_cpu_second']:.1f} MB a CPU second; on the disk {disk['final'] / _MEGABYTE:,.1f} MB, "
        f"at most {disk['most_to_text']:.2f} times the text while it was built.",
        "",
        "## What was dropped",
        "",
        *_dropped_table(report),
    ]
    if report["exclude"]:
        lines += ["", "## Kept out", "", "| file | strings | too short to look for | paragraphs dropped |"]
        lines += ["|---|---:|---:|---:|"]
        lines += [
            f"| {file['file']} | {file['strings']:,} | {file['too_short']:,} | {file['paragraphs']:,} |"
            for file in report["exclude"]
        ]
    if report["notes"]:
        lines += ["", "## To look at", "", *(f"- {note}" for note in report["notes"])]
    return "\n".join(lines) + "\n"


def _dropped_table(report: dict[str, Any]) -> list[str]:
    dropped = report["dropped"]
    if not dropped:
        return ["Nothing."]
    lines = ["| reason | what | count | of the characters |", "|---|---|---:|---:|"]
    for reason, told in dropped.items():
        what = counted(told["count"], "paragraph" if reason in OF_PARAGRAPHS else "document")
        share = told["characters"] / max(report["read"]["characters"], 1)
        lines.append(f"| {reason} | {REASONS[reason]} | {what} | {share:.2%} |")
    for reason, told in dropped.items():
        if told["excerpts"]:
            lines += ["", f"### {reason}, for example", "", *(f"- {_quote(text)}" for text in told["excerpts"])]
    return lines


def _quote(text: str) -> str:
    """Text as it is, not as markup."""
    ticks = "``" if "`" in text else "`"
    return f"{ticks} {text} {ticks}"
