"""What people label: a text with its classes, words with their tags, a question with its answers.

Gold is None where it is unknown (a request, an unlabelled test file). `where` names file and row for messages.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextExample:
    text: str
    pair: str | None = None
    labels: tuple[str, ...] | None = None  # one; with several labels a text any number of them, none too
    where: str = ""


@dataclass(frozen=True, slots=True)
class TagExample:
    """`text[start:end]` of `spans[i]` is word i; words that came split are joined by single spaces in `text`."""

    text: str
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None = None  # as in the file, whatever its scheme
    where: str = ""

    @property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]


@dataclass(frozen=True, slots=True)
class SpanExample:
    question: str
    context: str
    answers: tuple[tuple[str, int], ...] | None = None  # (text, first character in the context); (): no answer there
    id: str = ""
    where: str = ""
