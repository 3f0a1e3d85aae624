"""What the sub-verbs of `inspect` share: `--out FILE`, looked at before a model is loaded, and how what was found is
shown: as a file with a line that says so, as JSON, or as text for people.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bertsmith.cli.output import wants_json, write_json, write_text

if TYPE_CHECKING:
    from bertsmith.inspection.picture import Picture

Shown = TypeVar("Shown", bound="Picture")
PictureOut = Annotated[
    str | None,
    typer.Option("--out", metavar="FILE", help="Write the picture: FILE.html, FILE.svg or FILE.json."),
]


def check_out(out: str | None) -> None:
    """Say at once what would only be found when all is worked out."""
    if out is None:
        wants_json(False)  # an error where standard output is closed
    else:
        from bertsmith.inspection.picture import check_path

        check_path(out)


def show_picture(
    found: Shown,
    out: str | None,
    as_json: bool,
    write: Callable[[Shown], None],
    record: Callable[[Shown], Mapping[str, Any]] | None = None,
) -> None:
    """`write` is for people; `record` is the JSON object where it is not all that the picture holds."""
    if out is not None:
        save_picture(found, out, as_json)
    elif wants_json(as_json):
        write_json(found.data() if record is None else record(found))
    else:
        write(found)


def save_picture(picture: "Picture", out: str, as_json: bool) -> None:
    path = picture.save(out)
    size = path.stat().st_size
    if wants_json(as_json):
        write_json({"file": str(path), "bytes": size})
        return
    write_text([(f"{path}: {_show_size(size)}", ""), (_advise(path), "dim")])


def _show_size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"


def _advise(path: Path) -> str:
    return "; open it in a browser" if path.suffix.lower() in (".html", ".svg") else ""
