"""Sources in parts that several processes can share. In: sources. Out: parts of about one size, by the files alone."""

import mmap
import re
from collections.abc import Iterable
from itertools import pairwise

from bertsmith.text.records import list_row_groups
from bertsmith.text.sources import BLANK, Part, Source, Unit, unit_of

PART = 16 << 20
GROUP_PARTS = 16  # most parts of one row group of Parquet, each of which is read from the group's beginning


def cut_parts(sources: Iterable[Source], *, unit: Unit | None = None, size: int = PART) -> list[Part]:
    """Parts of about `size` bytes; which they are depends on the files alone. A packed file is one part."""
    parts: list[Part] = []
    for source in sources:
        if source.kind == "parquet" and not source.packing:
            parts += _cut_rows(source, size)
        elif source.packing or source.kind == "json" or unit_of(source, unit) == "file" or source.size <= size:
            parts.append(Part(source))
        else:
            parts += _cut_file(source, BLANK if unit_of(source, unit) == "blank-line" else re.compile(rb"\n"), size)
    return parts


def _cut_file(source: Source, bound: re.Pattern[bytes], size: int) -> list[Part]:
    """At the first bound behind each multiple of `size`."""
    cuts, total = [0], source.size
    with open(source.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        wanted = size
        while wanted < total:
            found = bound.search(whole, wanted)
            if found is None or found.end() >= total:
                break
            cuts.append(found.end())
            wanted = max(wanted + size, -(-found.end() // size) * size)
    return [Part(source, start, end, (end - start) / total) for start, end in pairwise([*cuts, total])]


def _cut_rows(source: Source, size: int) -> list[Part]:
    """Within row groups too: many writers put a million rows into one."""
    groups = list_row_groups(source.path)
    total = sum(groups)
    step = max(1, total * size // max(source.size, 1), max(groups, default=0) // GROUP_PARTS)
    cuts = [*range(0, total, step), total]
    return [Part(source, start, end, (end - start) / total) for start, end in pairwise(cuts)]
