"""`bertsmith models`: the families and shapes that bertsmith can build."""

from bertsmith.cli.options import Json
from bertsmith.cli.output import wants_json, write_json, write_table


def models(as_json: Json = False) -> None:
    """List the families and presets with their shapes and sizes.

    \b
    Example:
      bertsmith models
    """
    import bertsmith

    rows = bertsmith.models_table()
    if wants_json(as_json):
        for row in rows:
            write_json(row)
    else:
        write_table("", rows)
