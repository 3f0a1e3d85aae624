"""How often each word occurs. In: texts and a recipe. Out: the words as the engine cuts them, with their counts.

A corpus has few distinct chunks between spaces: each is counted as it stands, and the engine sees it once.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bertsmith.text.training.recipes import EDGE, Recipe

SLICE = 1_000_000  # characters of a text that are worked on at a time, so that one giant line costs no more
PATIENCE = 64_000_000  # characters after which the chunks are handed to the engine, which bounds their table
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Counted:
    """The words of texts, and what was seen on the way."""

    words: Counter[str] = field(default_factory=Counter)
    chunks: int = 0  # words in the everyday sense: what stands between spaces
    characters: int = 0
    skipped: int = 0  # words over the limit of characters

    def merge(self, other: "Counted") -> None:
        """Adds another part of the texts; sums do not know an order."""
        for word, count in other.words.items():
            self.words[word] += count
        self.chunks += other.chunks
        self.characters += other.characters
        self.skipped += other.skipped


class WordCounter:
    """Counts the words of the texts it is given, in memory bounded by the distinct words."""

    def __init__(self, recipe: Recipe) -> None:
        self.counted = Counted()
        self._recipe, self._normalizer, self._splitter = recipe, recipe.normalizer(), recipe.splitter()
        # The longest first, as the engine finds them.
        named = "|".join(map(re.escape, sorted(recipe.apart, key=len, reverse=True)))
        self._apart = re.compile(named) if named else None
        self._chunks: Counter[str] = Counter()
        self._waiting = 0

    def add(self, text: str) -> None:
        """Counts one slice that `cut_slices` gave."""
        self._chunks.update(self._recipe.chunks.findall(text))
        self._waiting += len(text)
        self.counted.characters += len(text)
        if self._waiting > PATIENCE:
            self._ask_engine()

    def finish(self) -> Counted:
        """All that was counted."""
        self._ask_engine()
        return self.counted

    def _ask_engine(self) -> None:
        words, longest = self.counted.words, self._recipe.longest
        for chunk, count in self._chunks.items():
            for part in [chunk] if self._apart is None else filter(None, self._apart.split(chunk)):
                text = self._normalizer.normalize_str(part) if self._normalizer else part
                for word, _ in self._splitter.pre_tokenize_str(text) if self._splitter else [(text, None)]:
                    if len(word) <= longest:
                        words[word] += count
                    else:
                        self.counted.skipped += count
            if not chunk.isspace():
                self.counted.chunks += count
        self._chunks.clear()
        self._waiting = 0


def cut_slices(text: str) -> Iterator[str]:
    """A text in slices with whole words, unless there is no space for long; half of a UTF-16 pair becomes U+FFFD."""
    if not text.isascii():
        text = _LONE_SURROGATE.sub("\ufffd", text)
    start = 0
    while len(text) - start > SLICE:
        stop = start + SLICE
        edges = [found.start() for found in EDGE.finditer(text, max(start + 1, stop - 2000), stop)]
        stop = edges[-1] if edges else stop
        yield text[start:stop]
        start = stop
    yield text[start:] if start else text


def count_texts(texts: Iterable[str], recipe: Recipe) -> Counted:
    """The words of texts that are at hand."""
    counter = WordCounter(recipe)
    for text in texts:
        for part in cut_slices(text):
            counter.add(part)
    return counter.finish()
