"""Text is cut into sentences by rules that know scripts, not languages. In: a text. Out: its sentences.

Nothing is lost or changed: the sentences joined are the text. A line end always ends a sentence. A full stop ends one
where white space and what may begin a sentence follow, unless an abbreviation, an initial or an ordinal stands before
it; the marks of Chinese, Japanese, Arabic, Indic and other scripts end one by themselves.
"""

import re
from functools import lru_cache

_CLOSING = "\"'”’»›)\\]}」』）】》"
_OPENING = re.compile("[\"'“‘«‹(\\[{¿¡„‚—–-]*")
_STOPS = ".!?…‼⁇⁈⁉"
# Marks that end a sentence without a space behind them; between two digits they are part of a number.
_OWN_MARKS = "。！？｡।॥؟۔։።፧။៕᠃᠉꓿︒"
_NOT_NEXT = ",;:)\\]}»”%&/=<>*+"


def _compile(stops: str, own: str, letters: str) -> re.Pattern[str]:
    # All branches behind one set of characters: the engine then looks for a member of the set, which is fast.
    following = f"[ \\t\\u3000\\xa0]+(?=[^\\s{letters}{_NOT_NEXT}])"
    branches = [f"(?<=[{stops}])[{stops}]*[{_CLOSING}]*{following}", "(?<=\\n)\\n*"]
    if own:
        branches.append(f"(?<=[{own}])[{own}]*[{_CLOSING}]*[ \\t\\u3000]*\\n*")
    return re.compile(f"[{stops}{own}\\n](?:{'|'.join(branches)})")


# By whether the text is ASCII, and whether it has capital letters: without them the next letter tells nothing.
_ENDS = {
    (True, True): _compile(".!?", "", "a-z"), (True, False): _compile(".!?", "", ""),
    (False, True): _compile(_STOPS, _OWN_MARKS, "a-z"), (False, False): _compile(_STOPS, _OWN_MARKS, ""),
}  # fmt: skip
# They stand before a name, a number or an example and so do not end a sentence.
_BEFORE_MORE = (
    "mr mrs ms mx dr prof rev fr sr hon gov sen lt maj capt cpt sgt cmdr adm pres st ste mt mme mlle e.g i.e eg ie "
    "cf vs v viz fig figs nos nr vol vols pp p para chap eq approx ca c circa b d r op esp z.b d.h u.a bzw vgl abb "
    "bd hrsg hr frl dipl ing sra srta ud uds av c.à.d p.ex resp dept univ assn bros messrs jan feb apr aug sept oct "
    "nov dec г ул им т.е рис"
)
# They end a sentence only where one clearly begins behind them.
_PERHAPS = (
    "etc al inc ltd co corp llc plc jr esq a.m p.m am pm ph.d m.d b.a m.a u.s u.k u.n d.c bc ad ed eds trans gen "
    "col rep ft mm mar jun jul sep est art sec ch usw т.д стр"
)
_BEGINS = (
    "the a an in on at it its he she they we you i his her their this that these those there but and or so if when "
    "while after before as for from to by with no not what who how why where since however although also then der "
    "die das ein eine er sie es wir ich und aber le la les un une il elle ils el los las una"
)
_NEVER, _SELDOM, _FIRST_WORDS = (frozenset(words.split()) for words in (_BEFORE_MORE, _PERHAPS, _BEGINS))
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_LOOK_BACK = 24


def split_sentences(text: str) -> list[str]:
    """The sentences, each with the white space behind it."""
    ends = sentence_ends(text)
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def sentence_ends(text: str) -> list[int]:
    """Where each sentence ends, the white space behind it included; the last is the length of the text."""
    ends = []
    begun = 0
    is_low = text.islower()  # asked once: it reads the whole text
    for found in _ENDS[text.isascii(), not is_low].finditer(text):
        start, end = found.span()
        mark = text[start]
        if end < len(text) and (text[end - 1] == "\n" or _is_end(text, begun, start, end, mark, is_low)):
            ends.append(end)
            begun = end
    if text:
        ends.append(len(text))
    return ends


def _is_end(text: str, begun: int, start: int, end: int, mark: str, is_low: bool) -> bool:
    if mark in _OWN_MARKS:
        return not (start > 0 and text[start - 1].isdigit() and text[end].isdigit())
    following = _OPENING.match(text, end)
    after = text[following.end()] if following is not None and following.end() < len(text) else ""
    lower = after.islower()
    if mark != "." or text[start + 1] == ".":  # ! ? … and three full stops
        return not lower or is_low
    word = text[max(begun, start - _LOOK_BACK) : start]
    word = word[max(word.rfind(" "), word.rfind("\xa0"), word.rfind("\n")) + 1 :].lstrip("\"'“‘«‹([{¿¡„‚—–-")
    return _may_end(word, _next_word(text, end), start - len(word) <= begun) and (not lower or len(word) > 2)


def _next_word(text: str, end: int) -> str:
    stop = text.find(" ", end)
    return text[end : min(stop if stop >= 0 else len(text), end + 12)]


@lru_cache(maxsize=1 << 16)
def _may_end(word: str, following: str, is_first: bool) -> bool:
    """Whether a full stop behind `word` ends a sentence when `following` begins the next."""
    low = word.lower()
    begins = following.strip("\"'“‘«(,").lower() in _FIRST_WORDS
    if low in _NEVER or (low == "no" and following[:1].isdigit()):
        return False
    if word.isdigit():  # "3. The list", "am 3. Oktober", but "in 1979. Then"
        return not is_first and (len(word) > 2 or begins)
    if low in _SELDOM or _INITIALS.fullmatch(word):
        return begins and not (is_first and len(word) == 1)
    return True
