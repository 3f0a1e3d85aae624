"""Tab files as the makers of benchmarks gave them out: which have no header, and in which a quote mark is text.

GLUE (CoLA, SST-2, MRPC, RTE, QNLI, QQP, MNLI, WNLI, STS-B), GoEmotions, and Orange's `.tab` with its header of three.
"""

import re
from collections.abc import Sequence

# A cell of each column must match in full.
WITHOUT_HEADER = (
    (("source", "label", "mark", "sentence"), (r"[a-z_\-&0-9]{2,12}", r"[01]", r"[*?# ]*", r".+")),  # CoLA
    (("text", "label", "id"), (r".+", r"\d{1,2}(,\d{1,2})*", r"[a-z0-9]{5,8}")),  # GoEmotions
)
# A header with all of these names is that of a file written without quoting.
WITHOUT_QUOTING = (
    {"#1 String", "#2 String"},  # MRPC
    {"qid1", "qid2", "question1", "question2"},  # QQP
    {"sentence1_binary_parse", "sentence2_binary_parse"},  # MNLI
    {"index", "sentence1", "sentence2"},  # RTE, WNLI, STS-B
    {"index", "question", "sentence"},  # QNLI
    {"index", "sentence"},  # the test files of CoLA and SST-2
)
ORANGE_TYPES = re.compile(r"d|c|s|t|discrete|continuous|string|time|", re.I)
ORANGE_FLAGS = re.compile(r"(class|meta|ignore|i|m|c|)( .*)?", re.I)


def name_columns(rows: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    """The names of a known file without header, told from its first rows; None: it is none of them."""
    for names, patterns in WITHOUT_HEADER:
        if rows and all(_match(row, patterns) for row in rows):
            return names
    return None


def has_no_quoting(header: str) -> bool:
    """Whether a tab file with this first line is one whose quote marks are part of the texts."""
    names = {name.strip() for name in header.split("\t")}
    return any(marks <= names for marks in WITHOUT_QUOTING)


def is_orange(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the second and third row are Orange's: the types of the columns, then what they are for."""
    if len(rows) < 3 or not any(rows[1]):
        return False
    types, flags = rows[1], rows[2]
    return all(map(ORANGE_TYPES.fullmatch, types)) and all(map(ORANGE_FLAGS.fullmatch, flags)) and any(flags)


def _match(row: Sequence[str], patterns: Sequence[str]) -> bool:
    return len(row) == len(patterns) and all(map(re.fullmatch, patterns, row))
