"""The part of a long text that matters, and a word about how much is left out."""

from collections.abc import Sequence

HEAD, TAIL = 420, 160  # characters kept of a long text's ends
MARGIN = 150  # characters around a marked place
SHORT = 100  # characters: to leave out less is not worth a gap
NEIGHBOURS = 6  # words around a wrong tag
PLACES = 40  # wrong tags that are shown of one example


def cut_middle(text: str, head: int = HEAD, tail: int = TAIL) -> str:
    """The ends of the text: a classifier that cuts has seen one of them or both."""
    if len(text) <= head + tail + 60:
        return text
    start, end = _to_space(text, head, -1), _to_space(text, len(text) - tail, 1)
    return f"{text[:start].rstrip()} … [{end - start:,} characters left out] … {text[end:].lstrip()}"


def cut_name(name: object) -> str:
    """A label as one shows it; somebody's column of labels may hold whole texts."""
    return cut_middle(str(name), 60, 20)


def _to_space(text: str, at: int, way: int, most: int = 24) -> int:
    """The nearest end of a word from `at`, looking one way; `at` itself where words are that long."""
    for i in range(at, at + way * most, way):
        if not 0 < i < len(text):
            return min(max(i, 0), len(text))
        if text[i - 1].isspace() or text[i].isspace():
            return i
    return at


def cut_around(text: str, places: Sequence[tuple[int, int]], margin: int = MARGIN) -> list[tuple[int, int]]:
    """The stretches of the text that hold the places and what stands around them; without places, the beginning."""
    wanted = sorted((max(start, 0), min(end, len(text))) for start, end in places) or [(0, 0)]
    found: list[tuple[int, int]] = []
    for start, end in wanted:
        low = _to_space(text, max(start - margin, 0), -1)
        high = _to_space(text, min(end + margin * (1 if places else 3), len(text)), 1)
        low, high = (0 if low < SHORT else low), (len(text) if len(text) - high < SHORT else high)
        if found and low <= found[-1][1] + SHORT:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def choose_words(wrong: Sequence[int], length: int, around: int = NEIGHBOURS) -> list[tuple[int, int]]:
    """The stretches of words that hold the wrong ones and their neighbours."""
    found: list[tuple[int, int]] = []
    for i in wrong[:PLACES]:
        low, high = max(i - around, 0), min(i + around + 1, length)
        if found and low <= found[-1][1] + 2:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found
