"""Tag schemes: how one tag a word says where each entity begins and ends.

In: tags as people write them. Out: spans of words, `(start, end, type)`, and tags again in any scheme. Two places
side by side, as each scheme writes them:

| scheme | in | New | York | Paris | ! | |
|---|---|---|---|---|---|---|
| iob1 | O | I-LOC | I-LOC | B-LOC | O | B only where an entity follows one of its type |
| iob2 | O | B-LOC | I-LOC | B-LOC | O | B at each beginning |
| iobes | O | B-LOC | E-LOC | S-LOC | O | its end and single words too; bilou spells them L and U, bmes the inside M |
| io | O | I-LOC | I-LOC | I-LOC | O | neighbours of one type run together |
| bare | O | LOC | LOC | LOC | O | the same without a prefix |
| plain | ADP | PROPN | PROPN | PROPN | PUNCT | a tag a word, no entities: parts of speech |

"iob" stands for a model's labels that do not say which of iob1 and iob2 is meant; it is written as iob2.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from bertsmith.errors import BertsmithError

Span = tuple[int, int, str]  # first word, the one after the last, type
OUTSIDE = "O"
SCHEMES = ("iob1", "iob2", "iobes", "bilou", "bmes", "io", "bare", "plain")
# What the first, an inner, the last and an only word of an entity are marked with.
_LETTERS = {"iob1": "IIII", "io": "IIII", "iob": "BIIB", "iob2": "BIIB"}
_LETTERS |= {"iobes": "BIES", "bilou": "BILU", "bmes": "BMES"}
_SPELLINGS = {"L": "E", "U": "S", "M": "I"}
_TELLING = {"bmes": "M", "bilou": "LU", "iobes": "ES"}  # letters that no scheme further on has
_PREFIXED = re.compile(r"([BIESLUM])(?:-(.*))?", re.DOTALL)


@lru_cache(maxsize=65536)
def split_tag(tag: str) -> tuple[str, str]:
    """The letter, one of O B I E S, and the type; what has no prefix stands outside."""
    found = _PREFIXED.fullmatch(tag)
    if found is None:
        return OUTSIDE, ""
    return _SPELLINGS.get(found[1], found[1]), found[2] or ""


def read_spans(tags: Sequence[str], scheme: str) -> list[Span]:
    """The entities of a sentence, by the rules of the CoNLL shared tasks' script `conlleval`.

    They are the same for every scheme with prefixes, and give ill-formed tags a meaning too: an I of another type, or
    behind an O, begins an entity; one without its E ends where the next thing begins.
    """
    if scheme == "plain":
        return [(i, i + 1, tag) for i, tag in enumerate(tags)]
    spans, start = [], 0
    letter, kind = OUTSIDE, ""
    for i, tag in enumerate([*tags, OUTSIDE]):
        if scheme == "bare":
            next_letter, next_kind = (OUTSIDE, "") if tag == OUTSIDE else ("I", tag)
        else:
            next_letter, next_kind = split_tag(tag)
        parted = letter in "OES" or next_letter in "OBS" or kind != next_kind
        if parted and letter != OUTSIDE:
            spans.append((start, i, kind))
        if parted:
            start = i
        letter, kind = next_letter, next_kind
    return spans


def write_tags(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """The tags of a sentence of `length` words with these entities, which are in order and do not overlap."""
    tags = [OUTSIDE] * length
    last_end, last_kind = -1, ""
    for start, end, kind in spans:
        if scheme in ("bare", "plain"):
            tags[start:end] = [kind] * (end - start)
            continue
        first, inner, last, only = list(_LETTERS[scheme])
        letters = [only] if end - start == 1 else [first, *[inner] * (end - start - 2), last]
        if scheme == "iob1" and (start, kind) == (last_end, last_kind):
            letters[0] = "B"
        tags[start:end] = [f"{letter}-{kind}" if kind else letter for letter in letters]
        last_end, last_kind = end, kind
    return tags


def convert(tags: Sequence[str], source: str, target: str) -> list[str]:
    """Tags of one scheme in another; ill-formed ones come out well-formed, as conlleval understands them."""
    if (source == "plain") != (target == "plain"):
        raise BertsmithError(f"Tags cannot be turned from {source} into {target}: plain tags say nothing of entities.")
    return write_tags(read_spans(tags, source), len(tags), target)


def allowed(previous: str | None, following: str | None, scheme: str) -> bool:
    """Whether one tag may follow another in a well-formed sentence; None stands for its beginning or its end."""
    if scheme in ("iob", "io", "bare", "plain"):
        return True
    letter, kind = (OUTSIDE, "") if previous is None else split_tag(previous)
    next_letter, next_kind = (OUTSIDE, "") if following is None else split_tag(following)
    same = letter != OUTSIDE and kind == next_kind
    if scheme == "iob2":
        return next_letter != "I" or same
    if scheme == "iob1":
        return next_letter != "B" or same
    if letter in "BI":  # an entity that has not ended
        return next_letter in "IE" and same
    return next_letter in "OBS"


def guess_scheme(labels: Iterable[str]) -> str:
    """The scheme of a model's labels, which come without any sentence: where B and I are all, "iob"."""
    known = set(labels) - {OUTSIDE}
    prefixed = {tag for tag in known if _PREFIXED.fullmatch(tag)}
    if any("-" not in tag for tag in prefixed) and prefixed != known:
        prefixed = {tag for tag in prefixed if "-" in tag}  # a tag set of single letters: N, V, I …
    if 2 * len(prefixed) <= len(known):
        return "plain" if known == set(labels) else "bare" if known else "iob2"
    letters = {tag[0] for tag in prefixed}
    for scheme, telling in _TELLING.items():
        if letters & set(telling):
            return scheme
    return {"B": "iob2", "I": "io"}.get("".join(letters), "iob")


def find_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme of the tags of many sentences. iob1 and iob2 differ in how most entities begin."""
    sentences = [tags for tags in sentences if tags]
    known = {tag for tags in sentences for tag in tags}
    scheme = guess_scheme(known)
    if scheme not in ("plain", "bare"):
        _check_prefixes(known, scheme)
    if scheme != "iob":
        return scheme
    inside = begun = 0
    for tags in sentences:
        last_end, last_kind = -1, ""
        for start, end, kind in read_spans(tags, scheme):
            if (start, kind) != (last_end, last_kind):  # next to one of its type both schemes write B
                inside += tags[start][0] == "I"
                begun += tags[start][0] == "B"
            last_end, last_kind = end, kind
    return "iob1" if inside > begun else "iob2"


def _check_prefixes(known: set[str], scheme: str) -> None:
    odd = sorted(t for t in known - {OUTSIDE} if not (_PREFIXED.fullmatch(t) and t[0] in _LETTERS[scheme]))
    if odd:
        others = ", ".join(sorted(known - {OUTSIDE, *odd})[:3])
        raise BertsmithError(
            f'the tag "{odd[0]}" does not fit the others ({others}, …), which are {scheme}: correct it, '
            f'or set the scheme (one of {", ".join(SCHEMES)}; "plain" takes tags as they are).'
        )
