"""`bertsmith models`: the families and shapes that bertsmith can build."""

from collections.abc import Mapping
from typing import Any

from bertsmith.cli.options import Json
from bertsmith.cli.output import wants_json, write_json, write_table


def models(as_json: Json = False) -> None:
    """List the families and presets with their shapes and sizes.

    \b
    Example:
      bertsmith models
    """
    import bertsmith

    lines = wants_json(as_json)
    rows = bertsmith.models_table()
    if lines:
        for row in rows:
            write_json(row)
    else:
        write_table("", [_shorten(row) for row in rows], numbers=("parameters",), narrow=True)


def _shorten(row: Mapping[str, Any]) -> dict[str, Any]:
    """For 80 columns: the preset's name tells the family, and nobody reads the last digits of a size."""
    return {key: value for key, value in row.items() if key != "family"} | {
        "parameters": f"{row['parameters'] / 1e6:,.1f}M"
    }
