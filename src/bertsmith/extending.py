"""`bertsmith.extend_tokenizer`: pieces for the words of a field, behind those that a model's tokenizer has.

In: a model or a tokenizer, texts of the field. Out: an `ExtendedTokenizer`, in whose folder the old ids are what they
were, so that `bertsmith.pretrain` can go on with the model and give only the new pieces new rows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bertsmith.arguments import checked
from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import find_encoder
from bertsmith.models.files import take_folder
from bertsmith.models.hub import locate
from bertsmith.text.loading import load_tokenizer
from bertsmith.text.sources import name_sources
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.training.building import check_folder, save_trained
from bertsmith.text.training.extending import add_pieces, count_tokens, count_unknown, find_kind, learn_pieces
from bertsmith.text.training.recipes import Recipe
from bertsmith.text.training.vocabulary import Vocabulary
from bertsmith.tokenizing import Tell, about, check_counts, count_sources, divide_tokens
from bertsmith.workers import count_cores


@dataclass(frozen=True)
class ExtendedTokenizer:
    """The tokenizer, and what its new pieces save."""

    tokenizer: Tokenizer
    folder: Path
    kind: str
    pieces: int  # ids in all
    added: list[str]
    asked: int
    words: int  # of the text, as spaces divide it
    tokens_per_word: float
    tokens_per_word_before: float
    unknown: float  # the share of the words that hold a character which the tokenizer does not know
    seconds: float

    @property
    def notes(self) -> list[str]:
        """Sentences about what a person may not expect."""
        notes = []
        if len(self.added) < self.asked:
            notes.append(
                f"The text gives only {len(self.added):,} of the {self.asked:,} pieces asked for: no other would save "
                f"tokens often enough; give more text, a smaller --add or a smaller --min-count."
            )
        if self.unknown:
            notes.append(
                f"{self.unknown:.4%} of the words hold characters that the tokenizer does not know, and stay unknown."
            )
        return notes


@checked()
def extend_tokenizer(
    model: str | Path,
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    add: int,
    min_count: int = 2,
    field: str = "text",
    threads: int | None = None,
    download: bool = False,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> ExtendedTokenizer:
    """Adds at most `add` pieces to the tokenizer of `model` and writes it to `out`: the same bytes each time.

    Chosen are those that save most tokens of `sources`, from `min_count` occurrences on. Old pieces keep their ids, and
    a text in which no new piece occurs is cut as before.
    """
    begin = perf_counter()
    check_counts({"add": add, "min-count": min_count, "threads": threads})
    target = take_folder(out)
    folder = find_encoder(locate(str(model), download=download))
    check_folder(target, overwrite)
    old = load_tokenizer(folder)
    parts = json.loads(old._engine.to_str())
    longest = parts["model"].get("max_input_chars_per_word", 1000)
    cased = not (parts.get("normalizer") or {}).get("lowercase", False)
    recipe = Recipe(find_kind(old), cased, longest, own=str(folder))
    (counted,) = count_sources([name_sources(sources)], target, recipe, threads or count_cores(), field, tell)
    learned = learn_pieces(old, counted.words, add, min_count, about("finding pieces", tell))
    if not learned.pieces:
        raise BertsmithError(
            f"no piece of the text occurs {min_count} times and is not in the tokenizer already; give more text, or "
            f"go on with the tokenizer as it is."
        )
    grown = add_pieces(old, learned)
    _save(grown, recipe, target)
    after, before = (
        divide_tokens(count_tokens(each, counted.words), counted.chunks, counted.skipped, recipe)
        for each in (grown, old)
    )
    return ExtendedTokenizer(
        grown, target, recipe.kind, grown.size, learned.pieces, add, counted.chunks, after, before,
        count_unknown(grown, counted.words) / max(counted.words.total(), 1), perf_counter() - begin,
    )  # fmt: skip


def _save(tokenizer: Tokenizer, recipe: Recipe, folder: Path) -> None:
    ids = tokenizer._engine.get_vocab(with_added_tokens=True)
    pieces = sorted(ids, key=lambda piece: ids[piece])
    merges = json.loads(tokenizer._engine.to_str())["model"].get("merges", [])
    pairs = [(left, right) for left, right in (pair.split(" ") if isinstance(pair, str) else pair for pair in merges)]
    whole = len(pieces) == tokenizer.size and not any("\n" in piece for piece in pieces)
    save_trained(tokenizer, Vocabulary(pieces, pairs), recipe, folder, has_lists=whole)
