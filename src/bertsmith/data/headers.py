"""Whether the first row of a delimited file names its columns, and how the columns are called.

`header=True` or `False` decides. Without it the first row is a header when one of its cells is a usual name of a column
(data/columns.py) that does not come again in that column. Otherwise it is data when it has one column only, a number, a
cell of more than 80 characters, two cells alike, or a cell that comes again in its column; else it is a header.
A file without header has columns "column 1", "column 2", …; so has a column whose name is empty.
"""

from collections.abc import Sequence

from bertsmith.data.columns import KNOWN, normalize
from bertsmith.errors import BertsmithError

LONGEST_NAME = 80
AGAIN = "the header stands here once more, as where files were put together; take this row out."


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Decided from the first rows of a file; where files were put together, their header comes again."""
    first, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    again = [any(row[i] == cell for row in rest) for i, cell in enumerate(first)]
    others = [row for row in rest if not is_again(row, _clean(first))]
    known = [i for i, cell in enumerate(first) if normalize(cell) in KNOWN]
    if any(all(row[i] != first[i] for row in others) for i in known):
        return True
    odd = any(_is_number(cell) or len(cell) > LONGEST_NAME for cell in first)
    return not (odd or any(again) or len(first) == 1 or len(set(first)) < len(first))


def is_again(cells: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether a row is the header once more, as where files with one each were put together."""
    if len(columns) < 2 or len(cells) != len(columns) or cells[-1].strip() not in (columns[-1], ""):
        return False
    return any(cells) and _clean([cells[0].removeprefix("\ufeff"), *cells[1:]]) == tuple(columns)


def name_header(cells: Sequence[str], where: str) -> tuple[str, ...]:
    names = _clean(cells)
    for i, name in enumerate(names):
        if name in names[:i]:
            raise BertsmithError(
                f'{where}: columns {names.index(name) + 1} and {i + 1} are both called "{name}"; rename one of them.'
            )
    return names


def _clean(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(cell.strip() or f"column {i}" for i, cell in enumerate(cells, 1))


def number_columns(width: int) -> tuple[str, ...]:
    return tuple(f"column {i}" for i in range(1, width + 1))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
