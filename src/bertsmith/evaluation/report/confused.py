"""Which labels are taken for which, as numbers. In: the whole table, or what a file keeps of one that is too large.

The table grows with the square of the labels: 600 of them took 4 MB. What is kept grows with the labels alone.
"""

from bertsmith.evaluation.report.facts import Confusion

WHOLE = 100  # labels; of more the file keeps only the mistakes that are made most
KEPT = 1000  # pairs of labels


def keep_most(confusion: Confusion | None) -> Confusion | None:
    """As it is kept in a file."""
    if confusion is None or "counts" not in confusion or len(confusion["labels"]) <= WHOLE:
        return confusion
    found = list_pairs(confusion)
    return {
        "labels": confusion["labels"], "gold": count_gold(confusion), "right": count_right(confusion),
        "most": found[:KEPT], "left_out": {"pairs": len(found[KEPT:]), "examples": sum(n for _, _, n in found[KEPT:])},
    }  # fmt: skip


def list_pairs(confusion: Confusion) -> list[tuple[int, int, int]]:
    """(gold, predicted, examples) of labels that are taken for others, the most examples first."""
    if "counts" not in confusion:
        return [(i, j, count) for i, j, count in confusion["most"]]
    found = [(i, j, n) for i, row in enumerate(confusion["counts"]) for j, n in enumerate(row) if i != j and n]
    return sorted(found, key=lambda one: (-one[2], one[0], one[1]))


def count_gold(confusion: Confusion) -> list[int]:
    """The examples of each label."""
    return [sum(row) for row in confusion["counts"]] if "counts" in confusion else confusion["gold"]


def count_right(confusion: Confusion) -> list[int]:
    """Those of each label that were given it."""
    return [row[i] for i, row in enumerate(confusion["counts"])] if "counts" in confusion else confusion["right"]
