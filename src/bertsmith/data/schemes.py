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
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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


def guess_scheme(tags: Iterable[str]) -> str:
    """The scheme of a model's labels, or of all tags of a corpus, in any order: where B and I are all, "iob".

    Prefixes count where most kinds of tags have one, and where most tags have: neither a few misspelt kinds nor one
    that stands on every other word hides those of the rest.
    """
    counts = Counter(tags)
    known = counts.keys() - {OUTSIDE}
    prefixed = {tag for tag in known if _PREFIXED.fullmatch(tag)}
    if any("-" not in tag for tag in prefixed) and prefixed != known:
        prefixed = {tag for tag in prefixed if "-" in tag}  # a tag set of single letters: N, V, I …
    places = sum(counts[tag] for tag in prefixed)
    if 2 * len(prefixed) <= len(known) and 2 * places <= sum(counts[tag] for tag in known):
        return "plain" if OUTSIDE not in counts else "bare" if known else "iob2"
    letters = {tag[0] for tag in prefixed}
    for scheme, telling in _TELLING.items():
        if letters & set(telling):
            return scheme
    return {"B": "iob2", "I": "io"}.get("".join(letters), "iob")


def find_scheme(sentences: Iterable[Sequence[str]], strict: bool = True) -> str:
    """The scheme of the tags of many sentences; `strict` refuses one that does not fit the others.

    iob1 and iob2 differ in how most entities begin, where both are possible.
    """
    sentences = list(sentences)
    scheme = guess_scheme(tag for tags in sentences for tag in tags)
    odd = find_odd((tag for tags in sentences for tag in tags), scheme) if strict else []
    if odd:
        known = {tag for tags in sentences for tag in tags}
        others = ", ".join(sorted(known - {OUTSIDE, *odd})[:3])
        raise BertsmithError(
            f'the tag "{odd[0]}" does not fit the others ({others}, …), which are {scheme}: correct it, '
            f'or set the scheme (one of {", ".join(SCHEMES)}; "plain" takes tags as they are).'
        )
    if scheme != "iob":
        return scheme
    openings = Counter(how for _, how in find_openings(sentences))
    return "iob1" if openings["I"] > openings["B"] else "iob2"


def find_openings(sentences: Iterable[Sequence[str]]) -> Iterator[tuple[int, str]]:
    """(sentence, how) of every entity: "I" begun with I, "B" with B where I would do, "BB" where it must be B."""
    for number, tags in enumerate(sentences):
        before = None
        for tag in tags:
            letter, kind = split_tag(tag)
            if letter == "B":
                yield number, "BB" if before == kind else "B"
            elif letter == "I" and before != kind:
                yield number, "I"
            before = kind if letter in "BI" else None


def find_odd(tags: Iterable[str], scheme: str) -> list[str]:
    """The kinds of tags that a scheme does not have, sorted."""
    if scheme in ("plain", "bare"):
        return []
    letters = "BI" if scheme == "iob1" else _LETTERS[scheme]
    kinds = sorted(set(tags) - {OUTSIDE})
    return [tag for tag in kinds if not (_PREFIXED.fullmatch(tag) and tag[0] in letters)]
