"""HTML, SVG and Markdown as strings, safe for any text: escaped, isolated, and nothing in it is hidden."""

import html
import json
import re
from collections.abc import Collection, Mapping

# Characters that could reorder the text around them, are not allowed in HTML, XML or YAML, or cannot be encoded.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
    + "]"
)


def visible(text: object) -> str:
    """The text with control characters as signs: U+0007 as ␇, U+202E as [U+202E]; letters of all scripts stay."""
    return _HIDDEN.sub(_sign, str(text).replace("\r\n", "\n").replace("\r", "\n"))


def _sign(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"[U+{code:04X}]"


def escape(text: object) -> str:
    return html.escape(visible(text))


def tag(name: str, inside: str = "", attributes: Mapping[str, object] | None = None) -> str:
    """An element around markup that is already safe; attributes are escaped here, those that are None left out."""
    given = "".join(f' {key}="{escape(value)}"' for key, value in (attributes or {}).items() if value is not None)
    return f"<{name}{given}>{inside}</{name}>"


_STYLED = re.compile(r'<style>[^<]*</style>|style="[^"]*"')  # of quotes and < in a text the signs are escaped
_COLOURED = re.compile(r"([a-z-]+): var\(--([\w-]+)\)")


def spell_colours(drawn: str, palette: str) -> str:
    """Before each colour that has a name its numbers: `fill: #fff; fill: var(--card)`.

    Browsers take the second. Programs that do not know names (rsvg, Inkscape, office suites) would draw all in black.
    `palette` is a style sheet whose first value of each name is the one for light.
    """
    known: dict[str, str] = {}
    for name, colour in re.findall(r"--([\w-]+): (#[0-9a-f]+)", palette):
        known.setdefault(name, colour)

    def both(found: re.Match[str]) -> str:
        return f"{found[1]}: {known[found[2]]}; {found[0]}" if found[2] in known else found[0]

    return _STYLED.sub(lambda part: _COLOURED.sub(both, part[0]), drawn)


def isolate(text: object) -> str:
    """A text from the data: whatever the direction of its script, it does not disturb its neighbours."""
    return f"<bdi>{escape(text)}</bdi>"


def plain(text: object) -> str:
    """One line of Markdown that shows the text itself, whatever is in it."""
    line = " ".join(visible(text).split())
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        line = line.replace(sign, entity)
    line = re.sub(r"([\\`*_\[\]~$])", r"\\\1", line)
    return re.sub(r"^(\d*)([#+.)=-])(?=[#+=-]*(?:\s|$))", r"\1\\\2", line)  # no heading, no list


def quote(text: object) -> str:
    """As JSON, YAML and Python spell a text."""
    return json.dumps(visible(text), ensure_ascii=False)


def table(head: list[str], rows: list[list[str]], numbers: Collection[int] = (), style: str = "") -> str:
    """Cells are safe markup; `numbers` are the columns that are set right-aligned."""
    align = {i: {"class": "n"} for i in numbers}
    top = "".join(tag("th", cell, {"scope": "col", **align.get(i, {})}) for i, cell in enumerate(head))
    body = "".join(
        tag("tr", "".join(tag("td", cell, align.get(i)) for i, cell in enumerate(cells))) + "\n" for cells in rows
    )
    inner = tag("table", (tag("thead", tag("tr", top)) if head else "") + tag("tbody", body), {"class": style or None})
    return tag("div", inner, {"class": "scroll"})
