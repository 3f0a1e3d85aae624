"""The text of an HTML page. In: the page. Out: what a reader would see, a blank line between paragraphs.

Scripts and styles are left out. Offsets of passages count the characters of this text, not of the page.
"""

from html.parser import HTMLParser

UNSEEN = ("script", "style")  # the parser takes all up to their end tag for one text, so they cannot swallow a page
PARAGRAPHS = frozenset(
    [
        "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl",
        "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head",
        "header", "hr", "html", "legend", "main", "nav", "noscript", "ol", "option", "p", "pre", "section",
        "summary", "table", "tbody", "tfoot", "thead", "title", "ul",
    ]
)  # fmt: skip
LINES = ("br", "li", "tr")
BREAKS = ("", " ", "\n", "\n\n")
NONE, SPACE, LINE, PARAGRAPH = range(4)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._break = NONE  # what stands between the text so far and the next, the largest that was asked for
        self._unseen = ""
        self._as_typed = 0  # how many <pre> are open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self._unseen = tag
        self._as_typed += tag == "pre"
        self._separate(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == self._unseen:
            self._unseen = ""
        self._as_typed = max(self._as_typed - (tag == "pre"), 0)
        self._separate(tag)

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        words = data.split()
        if not words:
            self._ask(PARAGRAPH if self._as_typed and data.count("\n") > 1 else SPACE if data else NONE)
            return
        if data[0].isspace():
            self._ask(SPACE)
        self._write(data.strip() if self._as_typed else " ".join(words))
        if data[-1].isspace():
            self._ask(LINE if self._as_typed and "\n" in data[len(data.rstrip()) :] else SPACE)

    def _separate(self, tag: str) -> None:
        if tag in PARAGRAPHS:
            self._ask(PARAGRAPH)
        elif tag in LINES:
            self._ask(LINE)
        elif tag in ("td", "th"):
            self._ask(SPACE)

    def _ask(self, size: int) -> None:
        self._break = max(self._break, size)

    def _write(self, text: str) -> None:
        if self.parts:
            self.parts.append(BREAKS[self._break])
        self._break = NONE
        self.parts.append(text)


def read_markup(page: str) -> str:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return "".join(reader.parts)
