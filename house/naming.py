"""Whole sentences with names, for the tagger: WikiANN's examples are headings and fragments, and a head that has seen
nothing else finds an organization in every second plain sentence.

In: WikiANN's files, raw text and questions. Out: CoNLL lines. A sentence is taken when every capital in it is
explained: each run of capitalized words is a name that WikiANN knows as one kind only or that an article defines
(`defining`), a given name and a surname of their people, the surname of the person that the article is about, a word
that text usually writes small (at the sentence's beginning), or a word of a short list (days, months, peoples). All
other sentences are left out, so what is not marked is no name.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from defining import NONE, find_defined, learn_kinds, learn_short_forms, tell_by_parts

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
READ = 20_000  # characters of a document
SHARES = {"ORG": 0.5, "PER": 0.3, "LOC": 0.2}  # of the sentences with names: the first of these kinds that one has
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
    """What WikiANN's names and the articles' definitions say about capitals."""

    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    family: set[str] = field(default_factory=set)

    @classmethod
    def learn(cls, sentences: Iterable[Tagged], defined: dict[tuple[str, ...], str]) -> "Known":
        kinds: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for name, kind in list_names(sentences):
            kinds[name][kind] += 1
        names = {name: sure for name, found in kinds.items()
                 if is_name(name) and (sure := settle(found, 1 if len(name) > 1 else 2))}  # fmt: skip
        names |= {name: kind for name, kind in defined.items() if is_name(name)}  # not the team that WikiANN may mean
        people = [name for name, kind in names.items() if kind == "PER" and 1 < len(name) < 4]
        others = {word for name, kind in names.items() if kind != "PER" for word in name} | PLAIN
        given, family = Counter(name[0] for name in people), Counter(name[-1] for name in people)
        return cls(names, {word for word, count in given.items() if count > 1 and word not in others},
                   {word for word, count in family.items() if count > 1 and word not in others})  # fmt: skip

    def kind(self, run: tuple[str, ...]) -> str | None:
        """PER, LOC, ORG, O, or None: not known."""
        if found := self.names.get(run) or (run[0] not in OPENERS and tell_by_parts(run)):
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


def explain(words: list[str], known: Known, small: Counter[str], about: str = "") -> list[str] | None:
    """A tag for each word, or None: there is a capital that nothing explains. `about`: the surname of the person whom
    all of the text is about."""
    tags = ["O"] * len(words)
    at = 0
    while at < len(words):
        if not words[at][0].isupper():
            at += 1
            continue
        long, kind = find_name(words[at:], known, about)
        if long and not (at == 0 and long == 1 and small[words[0].lower()]):
            if kind != NONE:
                tags[at : at + long] = [f"B-{kind}"] + [f"I-{kind}"] * (long - 1)
            at += long
        elif words[at] in PLAIN or (at == 0 and small[words[0].lower()] > USUAL and is_open(words)):
            at += 1
        else:
            return None
    return tags


def find_name(words: list[str], known: Known, about: str) -> tuple[int, str]:
    """How many of the words are a name, and its kind; (0, ""): none that is known begins here."""
    for long in range(min(LONGEST_NAME, len(words)), 0, -1):
        is_whole = words[long - 1][0].isupper() and (long == len(words) or not words[long][0].isupper())
        if is_whole and (kind := known.kind(tuple(words[:long]))):
            return long, kind
    return (1, "PER") if words[0] == about and (len(words) == 1 or not words[1][0].isupper()) else (0, "")


def is_open(words: list[str]) -> bool:
    """Whether the first word is none of a name: "In Paris", but not "Northern Ontario"."""
    return words[0] in OPENERS or not words[1][0].isupper()


@dataclass
class Texts:
    """What raw text gives: sentences, each with the surname of the person that its article is about; definitions."""

    sentences: list[tuple[list[str], str]] = field(default_factory=list)
    small: Counter[str] = field(default_factory=Counter)  # how often a word stands without a capital
    kinds: dict[tuple[str, ...], str] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Iterable[Path], questions: Iterable[str] = ()) -> "Texts":
        found, firsts, whole = cls(), [], []
        for place, question in enumerate(questions):  # people ask with and without its mark
            words = PIECE.findall(question.rstrip("? ") if place % 2 else question)
            found.sentences += [(words, "")] if SHORT <= len(words) <= LONG else []
        for document in read_documents(list_sources(list(paths))):
            text = document.text[:READ]
            defined = find_defined(text.split("\n", 1)[0])
            about = defined[0][-1] if defined and defined[1] == "PER" and len(defined[0]) > 1 else ""
            firsts.append(text.split("\n", 1)[0])
            whole.append(text)
            for sentence in split_sentences(text):
                words = PIECE.findall(sentence)
                found.small.update(word for word in words if word[0].islower())
                if SHORT <= len(words) <= LONG and words[-1] in ".?!":
                    found.sentences.append((words, about))
        kinds = learn_kinds(firsts)
        votes: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for text in whole:
            for name, kind in learn_short_forms(text, kinds):
                votes[name][kind] += 1
        kinds |= {name: sure for name, some in votes.items() if (sure := settle(some, 2))}
        # A word that is usually written small ("Muse", a band) is seldom the name where it is not.
        found.kinds = {name: kind for name, kind in kinds.items() if len(name) > 1 or found.small[name[0].lower()] < 5}
        return found


def gather_names(
    files: Iterable[Path], texts: Iterable[Path], count: int, questions: Iterable[str] = (), seed: int = 1
) -> list[Tagged]:
    """As many sentences as asked for: a third has no name, and of the others each second one an organization.

    Questions are sentences of their own kind: "What is the capital of France" was taken for the name of a place. Of
    those without a name each second one is cut to a few words: all of WikiANN's fragments have a name, and a head
    that learnt from them alone finds one in every heading.
    """
    text = Texts.read(texts, questions)
    known = Known.learn((rows for file in files for rows in read_tagged(file)), text.kinds)
    random.Random(seed).shuffle(text.sentences)
    bare: list[Tagged] = []
    named: dict[str, list[Tagged]] = {kind: [] for kind in SHARES}
    for words, about in text.sentences:
        tags = explain(words, known, text.small, about)
        if tags is not None:
            kind = next((kind for kind in SHARES if f"B-{kind}" in tags), None)
            (named[kind] if kind else bare).append(list(zip(words, tags, strict=True)))
    chance, few = random.Random(seed), bare[: count // 3]
    for rows in few[::2]:
        long = chance.randint(1, min(7, len(rows)))
        start = chance.randrange(len(rows) - long + 1)
        rows[:] = rows[start : start + long]
    wanted = count - count // 3
    return [*few, *(rows for kind, some in named.items() for rows in some[: round(SHARES[kind] * wanted)])]
