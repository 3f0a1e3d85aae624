"""The tables of docs/results.md about the server: files of benchmarks/results in, Markdown out."""

from typing import Any

from tables import heading, read_results, table

OURS = "bertsmith"


def serving() -> str:
    """The load that each server keeps, beside the better form of ours."""
    parts = []
    for found in [*read_results("serving-cpu.json"), *read_results("serving-graph-cpu.json")]:
        best = max(row["best"] for row in found["table"] if row["contestant"].startswith(OURS))
        rows = []
        for row in found["table"]:
            times = "" if row["contestant"].startswith(OURS) or not row["best"] else f"{best / row['best']:.1f}"
            kept = f"{row['best']:.0f}" if row["best"] else "none of those tried"
            rows.append([row["contestant"], kept, times, f"{row['peak_mib']:,} MiB"])
        head = ["server", f"requests/s with p99 ≤ {found['target_ms']:.0f} ms", "our best ×", "peak memory"]
        parts.append(f"{heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def overload() -> str:
    """What becomes of a server that is asked for four times what it can."""
    parts = []
    for found in read_results("serving-overload-cpu.json"):
        rows = [_tell(name, one) for name, one in found["overload"].items()]
        head = ["", "answered/s", "p50, p99", "refused/s (429)", "p99 of a refusal", "p99 before, after", "peak memory"]
        parts.append(f"{heading(found)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def _tell(name: str, one: dict[str, Any]) -> list[str]:
    answered, refused = one["during"]["200"], one["during"]["429"]
    return [
        name,
        f"{answered['a_second']:.0f}",
        f"{answered['p50_ms']:.0f}, {answered['p99_ms']:.0f} ms",
        f"{refused['a_second']:.0f}",
        f"{refused['p99_ms']:.0f} ms",
        f"{one['before']['p99_ms']:.0f}, {one['after, first 5 s']['p99_ms']:.0f} ms",
        f"{one['peak_mib'][1]} MiB",
    ]


SERVING = {"serving": serving, "overload": overload}
