"""CSV and TSV become a table. In: the text of a file. Out: records of strings, each with the line where it begins.

Quote marks: in CSV a cell may stand in them and a mark inside is doubled, and nothing laxer is taken. In TSV they are
read so only where all rows then fit and do not fit as well without; otherwise, and in the files of GLUE, they are text.
Lines without content and rows whose cells are all empty are passed over, as is a first line `sep=;` of Excel's.
"""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from threading import Lock

from bertsmith.data.decoding import bare_lines, cut_lines
from bertsmith.data.glue import has_no_quoting, is_orange, name_columns
from bertsmith.data.headers import AGAIN, is_again, is_header, name_header, number_columns
from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

DELIMITERS = (",", "\t", ";", "|")
HEAD = 1000  # rows that are looked at before deciding
LONGEST_CELL = 10_000  # lines
_SPACED = re.compile(r'\s+".*"\s*', re.DOTALL)  # a cell in quotes behind a delimiter and a space
_TOLD = re.compile(r'"?sep=([,;|\t])"?\r?(?=\n)', re.IGNORECASE)
_guard, _needed, _usual = Lock(), list[int](), 0  # of csv's limit: the sizes that are asked for, and what it was before
Row = tuple[int, list[str]]


def read_delimited(text: str, name: str, kind: str, header: bool | None = None) -> Table:
    """`kind` is "csv" (the delimiter is found: comma, tab, semicolon or bar) or "tsv"."""
    text, told = take_told(text) if kind == "csv" else (text, None)
    delimiter = "\t" if kind == "tsv" else told or guess_delimiter(text)
    quoted = '"' in text and (kind != "tsv" or is_quoted_tsv(text))
    rows = _quoted_rows(text, name, delimiter) if quoted else _plain_rows(text, delimiter)
    head = drop_blank(list(islice(rows, HEAD)))
    if not head:
        raise BertsmithError(f"{name} is empty.")
    columns, skip = settle_columns([cells for _, cells in head], kind, f"{name}, row {head[0][0]:,}", header)
    records, numbers = _fill(chain(head[skip:], rows), columns, name, delimiter)
    if not records:
        raise BertsmithError(f"{name} holds a header and no rows.")
    # As long as no cell spans lines, a spreadsheet's rows and an editor's lines have the same numbers.
    spans_lines = quoted and any("\n" in cell for record in records for cell in record.values())
    unit = "line" if spans_lines else "row"
    return Table(name, columns, records, numbers, unit, kind)


def take_told(text: str) -> tuple[str, str | None]:
    """The text with its first line blank where that is Excel's `sep=;`, and the delimiter that it tells."""
    found = _TOLD.match(text)
    return (text[found.end() :], found[1]) if found else (text, None)


def guess_delimiter(text: str) -> str:
    """The first delimiter that gives the first rows one width of two or more; else the comma."""
    lines = list(islice((line for line in cut_lines(text) if line.strip()), 50))
    for delimiter in DELIMITERS:
        try:
            with room_for(len(text)):
                widths = {len(cells) for cells in csv.reader(lines, delimiter=delimiter)}
        except csv.Error:
            continue
        if len(widths) == 1 and widths != {1}:
            return delimiter
    # Ragged rows are for the error that counts them: the header tells the delimiter.
    counts = {delimiter: lines[0].count(delimiter) if lines else 0 for delimiter in DELIMITERS}
    return max(DELIMITERS, key=lambda delimiter: counts[delimiter])


def is_quoted_tsv(text: str) -> bool:
    """Whether quote marks around cells are what makes the rows fit: they parse so, and not as well without."""
    if has_no_quoting(text[: text.find("\n")] if "\n" in text else text):
        return False
    try:
        with room_for(len(text)):
            rows = [cells for cells in csv.reader(cut_lines(text), delimiter="\t", strict=True) if cells]
    except csv.Error:
        return False
    widths = [len(cells) for cells in rows if not is_blank(cells)]
    plain = [line.count("\t") + 1 for _, line in bare_lines(text) if line.strip(" ")]
    return len(set(widths)) == 1 and (len(plain) == len(widths) or len(set(plain)) > 1)


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """The module's limit on a cell's length, which is 128 KB, raised to this.

    It is one for the whole process: it stays high enough for all who read, and is as it was when the last is done.
    """
    global _usual
    with _guard:
        if not _needed:
            _usual = csv.field_size_limit()
        _needed.append(size + 1)
        csv.field_size_limit(max(_usual, *_needed))
    try:
        yield
    finally:
        with _guard:
            _needed.remove(size + 1)
            csv.field_size_limit(max([_usual, *_needed]))


def is_blank(cells: list[str]) -> bool:
    """A line of nothing but spaces: no row, but where a row is one cell."""
    return len(cells) == 1 and not cells[0].strip()


def drop_blank(rows: list[Row]) -> list[Row]:
    """The first rows without lines of spaces, if rows have several cells."""
    return [row for row in rows if not is_blank(row[1])] if any(len(cells) > 1 for _, cells in rows) else rows


def _plain_rows(text: str, delimiter: str) -> Iterator[Row]:
    for number, line in bare_lines(text):
        if line:
            yield number, line.split(delimiter)


def _quoted_rows(text: str, name: str, delimiter: str) -> Iterator[Row]:
    reader = csv.reader(cut_lines(text), delimiter=delimiter, strict=True)
    before, width = 0, 0
    try:
        with room_for(len(text)):
            for cells in reader:
                begin, before = before + 1, reader.line_num
                if cells:
                    width = width or (0 if is_blank(cells) else len(cells))
                    if before > begin:
                        refuse_swallowed(cells, delimiter, width, f"{name}, line {begin:,}")
                    yield begin, cells
    except csv.Error as error:
        raise explain_quotes(str(error), name, before + 1, reader.line_num) from None


def explain_quotes(error: str, name: str, begin: int, end: int) -> BertsmithError:
    where = f"{name}, line {begin:,}"
    if "unexpected end" in error:
        return BertsmithError(
            f'{where}: a cell that begins with a quote mark (") in this row is never closed; close it, or double the '
            'mark ("") where it is part of the text.'
        )
    if "new-line character" in error:
        return BertsmithError(
            f"{where}: a carriage return stands inside a cell without quotes; save the file with one kind of line end."
        )
    until = f" and is closed in the middle of line {end:,}" if end > begin else " and is closed before its end"
    return BertsmithError(
        f'{where}: a cell begins with a quote mark (") in this row{until}; put the whole cell in quotes and double '
        'each mark ("") inside it.'
    )


def refuse_swallowed(cells: list[str], delimiter: str, width: int, where: str) -> None:
    """A mark that was never closed ends at the next stray one, and the cell has eaten the rows between."""
    for cell in cells:
        inner = cell.split("\n")[1:-1]
        eaten = len(inner) >= 4 and width > 1 and all(line.count(delimiter) == width - 1 for line in inner)
        if eaten or len(inner) > LONGEST_CELL:
            raise BertsmithError(
                f'{where}: a cell that begins with a quote mark (") in this row goes on for {len(inner) + 2:,} lines '
                'and has swallowed the rows there; close it, or double the mark ("") where it is part of the text.'
            )


def settle_columns(rows: list[list[str]], kind: str, where: str, header: bool | None) -> tuple[tuple[str, ...], int]:
    """The names, and how many of the first rows are not data."""
    if kind == "tsv" and header is not True and (names := name_columns(rows)):
        return names, 0
    if kind == "csv":
        _refuse_spaced(rows, where)
    if header is False or (header is None and not is_header(rows)):
        return number_columns(len(rows[0])), 0
    return name_header(rows[0], where), 3 if is_orange(rows) else 1


def _refuse_spaced(rows: list[list[str]], where: str) -> None:
    """The marks would be part of each text and label, and a delimiter between them would end the cell."""
    whole = [row for row in rows if len(row) == len(rows[0])]
    spaced = next((i for i in range(1, len(rows[0])) if all(_SPACED.fullmatch(row[i]) for row in whole)), None)
    if spaced is not None:
        raise BertsmithError(
            f"{where}: a space stands before the quote mark of column {spaced + 1} ({rows[0][spaced].strip()}), so the "
            "mark counts as text; take out the spaces behind the delimiters."
        )


def _fill(
    rows: Iterator[Row], columns: tuple[str, ...], name: str, delimiter: str
) -> tuple[list[dict[str, str]], list[int]]:
    records: list[dict[str, str]] = []
    numbers: list[int] = []
    width = len(columns)
    for number, cells in rows:
        if width > 1 and is_blank(cells):
            continue
        if len(cells) != width:
            raise BertsmithError(f"{name}, row {number:,}: {describe_width(cells, width, delimiter)}")
        if is_again(cells, columns):
            raise BertsmithError(f"{name}, row {number:,}: {AGAIN}")
        if width == 1 or any(cells):
            records.append(dict(zip(columns, cells, strict=True)))
            numbers.append(number)
    return records, numbers


def describe_width(cells: list[str], width: int, delimiter: str) -> str:
    """What is wrong with a row of another width than the first."""
    counts = f"{len(cells)} column{'s' * (len(cells) != 1)} where the first row has {width}"
    shown = {"\t": "tab", ",": "comma"}.get(delimiter, f'"{delimiter}"')
    hint = "take tabs out of the texts" if delimiter == "\t" else f"put a cell that holds a {shown} in quotes"
    return f"{counts}, cut at each {shown}; {hint}."
