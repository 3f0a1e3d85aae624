"""What a model that fills masks knows of plain text: words guessed by how frequent they are, and pseudo-perplexity.

In: documents. Out: for a sample of their words, one at a time and all pieces hidden, whether the first guess is right;
for a sample of words and marks, how likely each of their tokens is. Both samples are drawn from the text and not from
tokens, so that models with different tokenizers are asked about the same places.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice, pairwise
from typing import Any

import numpy as np

from bertsmith.errors import BertsmithError
from bertsmith.evaluation.function_words import is_content
from bertsmith.evaluation.scoring import with_intervals
from bertsmith.tasks.guess_word import GuessWord, WordPlace
from bertsmith.tasks.hiding import HiddenText
from bertsmith.tasks.likelihood import Likelihood, ask_all, perplexity
from bertsmith.tasks.measures import Array, Measure, mean, share
from bertsmith.tasks.predicting import Predictor
from bertsmith.text.wide import SPACELESS

# Signs that belong to the letter before them, as the vowels of Hindi do; and what joins letters.
_SIGNS = "".join(chr(code) for code in range(0x300, 0x1E950) if unicodedata.category(chr(code))[0] == "M")
_SIGNS = f"[{_SIGNS}\u200c\u200d]"
_LETTERS = rf"[^\W_{SPACELESS}]+(?:{_SIGNS}+[^\W_{SPACELESS}]*)*"
# Letters and digits; an apostrophe between them, and a point or comma between digits, is inside a word. Where a script
# puts no spaces between words, nothing but a dictionary knows them: there each letter is one.
_UNIT = re.compile(rf"(?P<word>{_LETTERS}(?:(?:['’]|(?<=\d)[.,](?=\d)){_LETTERS})*|[^\W_]{_SIGNS}*)|\S")
_PLAIN_UNIT = re.compile(r"(?P<word>[^\W_]+(?:(?:'|(?<=\d)[.,](?=\d))[^\W_]+)*)|\S")  # five times as fast
BANDS = (100, 1_000, 10_000)  # the last rank of each; a word's rank is its place by frequency
BLOCK = 2**12  # words that wait in memory


@dataclass(frozen=True)
class Unit:
    """A word, or a mark that stands by itself."""

    start: int
    text: str
    is_word: bool


@dataclass(frozen=True)
class Guess:
    word: str
    is_right: bool | None  # None: it could not be asked


def _unit(text: str) -> re.Pattern[str]:
    return _PLAIN_UNIT if text.isascii() else _UNIT


def cut_units(text: str) -> list[Unit]:
    return [Unit(found.start(), found[0], found["word"] is not None) for found in _unit(text).finditer(text)]


def count_words(documents: Iterable[str]) -> Counter[str]:
    """How often each word occurs, case aside."""
    found: Counter[str] = Counter()
    for document in documents:
        found.update(word.lower() for word in _unit(document).findall(document) if word)
    return found


def count_units(documents: Iterable[str]) -> int:
    return sum(len(_unit(document).findall(document)) for document in documents)


def rank_words(counts: Mapping[str, int]) -> dict[str, int]:
    """Word -> its place by frequency, from 1; those of equal frequency in the order of the alphabet."""
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: rank for rank, word in enumerate(order, 1)}


def draw(documents: Sequence[str], samples: int, seed: int, words: bool) -> list[tuple[int, list[int]]]:
    """A sample without repeats: documents, and the numbers of the units in them, of words only or of all."""
    sizes = np.array([sum(bool(word) or not words for word in _unit(text).findall(text)) for text in documents])
    total = int(sizes.sum())
    chosen = np.sort(np.random.default_rng([seed, int(words)]).choice(total, min(samples, total), replace=False))
    found = []
    for number, (start, stop) in enumerate(zip(np.cumsum(sizes) - sizes, np.cumsum(sizes), strict=True)):
        inside = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, stop)] - start
        if len(inside):
            places = [i for i, unit in enumerate(cut_units(documents[number])) if unit.is_word or not words]
            found.append((number, [places[i] for i in inside]))
    return found


def own_pieces(text: HiddenText, units: Sequence[Unit]) -> list[list[int]]:
    """For each unit its pieces; every piece belongs to the unit in which it begins, or to the one before it."""
    starts = [unit.start for unit in units]
    owners = [max(bisect_right(starts, start) - 1, 0) for start, _ in text.offsets]
    for piece in reversed(range(text.count - 1)):  # a mark of the space before a word belongs to the word
        start, end = text.offsets[piece]
        if start == end and text.words[piece] == text.words[piece + 1]:
            owners[piece] = owners[piece + 1]
    found: list[list[int]] = [[] for _ in units]
    for piece, owner in enumerate(owners):
        found[owner].append(piece)
    return found


def guess_words(
    predictor: Predictor, task: GuessWord, documents: Sequence[str], samples: int, seed: int
) -> list[Guess]:
    """A guess for each sampled word, in the order of the text."""
    waiting = _find_places(task, documents, draw(documents, samples, seed, words=True))
    found: list[Guess] = []
    while block := list(islice(waiting, BLOCK)):
        answers = iter(predictor.predict(task, [place for _, place in block if place is not None]))
        found += [Guess(word, None if place is None else next(answers)) for word, place in block]
    return found


def _find_places(
    task: GuessWord, documents: Sequence[str], drawn: Iterable[tuple[int, list[int]]]
) -> Iterator[tuple[str, WordPlace | None]]:
    """Sampled words with their places; None for one that is not in the pieces, or has more than the model reads."""
    for number, places in drawn:
        units = cut_units(documents[number])
        text = HiddenText(task.tokenizer.encode(documents[number]), task.tokenizer, task.limit)
        pieces = own_pieces(text, units)
        for place in places:
            mine = pieces[place]
            can_ask = 0 < len(mine) <= text.room and all(map(text.is_asked, mine))
            yield units[place].text, WordPlace(text, mine) if can_ask else None


def measure_tokens(predictor: Predictor, task: Likelihood, documents: Sequence[str], samples: int, seed: int) -> Array:
    """For each sampled unit (the sum of its tokens' log-probabilities, how many they are, whether it is a word)."""
    sizes: list[tuple[int, bool]] = []

    def ask() -> Iterator[Any]:
        for number, places in draw(documents, samples, seed, words=False):
            units = cut_units(documents[number])
            (text,) = task.open([documents[number]])
            pieces = own_pieces(text, units)
            for place in places:
                rows = list(task.ask(text, pieces[place]))
                sizes.append((len(rows), units[place].is_word))
                yield from rows

    chances = iter(ask_all(predictor, task, ask()))
    found = [(sum(islice(chances, count)), count, is_word) for count, is_word in sizes]
    return np.array(found, dtype=np.float64).reshape(-1, 3)


def tell_accuracy(guesses: Sequence[Guess], ranks: Mapping[str, int]) -> dict[str, Any]:
    """Shares of right guesses with intervals: of all words, of content and function words, of bands of frequency."""
    asked = [guess for guess in guesses if guess.is_right is not None]
    if not asked:
        raise BertsmithError("there is no word in the text that the model can be asked for; give another text.")
    kinds = {
        "all": asked,
        "content": [guess for guess in asked if is_content(guess.word)],
        "function": [guess for guess in asked if not is_content(guess.word)],
    }
    return {
        "accuracy": {name: tell_share(some) for name, some in kinds.items() if some},
        "bands": list(tell_bands(asked, ranks)),
        "skipped": len(guesses) - len(asked),
    }


def tell_bands(asked: Sequence[Guess], ranks: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """By rank `from` and `to`; both are None for words without a rank."""
    places = np.array([ranks.get(guess.word.lower(), 0) for guess in asked])
    bounds = [0, *BANDS, max(len(ranks), BANDS[-1] + 1)]
    chosen: list[tuple[int | None, int | None, Array]] = [
        (low + 1, high, (low < places) & (places <= high)) for low, high in pairwise(bounds)
    ]
    for low, high, inside in [*chosen, (None, None, places == 0)]:
        if inside.any():
            yield {"from": low, "to": high, **tell_share(list(compress(asked, inside)))}


def tell_share(guesses: Sequence[Guess]) -> dict[str, float]:
    return with_intervals({"": mean(np.array([guess.is_right for guess in guesses]))}, len(guesses))[""]


def tell_perplexity(sums: Array) -> dict[str, Any]:
    """exp of the mean surprise a token, and a word (marks count with the words they stand by), with intervals."""
    tokens, words = int(sums[:, 1].sum()), int(sums[:, 2].sum())
    if not tokens:
        raise BertsmithError("there is no token in the text that the model can be asked for; give another text.")
    # Intervals are of the mean surprise, of which perplexity is a monotone function that may be too large to write.
    measures = {"token": Measure(sums, lambda total: share(-total[..., 0], total[..., 1]))}
    if words:
        measures["word"] = Measure(sums, lambda total: share(-total[..., 0], total[..., 2]))
    counts = {"token": tokens, "word": words}
    return {
        name: {**{key: perplexity(-one[key], 1) for key in ("value", "low", "high")}, "n": counts[name]}
        for name, one in with_intervals(measures, len(sums)).items()
    }
