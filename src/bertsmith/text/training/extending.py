"""Pieces for the words of another field, put behind those that a tokenizer has: no old id changes.

In: a tokenizer, the counts of words. Out: a tokenizer with the pieces that save most tokens of these words. Merging
begins where the tokenizer's own cut ends, so what is learned is only what it lacks. For BPE these are merges behind its
own; for WordPiece and unigram more candidates are made than asked for, and those go whose loss costs least. These two
also learn characters that they did not know, the most frequent ones, in at most a quarter of the room.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Engine
from tokenizers import models

from bertsmith.errors import BertsmithError
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.training.merging import Merger, learn_merges

KINDS = {"WordPiece": "wordpiece", "BPE": "bpe", "Unigram": "unigram"}
SURPLUS, FEWEST = 3, 300  # times the pieces asked for are candidates, and never fewer: a long word takes many steps
CHARACTERS = 4  # one piece in so many, at most, is a character
SHRINK = 0.75  # of the candidates stay in a round
Tell = Callable[[int, int], None]


@dataclass
class Learned:
    """New pieces in the order of their ids; the merges that make them, and the scores that a unigram gives them."""

    pieces: list[str]
    merges: list[tuple[str, str]] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)


def find_kind(tokenizer: Tokenizer) -> str:
    """wordpiece, bpe or unigram; an error for one that cannot grow."""
    model = _read(tokenizer)["model"]
    kind = KINDS.get(model["type"])
    if kind is None or (kind == "bpe" and (model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"))):
        told = f"a tokenizer of the form {model['type']}" if kind is None else "a BPE that marks the ends of words"
        raise BertsmithError(f"{told} cannot be extended; those of WordPiece, byte-level BPE and unigram can.")
    return kind


def learn_pieces(
    tokenizer: Tokenizer, words: Mapping[str, int], most: int, min_count: int, tell: Tell | None = None
) -> Learned:
    """At most so many pieces, each made of neighbours that occur `min_count` times."""
    characters = _find_characters(tokenizer, words, most // CHARACTERS, min_count)
    if characters.pieces:
        more = learn_merged(add_pieces(tokenizer, characters), words, most - len(characters.pieces), min_count, tell)
        return Learned([*characters.pieces, *more.pieces], more.merges, {**characters.scores, **more.scores})
    return learn_merged(tokenizer, words, most, min_count, tell)


def learn_merged(
    tokenizer: Tokenizer, words: Mapping[str, int], most: int, min_count: int, tell: Tell | None = None
) -> Learned:
    """Pieces of several known ones."""
    cuts = _cut_words(tokenizer, words)
    if not cuts:
        return Learned([])
    merger = _make_merger(cuts, words)
    known = len(merger.names)
    taken = frozenset(tokenizer._engine.get_vocab(with_added_tokens=True))
    kind, model = find_kind(tokenizer), _read(tokenizer)["model"]
    prefix = (model.get("continuing_subword_prefix") or "") if kind == "wordpiece" else ""

    def join(left: str, right: str) -> str:
        return left + right.removeprefix(prefix)

    if kind == "bpe":
        merges: list[tuple[str, str]] = []
        while (lacking := most - (len(merger.names) - known)) > 0:  # two merges may make the same piece
            more = learn_merges(merger, lacking, join, min_count, taken, tell)
            merges += more
            if not more:
                break
        return Learned(merger.names[known:], merges)
    merges, learned, many = [], Learned([]), max(SURPLUS * most, FEWEST)
    # Of the candidates many are only steps to others: where too few are left, more are made.
    while len(learned.pieces) < most and (more := learn_merges(merger, many, join, min_count, taken, tell)):
        merges += more
        learned = Learned(merger.names[known:])
        if kind == "unigram":
            learned.scores = _score(model["vocab"], merges, join)
        learned.pieces = _choose(model, learned, words, cuts, _count_steps(merges, join), most)
    return learned


def add_pieces(tokenizer: Tokenizer, learned: Learned) -> Tokenizer:
    """The tokenizer with these pieces behind all of its own."""
    parts = _read(tokenizer)
    model, known = parts["model"], tokenizer._engine.get_vocab(with_added_tokens=True)
    # Tokens beside the model would move behind a model that grows; in it they keep their ids.
    beside = sorted((id, token) for token, id in known.items() if tokenizer._engine.model.token_to_id(token) is None)
    if isinstance(model["vocab"], list):
        lowest = min(score for _, score in model["vocab"])
        if [id for id, _ in beside] != list(range(len(model["vocab"]), tokenizer.size)):
            raise BertsmithError("the ids of this tokenizer have gaps, behind which a unigram cannot put new pieces.")
        model["vocab"] += [[token, lowest] for _, token in beside]
        model["vocab"] += [[piece, learned.scores[piece]] for piece in learned.pieces]
    else:
        model["vocab"] |= {token: id for id, token in beside}
        model["vocab"] |= {piece: tokenizer.size + number for number, piece in enumerate(learned.pieces)}
    if learned.merges:
        model["merges"] += [list(pair) if _has_pairs(model) else " ".join(pair) for pair in learned.merges]
    engine = Engine.from_str(json.dumps(parts))
    if tokenizer._post_processor is not None:
        engine.post_processor = tokenizer._post_processor
    return Tokenizer(engine, tokenizer.template, tokenizer.specials, tokenizer.limit)


def count_tokens(tokenizer: Tokenizer, words: Mapping[str, int]) -> int:
    """How many pieces the words make."""
    model = tokenizer._engine.model
    return sum(count * len(model.tokenize(word)) for word, count in words.items())


def count_unknown(tokenizer: Tokenizer, words: Mapping[str, int]) -> int:
    """How many of the words hold a character that the tokenizer does not know."""
    model, unknown = tokenizer._engine.model, tokenizer.unk_id
    return sum(count for word, count in words.items() if any(token.id == unknown for token in model.tokenize(word)))


def _find_characters(tokenizer: Tokenizer, words: Mapping[str, int], most: int, min_count: int) -> Learned:
    """Those for want of which words are unknown, as they stand at the start of a word or inside."""
    kind, model = find_kind(tokenizer), _read(tokenizer)["model"]
    if kind == "bpe":  # its bytes spell everything
        return Learned([])
    prefix = (model.get("continuing_subword_prefix") or "") if kind == "wordpiece" else ""
    known, longest = tokenizer._engine.get_vocab(with_added_tokens=True), model.get("max_input_chars_per_word", 1000)
    counts, cutter = Counter[str](), tokenizer._engine.model
    for word, count in words.items():
        signs = [prefix + sign if place else sign for place, sign in enumerate(word)]
        lacking = [sign for sign in signs if sign not in known] if len(word) <= longest else []
        if lacking and any(token.id == tokenizer.unk_id for token in cutter.tokenize(word)):
            for sign in lacking:
                counts[sign] += count
    found = [piece for piece, count in counts.items() if count >= min_count]
    pieces = sorted(found, key=lambda piece: (-counts[piece], piece))[:most]
    scores = min(score for _, score in model["vocab"]) if kind == "unigram" else 0.0
    return Learned(pieces, scores=dict.fromkeys(pieces, scores))


def _cut_words(tokenizer: Tokenizer, words: Mapping[str, int]) -> dict[str, list[str]]:
    """The words of several known pieces, in the order of the alphabet."""
    model, unknown = tokenizer._engine.model, tokenizer.unk_id
    found = {}
    for word in sorted(words):
        tokens = model.tokenize(word)
        if len(tokens) > 1 and all(token.id != unknown for token in tokens):
            found[word] = [token.value for token in tokens]
    return found


def _make_merger(cuts: Mapping[str, Sequence[str]], words: Mapping[str, int]) -> Merger:
    names = sorted({piece for pieces in cuts.values() for piece in pieces})
    numbers = {name: number for number, name in enumerate(names)}
    symbols = np.array([numbers[piece] for pieces in cuts.values() for piece in pieces], dtype=np.int32)
    lengths = np.array([len(pieces) for pieces in cuts.values()], dtype=np.int64)
    return Merger(symbols, lengths, np.array([words[word] for word in cuts], dtype=np.int64), names)


def _score(vocabulary: Sequence[Any], merges: Sequence[tuple[str, str]], join: Any) -> dict[str, float]:
    """A piece is as likely as the rarer of its parts: more than both one after the other, and never below the lowest
    score there is, from which the engine reckons what unknown characters cost."""
    scores = dict(map(tuple, vocabulary))
    for left, right in merges:
        scores.setdefault(join(left, right), min(scores[left], scores[right]))
    return scores


def _count_steps(merges: Sequence[tuple[str, str]], join: Any) -> dict[str, int]:
    """How many old pieces each new one stands for."""
    steps: dict[str, int] = {}
    for left, right in merges:
        steps.setdefault(join(left, right), steps.get(left, 1) + steps.get(right, 1))
    return steps


def _choose(
    model: Mapping[str, Any], learned: Learned, words: Mapping[str, int], cuts: Mapping[str, Any],
    steps: Mapping[str, int], most: int,
) -> list[str]:  # fmt: skip
    """Those candidates that save most tokens, dropped a part at a time as others then take over their words."""
    left = learned.pieces
    while True:
        cutter, used = _build(model, left, learned.scores), Counter[str]()
        for word in cuts:
            for token in cutter.tokenize(word):
                used[token.value] += words[word]
        saved = [used[piece] * (steps[piece] - 1) for piece in left]
        few = len(left) <= most
        room = len(left) if few else max(most, int(SHRINK * len(left)))
        ranked = sorted(range(len(left)), key=lambda place: (-saved[place], place))[:room]
        kept = [left[place] for place in sorted(ranked) if saved[place] or not few]
        if few and len(kept) == len(left):
            return kept
        left = kept


def _build(model: Mapping[str, Any], pieces: Sequence[str], scores: Mapping[str, float]) -> Any:
    if isinstance(model["vocab"], list):
        vocabulary = [*map(tuple, model["vocab"]), *((piece, scores[piece]) for piece in pieces)]
        return models.Unigram(vocabulary, model["unk_id"], model.get("byte_fallback", False))
    size = max(model["vocab"].values()) + 1
    return models.WordPiece(
        {**model["vocab"], **{piece: size + number for number, piece in enumerate(pieces)}},
        unk_token=model["unk_token"], max_input_chars_per_word=model["max_input_chars_per_word"],
        continuing_subword_prefix=model["continuing_subword_prefix"],
    )  # fmt: skip


def _has_pairs(model: Mapping[str, Any]) -> bool:
    return not model["merges"] or not isinstance(model["merges"][0], str)


def _read(tokenizer: Tokenizer) -> dict[str, Any]:
    return dict(json.loads(tokenizer._engine.to_str()))
