"""Whether one tokenizer is another with more pieces, and what its new pieces were before.

In: the tokenizer of a model and a larger one. Out: for each new id the old ids that its text was cut into, or an error
that says why the ids of the one are not those of the other.
"""

import json
from typing import Any

from bertsmith.errors import BertsmithError
from bertsmith.text.tokenizer import Tokenizer

LISTS = ("vocab", "merges")
PARTS = {"normalizer": "ways to clean a text", "pre_tokenizer": "ways to find words", "added_tokens": "added tokens"}


def cut_new_pieces(old: Tokenizer, new: Tokenizer) -> dict[int, tuple[int, ...]]:
    """New id -> the ids in its place before; empty where both are the same. An error: `new` does not extend `old`."""
    why = find_difference(old, new)
    if why is not None:
        raise BertsmithError(why)
    known = old._engine.get_vocab(with_added_tokens=True)
    added = {id: piece for piece, id in new._engine.get_vocab(with_added_tokens=True).items() if piece not in known}
    prefix = _read_model(old).get("continuing_subword_prefix") or ""
    return {id: tuple(_cut(old, piece, prefix)) for id, piece in sorted(added.items())}


def find_difference(old: Tokenizer, new: Tokenizer) -> str | None:
    """Why `new` is not `old` with pieces behind its own; None where it is."""
    ours, theirs = (json.loads(each._engine.to_str()) for each in (old, new))
    for part, name in PARTS.items():
        if ours.get(part) != theirs.get(part):
            return f"their {name} differ"
    settings = [{key: value for key, value in each["model"].items() if key not in LISTS} for each in (ours, theirs)]
    if settings[0] != settings[1]:
        return "they cut words in other ways"
    known, grown = (each._engine.get_vocab(with_added_tokens=True) for each in (old, new))
    moved = next((piece for piece in sorted(known, key=known.__getitem__) if grown.get(piece) != known[piece]), None)
    if moved is not None:
        return f"the piece {moved!r} has the id {known[moved]} in the one and {grown.get(moved, 'none')} in the other"
    if any(id < old.size for piece, id in grown.items() if piece not in known):
        return "new pieces stand among the old ones"
    for name in LISTS:  # merges, and the scored pieces of a unigram, have an order of their own
        one, other = ours["model"].get(name), theirs["model"].get(name)
        if isinstance(one, list) and one != other[: len(one)]:
            return f"the {'merges' if name == 'merges' else 'scores'} of the old pieces differ"
    return None


def _cut(old: Tokenizer, piece: str, prefix: str) -> list[int]:
    """The ids of a piece's text; of one that goes on with a word, by the pieces that do."""
    if prefix and piece.startswith(prefix) and piece != prefix:
        return _cut_inside(old, piece.removeprefix(prefix), prefix)
    return [token.id for token in old._engine.model.tokenize(piece)]


def _cut_inside(old: Tokenizer, rest: str, prefix: str) -> list[int]:
    """The longest piece first, as WordPiece has it."""
    found = []
    while rest:
        sizes = range(len(rest), 0, -1)
        ids = ((size, old.id(prefix + rest[:size])) for size in sizes)
        size, id = next(((size, id) for size, id in ids if id is not None), (len(rest), old.unk_id))
        found += [] if id is None else [id]
        rest = rest[size:]
    return found


def _read_model(tokenizer: Tokenizer) -> dict[str, Any]:
    return dict(json.loads(tokenizer._engine.to_str())["model"])
