"""Which labels are taken for which: a heat map while it can be read, and the pairs that are confused most."""

from bertsmith.evaluation.report.axes import box, drawing, label, measure, shorten, title
from bertsmith.evaluation.report.confused import count_gold, list_pairs
from bertsmith.evaluation.report.excerpts import cut_name
from bertsmith.evaluation.report.facts import Confusion
from bertsmith.evaluation.report.markup import isolate, table, tag
from bertsmith.evaluation.report.numbers import show_share

READABLE = 40  # labels; beyond them a map says less than a list
BESIDE = 12  # labels; so small a map leaves room for the list at its side
LIST_FROM = 7  # labels; with fewer the map says all
NAME = 138.0  # the longest name that is written out
LEAN, RISE, RUN = -50, 0.77, 0.65  # degrees of the names on top, their sine and cosine
CELLS = ((4, 62), (8, 46), (14, 36), (24, 27), (READABLE, 21))  # up to so many labels: a cell's side


def draw_confusion(confusion: Confusion) -> str:
    """Gold down, predicted across; the shade is the share of the gold label, right and wrong in two colours."""
    names, counts = [cut_name(name) for name in confusion["labels"]], confusion["counts"]
    n = len(names)
    cell = next(side for most, side in CELLS if n <= most)
    size = min(12.0, max(cell * 0.44, 9.0))
    widths = [measure(shorten(name, NAME, size), size) for name in names]
    flat = max(widths) <= cell - 4
    left, top = max(max(widths) + 12, 44.0), (44.0 if flat else 32 + max(widths) * RISE)
    parts = [label(left, 14, "predicted →", "start", "quiet"), label(left - 8, top - 8, "gold ↓", "end", "quiet")]
    for i, name in enumerate(names):
        middle, short = i * cell + cell / 2, shorten(name, NAME, size)
        side = label(left - 8, top + middle + size / 3, short, "end", "", size)
        lean = 0 if flat else LEAN
        head = label(left + middle + (0 if flat else 2), top - 8, short, "middle" if flat else "start", "", size, lean)
        parts.append(tag("g", title(name) + side) + tag("g", title(name) + head))
        for j, other in enumerate(names):
            hint = f"{name} taken for {other}" if i != j else name
            parts.append(_draw_cell(counts[i], i, j, left + j * cell, top + i * cell, cell, hint))
    leaning = 0 if flat else max(i * cell + cell / 2 + 6 + width * RUN for i, width in enumerate(widths))
    wide, tall = round(left + max(n * cell + 2, leaning)), round(top + n * cell + 4)
    says = f"confusion of {n} labels, {sum(counts[i][i] for i in range(n)):,} right"
    return drawing("".join(parts), wide, tall, says, "map" if n > BESIDE else "chart map")


def _draw_cell(row: list[int], i: int, j: int, x: float, y: float, cell: int, hint: str) -> str:
    count, total = row[j], sum(row)
    if not count:
        return box(x, y, cell - 1, cell - 1, "none")
    share = count / total
    # The root lifts rare confusions out of the background; the diagonal needs no lift.
    depth = 0.12 + 0.88 * (share if i == j else share**0.5)
    size = min(12.0, max(cell * 0.36, 7.5))
    shown = f"{count:,}" if measure(f"{count:,}", size) < cell else _brief(count)
    middle, style = (cell - 1) / 2, "fill right" if i == j else "fill wrong"
    words = label(x + middle, y + middle + size * 0.36, shown, "middle", "on" if depth > 0.6 else "", size)
    told = title(f"{hint}: {count:,} of {total:,} ({show_share(count, total)})")
    return tag("g", told + box(x, y, cell - 1, cell - 1, style, "", depth) + words)


def _brief(count: int) -> str:
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.0f}{name}" if count >= 9.5 * unit else f"{count / unit:.1f}{name}"
    return str(count)


def list_confusions(confusion: Confusion, most: int) -> str:
    """The pairs of labels with the most examples, as a table."""
    labels, gold = confusion["labels"], count_gold(confusion)
    rows = [
        [isolate(cut_name(labels[i])), isolate(cut_name(labels[j])), f"{count:,}", show_share(count, gold[i])]
        for i, j, count in list_pairs(confusion)[:most]
    ]
    return table(["Gold", "Predicted", "Examples", "Share of gold"], rows, {2, 3}, "compact") if rows else ""
