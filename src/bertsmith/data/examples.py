"""What people label: a text with classes or a number, words with tags, a question with answers, choices for a prompt,
texts that belong together, texts by how well they answer a query.

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


@dataclass(frozen=True, slots=True)
class NumberExample:
    text: str
    pair: str | None = None
    number: float | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class ChoiceExample:
    prompt: str
    choices: tuple[str, ...]
    right: int | None = None  # the number of the right choice, from 0
    where: str = ""

    @property
    def text(self) -> str:
        return self.prompt

    @property
    def pair(self) -> str:
        """The longest choice: with the prompt, the row by which a length is judged."""
        return max(self.choices, key=len)


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts and how alike they are; without a number they belong together, and `negatives` do not."""

    text: str
    pair: str
    negatives: tuple[str, ...] = ()
    number: float | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class RankExample:
    """A query, texts, and for each how well it answers: the more, the better."""

    query: str
    texts: tuple[str, ...]
    gains: tuple[float, ...] | None = None
    where: str = ""

    @property
    def text(self) -> str:
        return self.query

    @property
    def pair(self) -> str:
        """The longest text: with the query, the row by which a length is judged."""
        return max(self.texts, key=len, default="")
