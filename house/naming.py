"""Whole sentences with names, for the tagger: WikiANN's examples are headings and fragments, and a head that has seen
nothing else finds an organization in every second plain sentence.

In: WikiANN's files and raw text. Out: CoNLL lines. A sentence is taken when every capital in it is explained: each run
of capitalized words is a name that WikiANN knows as one kind only, a given name and a surname of its people, a word
that text usually writes small (at the sentence's beginning), or a word of a short list (days, months, peoples). All
other sentences are left out, so what is not marked is no name.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bertsmith.text.sentences import split_sentences
from bertsmith.text.sources import list_sources, read_documents

PIECE = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*\.?(?<!\w{3}\.)|\d+(?:[.,]\d+)*|[^\w\s]|\w+")
JOINTS = {"of", "the", "de", "van", "von", "and", "la", "du", "der", "al", "for", "in", "on"}
NO_NAMES = """
I Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September
October November December American British English French German Italian Spanish Russian Chinese Japanese Indian Roman
Greek Latin Dutch Swedish Norwegian Danish Polish Portuguese Turkish Arabic Arab African European Asian Australian
Canadian Irish Scottish Welsh Austrian Hungarian Czech Egyptian Persian Korean Mexican Brazilian Swiss Belgian Finnish
Jewish Christian Catholic Protestant Muslim Islamic Buddhist Hindu Soviet Nazi Americans Germans Romans Greeks Jews
Christians Muslims Europeans Africans Mr Mrs Dr Ms Sir Mr. Mrs. Dr. Ms. President Prime Minister King Queen Prince
Princess Lord Lady Emperor General Bible Christmas Easter Sun Moon Earth Senate Parliament Governor Internet DVD CD TV
God Pope
"""
PLAIN = frozenset(NO_NAMES.split())
OPENERS = frozenset(
    ["In", "The", "On", "At", "From", "By", "To", "For", "With", "And", "But", "When", "After", "Before", "While", "As",
     "His", "Her", "Its", "Their", "This", "During", "Since", "Until", "Although", "Both", "If", "Because", "Then"]
)  # fmt: skip
LONG, SHORT, LONGEST_NAME = 40, 6, 6
USUAL = 200  # times that a word must stand small in the text to be no name where a sentence begins with it
Tagged = list[tuple[str, str]]


def read_tagged(path: Path) -> Iterator[Tagged]:
    """Sentences of words and tags; the mark of the language before each word ("en:Paris") goes."""
    rows: Tagged = []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.strip():
            word, tag = line.removeprefix("en:").rsplit("\t", 1)
            rows.append((word, tag.strip()))
        elif rows:
            yield rows
            rows = []


def list_names(sentences: Iterable[Tagged]) -> Iterator[tuple[tuple[str, ...], str]]:
    for rows in sentences:
        name: list[str] = []
        kind = ""
        for word, tag in [*rows, ("", "O")]:
            if name and not tag.startswith("I-"):
                yield tuple(name), kind
                name = []
            if tag.startswith("B-"):
                name, kind = [word], tag[2:]
            elif name:
                name.append(word)


@dataclass
class Known:
    """What WikiANN's names say about capitals."""

    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    family: set[str] = field(default_factory=set)

    @classmethod
    def learn(cls, sentences: Iterable[Tagged]) -> "Known":
        kinds: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for name, kind in list_names(sentences):
            kinds[name][kind] += 1
        names = {name: sure for name, found in kinds.items()
                 if is_name(name) and (sure := settle(found, 1 if len(name) > 1 else 2))}  # fmt: skip
        people = [name for name, kind in names.items() if kind == "PER" and 1 < len(name) < 4]
        others = {word for name, kind in names.items() if kind != "PER" for word in name} | PLAIN
        given, family = Counter(name[0] for name in people), Counter(name[-1] for name in people)
        return cls(names, {word for word, count in given.items() if count > 1 and word not in others},
                   {word for word, count in family.items() if count > 1 and word not in others})  # fmt: skip

    def kind(self, run: tuple[str, ...]) -> str | None:
        """PER, LOC, ORG, or None: not known."""
        if found := self.names.get(run):
            return found
        if len(run) in (2, 3) and run[0] in self.given and run[-1] in self.family and run[1][0].isupper():
            return "PER"
        return "PER" if len(run) == 1 and run[0] in self.family | self.given else None


def settle(found: Counter[str], least: int) -> str | None:
    """The kind that a name is, if it is nearly always that: countries are teams now and then."""
    kind, count = found.most_common(1)[0]
    return kind if count >= least and (count == found.total() or (count > 4 and count >= 0.8 * found.total())) else None


def is_name(name: tuple[str, ...]) -> bool:
    return name[0][0].isupper() and name[-1][0].isupper() and all(
        word[0].isupper() or word in JOINTS for word in name) and name[0] not in PLAIN and len(name[0]) > 1  # fmt: skip


def explain(words: list[str], known: Known, small: Counter[str]) -> list[str] | None:
    """A tag for each word, or None: there is a capital that nothing explains."""
    tags = ["O"] * len(words)
    at = 0
    while at < len(words):
        if not words[at][0].isupper():
            at += 1
            continue
        rest = len(words) - at
        long = next((n for n in range(min(LONGEST_NAME, rest), 0, -1)
                     if words[at + n - 1][0].isupper() and (n == rest or not words[at + n][0].isupper())
                     and known.kind(tuple(words[at : at + n]))), 0)  # fmt: skip
        if long and not (at == 0 and long == 1 and small[words[0].lower()]):
            kind = known.kind(tuple(words[at : at + long]))
            tags[at : at + long] = [f"B-{kind}"] + [f"I-{kind}"] * (long - 1)
            at += long
        elif words[at] in PLAIN or (at == 0 and small[words[0].lower()] > USUAL and is_open(words)):
            at += 1
        else:
            return None
    return tags


def is_open(words: list[str]) -> bool:
    """Whether the first word is none of a name: "In Paris", but not "Northern Ontario"."""
    return words[0] in OPENERS or not words[1][0].isupper()


def gather_names(files: Iterable[Path], text: Path, count: int, seed: int = 1) -> list[Tagged]:
    """As many sentences as asked for: a third has no name, and those that name more than places come first.

    Of those without a name each second one is cut to a few words: all of WikiANN's fragments have a name, and a head
    that learnt from them alone finds one in every heading.
    """
    known = Known.learn(rows for file in files for rows in read_tagged(file))
    sentences = []
    small: Counter[str] = Counter()
    for document in read_documents(list_sources(text)):
        for sentence in split_sentences(document.text[:20_000]):
            words = PIECE.findall(sentence)
            small.update(word for word in words if word[0].islower())
            if SHORT <= len(words) <= LONG and words[-1] in ".?!":
                sentences.append(words)
    random.Random(seed).shuffle(sentences)
    named: list[Tagged] = []
    bare: list[Tagged] = []
    for words in sentences:
        tags = explain(words, known, small)
        if tags is not None:
            (bare if set(tags) == {"O"} else named).append(list(zip(words, tags, strict=True)))
    named.sort(key=lambda rows: all(tag in ("O", "B-LOC", "I-LOC") for _, tag in rows))
    chance, few = random.Random(seed), bare[: count // 3]
    for rows in few[::2]:
        long = chance.randint(1, min(7, len(rows)))
        start = chance.randrange(len(rows) - long + 1)
        rows[:] = rows[start : start + long]
    return [*named[: count - count // 3], *few]
