"""What was seen: numbers that JSON holds, and one file to look at that needs nothing from anywhere else.

In: a subclass with its numbers. Out: `.json`, `.html` (interactive, by the script in `pictures/` that is called as its
`kind`, with which the server's page shows the same numbers) and, where it stands still, `.svg`.
"""

import errno
import html
import json
import os
import secrets
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from bertsmith.errors import BertsmithError
from bertsmith.evaluation.report.markup import escape, visible

FORMATS = (".html", ".svg", ".json")


class Picture:
    kind: ClassVar[str] = ""  # of `pictures/<kind>.js`, which draws `data()`
    title: str = ""
    height: ClassVar[int] = 640  # of its frame in a notebook, in pixels

    def data(self) -> dict[str, Any]:
        """Everything that is drawn, as JSON holds it."""
        raise NotImplementedError

    def svg(self) -> str:
        """The picture standing still."""
        raise BertsmithError(f"a picture of kind {self.kind} moves, so that it is no .svg; save it as .html or .json.")

    def html(self) -> str:
        """One page with its script, its style and its numbers inside."""
        # "<" would let a text of the user's end the element; JSON may spell it otherwise.
        numbers = json.dumps(self.data(), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        parts = {"title": escape(self.title), "style": read_part("look.css"), "data": numbers, "kind": self.kind}
        page = read_part("shell.html")
        parts["script"] = read_script(self.kind)
        for name, part in parts.items():  # each mark once, so that no text is looked through for marks
            before, _, after = page.partition(f"<!--{name}-->")
            page = before + part + after
        return page

    def save(self, path: str | Path) -> Path:
        """Write it in the format that the name ends in; nothing is there until everything is.

        A file of that name is replaced, as a plot's is.
        """
        path = check_path(path)
        _replace(path, self._spell(path.suffix.lower()).encode("utf-8", "backslashreplace"))
        return path

    def _spell(self, suffix: str) -> str:
        if suffix == ".html":
            return self.html()
        if suffix == ".svg":
            return self.svg()
        return json.dumps(self.data(), ensure_ascii=False, allow_nan=False) + "\n"

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame, which keeps its style and its script to itself."""
        page = html.escape(self.html(), quote=True)
        return (
            f'<iframe title="{escape(self.title or self.kind)}" sandbox="allow-scripts" srcdoc="{page}" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def check_path(path: str | Path) -> Path:
    """A name that a picture can have: one of the formats, in a folder that is there."""
    path = Path(path).expanduser()
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        given = f"{path.name!r} ends in {suffix}" if suffix else f"{path.name!r} has no ending"
        raise BertsmithError(f"{given}; a picture is saved as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
    target = path.resolve()
    if target.is_dir():
        raise BertsmithError(f"{visible(path)} is a folder; give the name of a file.")
    if not target.parent.is_dir():
        raise BertsmithError(f"the folder {visible(path.parent)} does not exist; make it first, or name another file.")
    return path


def _replace(path: Path, content: bytes) -> None:
    """The file with this content, or as it was."""
    target = path.resolve()  # a link stays one
    aside = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")
    try:
        with open(aside, "xb") as file:
            file.write(content)
        os.replace(aside, target)
    except OSError as error:
        with suppress(OSError):
            aside.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BertsmithError(
                f"no room for {visible(path)}: the disk is full ({len(content):,} bytes were to be written)."
            ) from error
        raise BertsmithError(f"{visible(path)} cannot be written: {error.strerror or error}.") from error


def read_part(name: str) -> str:
    return (files("bertsmith.inspection") / "pictures" / name).read_text(encoding="utf-8")


def read_script(*kinds: str) -> str:
    """What draws pictures of these kinds: the base, then of each kind `kind.js` and its parts, `kind_….js`."""
    folder = files("bertsmith.inspection") / "pictures"
    names = sorted(part.name for part in folder.iterdir() if part.name.endswith(".js"))
    wanted = [name for kind in kinds for name in (f"{kind}.js", *(n for n in names if n.startswith(f"{kind}_")))]
    return "\n".join(read_part(name) for name in ("base.js", *wanted))
