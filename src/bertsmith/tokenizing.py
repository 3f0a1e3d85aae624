"""Training a tokenizer, from text to a folder. In: files, folders or globs of text. Out: a `TrainedTokenizer`.

bertsmith.train_tokenizer("texts/", "my-tokenizer", kind="bpe", size=32000)
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from bertsmith.arguments import checked
from bertsmith.errors import BertsmithError
from bertsmith.models.files import take_folder
from bertsmith.tasks.texts import list_names
from bertsmith.text.parts import cut_parts
from bertsmith.text.sources import list_sources, name_sources, refuse_unread, tell_unread
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.training.balancing import balance_counts, check_balance, find_factors
from bertsmith.text.training.building import build_model, build_tokenizer, check_folder, save_trained
from bertsmith.text.training.bytepairs import ALPHABET, train_bytepairs
from bertsmith.text.training.counting import Counted
from bertsmith.text.training.parallel import count_parts
from bertsmith.text.training.recipes import Recipe, make_recipe
from bertsmith.text.training.table import WordTable, make_table
from bertsmith.text.training.unigram import train_unigram
from bertsmith.text.training.vocabulary import Vocabulary
from bertsmith.text.training.wordpieces import train_wordpieces
from bertsmith.workers import count_cores

PART = 4 << 20  # bytes that a process counts at a time
Tell = Callable[[str, int, int], None]  # what is done, how much of it, of how much


@dataclass(frozen=True)
class TrainedTokenizer:
    """The tokenizer and what is worth knowing of its training."""

    tokenizer: Tokenizer
    folder: Path
    kind: str
    pieces: int
    asked: int  # pieces asked for
    words: int  # of the text, as spaces divide it
    characters: int
    tokens_per_word: float  # on the text it was trained on, special tokens apart
    covered: float  # the part of the text's characters that the vocabulary knows
    skipped: int  # words over the limit of characters
    factors: tuple[float, ...]  # by which languages were multiplied
    seconds: float
    unread: Mapping[str, int]  # files in folders whose names do not end as a text's does
    alphabet: int | None = None  # how many characters it may know, where that was said

    @property
    def notes(self) -> list[str]:
        """Sentences about what a person may not expect."""
        notes = tell_unread(self.unread)
        if self.pieces < self.asked:
            is_cut = self.alphabet is not None and self.covered < 1
            why, more = ("can be spelled with the --alphabet", "a larger one") if is_cut else ("occurs", "more text")
            notes.append(
                f"The text gives only {self.pieces:,} of the {self.asked:,} pieces asked for: no other {why} often "
                f"enough; give {more}, a smaller --size or a smaller --min-count."
            )
        if self.covered < 1:
            notes.append(
                f"Characters outside the alphabet, {1 - self.covered:.4%} of the text, become the unknown token; "
                f"--alphabet sets how many characters are known."
            )
        if self.skipped:
            notes.append(f"Words over the --limit of characters took no part: {self.skipped:,}.")
        return notes


@checked()
def train_tokenizer(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    kind: str = "wordpiece",
    size: int = 30_000,
    cased: bool | None = None,
    min_count: int = 2,
    special: str | Sequence[str] = (),
    limit: int | None = None,
    alphabet: int | None = None,
    join_punctuation: bool = False,
    balance: float | None = None,
    field: str = "text",
    threads: int | None = None,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> TrainedTokenizer:
    """Trains a tokenizer of `size` pieces and writes it to `out`: the same bytes whatever the threads or the machine.

    `cased` unsaid: WordPiece forgets case, the others keep it. A pair of pieces is joined from `min_count` on;
    `special` are tokens beside the usual ones; words over `limit` characters (100 in WordPiece, else 1,000) take no
    part; `alphabet` is how many characters WordPiece and unigram know; `join_punctuation` lets a unigram's pieces hold
    letters and punctuation together. With `balance` (0.7) each source is a language and small ones count for more.
    """
    begin = perf_counter()
    check_counts({"size": size, "min-count": min_count, "alphabet": alphabet, "limit": limit, "threads": threads})
    given, special = name_sources(sources), [special] if isinstance(special, str) else list_names("special", special)
    recipe = make_recipe(kind, cased, limit, join_punctuation, special)
    check_balance(balance, len(given))
    tokens = _name_specials(recipe, alphabet, special)
    folder = take_folder(out)
    check_folder(folder, overwrite)
    languages = given if balance is not None else [given]
    signs = [token for token in special if len(token) == 1]  # cleaning may make one of another: it is no piece
    unread: Counter[str] = Counter()
    counted = count_sources(languages, folder, recipe, threads or count_cores(), field, tell, unread)
    factors = find_factors([each.characters for each in counted], 1.0 if balance is None else balance)
    words = counted[0].words if len(counted) == 1 else balance_counts([each.words for each in counted], factors)
    words = {word: count for word, count in words.items() if not any(sign in word for sign in signs)}
    vocabulary = _train(make_table(words), recipe, size, tokens, min_count, alphabet, tell)
    tokenizer = build_tokenizer(vocabulary, recipe, special)
    save_trained(tokenizer, vocabulary, recipe, folder)
    chunks, skipped = (sum(getattr(each, name) for each in counted) for name in ("chunks", "skipped"))
    tokens_in_all = sum(_count_tokens(each, vocabulary, recipe) for each in counted)
    return TrainedTokenizer(
        tokenizer, folder, kind, len(vocabulary.pieces), size, max(chunks, 1), sum(each.characters for each in counted),
        divide_tokens(tokens_in_all, chunks, skipped, recipe), _find_covered(counted, vocabulary),
        skipped, tuple(factor / 1000 for factor in factors), perf_counter() - begin,
        unread, alphabet,
    )  # fmt: skip


def check_counts(given: Mapping[str, int | None]) -> None:
    """Numbers by the names of their flags; None was not given."""
    for name, value in given.items():
        if value is not None and value < 1:
            raise BertsmithError(f"--{name} {value} must be a whole number above zero.")


def _name_specials(recipe: Recipe, alphabet: int | None, special: list[str]) -> list[str]:
    """All special tokens in the order of their ids."""
    if alphabet is not None and recipe.kind == "bpe":
        raise BertsmithError("--alphabet is for wordpiece and unigram; bpe knows all 256 bytes and so every character.")
    tokens = [*recipe.specials.values(), *special]
    for token in special:
        if token.split() != [token]:
            raise BertsmithError(f"--special {token!r} must be a word without spaces.")
        is_sign = token in ALPHABET if recipe.kind == "bpe" else len(token) == 1 and token.isalnum()
        if is_sign:
            raise BertsmithError(f"--special {token!r} is a sign that words are spelled with; name a longer one.")
        if tokens.count(token) > 1:
            raise BertsmithError(f"--special {token!r} is there already; name each special token once.")
    return tokens


def count_sources(
    languages: Sequence[str | Path | Sequence[str | Path]], out: Path, recipe: Recipe, threads: int, field: str,
    tell: Tell | None, unread: Counter[str] | None = None,
) -> list[Counted]:  # fmt: skip
    counted, listed = [], [list_sources(language, unread) for language in languages]
    refuse_unread([source for some in listed for source in some], None, field)
    for number, (language, some) in enumerate(zip(languages, listed, strict=True), 1):
        name = "counting words" + (f", language {number} of {len(languages)}" if len(languages) > 1 else "")
        # A vocab.txt in there is what an earlier run wrote, not text.
        files = [source for source in some if out.resolve() not in source.path.resolve().parents]
        parts = cut_parts(files, size=PART)
        counted.append(count_parts(parts, recipe, threads, field, about(name, tell)))
        if not counted[-1].words:
            named = language if isinstance(language, str | Path) else ", ".join(map(str, language))
            long = counted[-1].skipped
            why = f"all {long:,} words are over the --limit of characters" if long else "there are no words to train on"
            raise BertsmithError(f"{named}: {why}; give files with text.")
    return counted


def _train(
    table: WordTable, recipe: Recipe, size: int, tokens: list[str], min_count: int, alphabet: int | None,
    tell: Tell | None,
) -> Vocabulary:  # fmt: skip
    if recipe.kind == "bpe":
        return train_bytepairs(table, size, tokens, min_count, about("merging pairs", tell))
    if recipe.kind == "wordpiece":
        return train_wordpieces(table, size, tokens, min_count, alphabet, about("merging pairs", tell))
    return train_unigram(table, size, tokens, min_count, alphabet, about("dropping pieces", tell))


def about(name: str, tell: Tell | None) -> Callable[[int, int], None] | None:
    return None if tell is None else lambda done, all: tell(name, done, all)


def _count_tokens(counted: Counted, vocabulary: Vocabulary, recipe: Recipe) -> int:
    model = build_model(vocabulary, recipe)
    return sum(count * len(model.tokenize(word)) for word, count in counted.words.items())


def divide_tokens(tokens: int, words: int, skipped: int, recipe: Recipe) -> float:
    """Tokens a word: those over the limit are one unknown token each in WordPiece, and elsewhere not among them."""
    if recipe.kind == "wordpiece":
        return (tokens + skipped) / max(words, 1)
    return tokens / max(words - skipped, 1)


def _find_covered(counted: Sequence[Counted], vocabulary: Vocabulary) -> float:
    """Of the text as it is: of languages that were counted up or down, the vocabulary knows another part."""
    if len(counted) == 1 or vocabulary.covered == 1:
        return vocabulary.covered
    known = {piece for piece in vocabulary.pieces if len(piece) == 1}  # each character that it knows is a piece
    words = [(word, count) for each in counted for word, count in each.words.items()]
    spelled = sum(count * sum(character in known for character in word) for word, count in words)
    return spelled / sum(count * len(word) for word, count in words)
