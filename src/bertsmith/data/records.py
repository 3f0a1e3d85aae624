"""Data that is in memory already becomes a table: a list of dicts, a pandas, polars or pyarrow table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bertsmith.data.table import Table
from bertsmith.errors import BertsmithError

PLAIN = (str, int, float, bool, type(None))


def gather(
    given: Iterable[Any], name: str, *, rows: Sequence[int] | None = None, unit: str = "row", kind: str = "records"
) -> Table:
    """Columns are the keys in the order in which they first occur; a record without one of them has None there."""
    records: list[Mapping[str, Any]] = []
    columns: dict[str, str] = {}
    for number, record in enumerate(given):
        if not isinstance(record, Mapping):
            row = rows[number] if rows else number + 1
            hint = ' as in {"text": …, "label": …}'
            raise BertsmithError(f"{name}, {unit} {row:,}: a dict is needed{hint}, not {type(record).__name__}.")
        records.append(record)
        for key in record:
            columns.setdefault(key, str(key))
    if not records:
        raise BertsmithError(f"{name} holds no records.")
    refuse_twins(list(columns.values()), name)
    keys = tuple(columns.items())
    # New dicts share the names of the columns, so that memory is about that of the values.
    plain = [{column: _plain(record.get(key)) for key, column in keys} for record in records]
    return Table(name, tuple(columns.values()), plain, rows or range(1, len(plain) + 1), unit, kind)


def read_frame(frame: Any, name: str) -> Table | None:
    """The table of a DataFrame, known by its methods so that its library is not imported; None: it is none."""
    if not hasattr(frame, "columns") and not hasattr(frame, "to_pylist"):
        return None
    names = getattr(frame, "column_names", None) or list(frame.columns)
    refuse_twins([str(column) for column in names], name)
    if hasattr(frame, "to_dicts"):  # polars
        return gather(frame.to_dicts(), name)
    if hasattr(frame, "to_pylist"):  # pyarrow
        return gather(frame.to_pylist(), name)
    if hasattr(frame, "to_dict"):  # pandas
        return gather(frame.to_dict(orient="records"), name)
    return None


def refuse_twins(names: list[str], name: str) -> None:
    for column in names:
        if names.count(column) > 1:
            raise BertsmithError(f'{name} has {names.count(column)} columns called "{column}"; rename all but one.')


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as Python's, inside of lists and objects too, and what pandas misses as None."""
    if isinstance(value, PLAIN) and type(value) in PLAIN:
        return value
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if hasattr(value, "tolist"):
        found = value.tolist()
        return [_plain(part) for part in found] if isinstance(found, list) else found
    return str(value) if isinstance(value, str) else value
