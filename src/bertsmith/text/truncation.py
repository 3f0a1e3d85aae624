"""Which pieces of a text, or of a pair, stay when a row must not be longer than the model takes.

In: how many pieces there are and how much room there is. Out: the ranges of pieces to keep, for each sequence.
"""

from collections.abc import Sequence

from bertsmith.errors import BertsmithError

POLICIES = ("error", "head", "tail", "head+tail")


def keep(counts: Sequence[int], room: int | None, policy: str) -> list[list[tuple[int, int]]]:
    """The ranges kept of each sequence of `counts` pieces when all together may have `room` pieces (None: all)."""
    if policy not in POLICIES:
        raise BertsmithError(f"truncate={policy!r} is not a choice; use one of {', '.join(map(repr, POLICIES))}.")
    if room is None or sum(counts) <= room:
        return [[(0, count)] for count in counts]
    shares = [room] if len(counts) == 1 else share_room(counts[0], counts[1], room)
    return [_cut(count, share, policy) for count, share in zip(counts, shares, strict=True)]


def share_room(first: int, second: int, room: int) -> list[int]:
    """Shares the room of a pair: the longer one is cut first, down to the shorter, then both alike."""
    short, long = sorted((first, second))
    long = min(long, max(short, room - short))
    if short + long > room:
        short, long = room // 2, room - room // 2
    # With equal lengths the odd one goes to the second, as in the `tokenizers` library.
    return [long, short] if first > second else [short, long]


def slide(count: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """The windows over `count` pieces: each `room` long, neighbours sharing `overlap`; the last one may be shorter."""
    if overlap < 0 or overlap >= room:
        raise BertsmithError(
            f"overlap={overlap} does not fit: a window has room for {room} pieces of the text, so the overlap must be "
            f"between 0 and {room - 1}; make it smaller or the length larger."
        )
    starts = range(0, max(count - overlap, 1), room - overlap)
    return [(start, min(start + room, count)) for start in starts]


def _cut(count: int, share: int, policy: str) -> list[tuple[int, int]]:
    if count <= share:
        return [(0, count)]
    if policy == "tail":
        return [(count - share, count)]
    if policy == "head+tail":
        head = share - share // 2
        return [(0, head), (count - share // 2, count)]
    return [(0, share)]
