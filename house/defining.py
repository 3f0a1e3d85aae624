"""What a name is the name of, as the first sentence of its article says: "Visby BBK is a basketball club in Visby".

In: articles of an encyclopaedia. Out: names of more than one word or of a sure kind, each a person, a place, an
organization, or none of these (a film, a language, a war). The noun that the sentence ends on before it goes into
details decides; nouns that may mean two kinds (a group of people or of islands) decide nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

Name = tuple[str, ...]
NONE = "O"  # a name, and of none of the kinds that are tagged

WORD = r"[^\W\d_a-z][\w.'’&-]*"
JOINT = r"(?:of|the|de|van|von|and|la|du|der|al|for|in|on|&)"
DEFINED = re.compile(
    rf"(?:The )?(?P<name>{WORD}(?: (?:{JOINT} )*{WORD})*)(?: ?\((?P<aside>[^)]*)\))?(?:,[^,]{{0,60}},)?"
    r" (?:is|was|are|were) (?:a|an|the|one of the) (?P<what>[^.,;()]{2,120})"
)
DETAILS = """
in of for from who that which on at to with by and near born known located based between used made about where whose
when or is was as under within since during found written played formed released best named part spoken directed
created set produced founded built developed designed published held owned given started
"""
PEOPLE = """
politician actress actor player singer writer composer musician artist poet director author wrestler footballer
journalist painter singer-songwriter comedian businessman businesswoman lawyer activist president king physicist
winger defenceman driver philosopher historian athlete mathematician novelist general goaltender minister scientist
swimmer engineer producer economist sportscaster diplomat priest guitarist soldier rapper dancer biologist conductor
architect designer cyclist boxer coach senator chemist physician skier pianist professor astronomer scholar
grandmaster doctor statesman presenter cricketer screenwriter inventor explorer playwright cleric academic judge
photographer skater queen founder cartoonist attorney quarterback nobleman psychologist supercentenarian educator
critic bishop executive forward teacher violinist emperor biochemist drummer entrepreneur premier sailor sculptor
broadcaster editor racer pilot surgeon filmmaker theologian governor commander ruler geneticist sociologist zoologist
runner chef soprano songwriter bushranger entertainer linguist golfer criminal organist animator personality officer
anthropologist archaeologist saxophonist trumpeter bassist banker publisher midfielder defender striker goalkeeper
sprinter jumper gymnast
"""
PLACES = """
city town village municipality commune country state province region district county river lake mountain island
peninsula capital suburb neighborhood neighbourhood continent sea ocean desert valley park stadium airport bridge
castle cathedral volcano borough canton hamlet settlement archipelago islands territory kingdom republic locality
rayon bay coast glacier nation canal prefecture parish
"""
ORGANIZATIONS = """
band club team company university college school party organization organisation airline newspaper network channel
agency association manufacturer orchestra label chain institution federation bank institute ministry corporation
publisher retailer charity union army dansband franchise colleges conglomerate subsidiary brewery bookmaker
"""
OTHERS = """
movie album game series book show novel song film language genus species aircraft opera painting battle war disease
car element mineral sport hurricane storm sitcom award treaty holiday play musical poem anthem magazine tournament
competition festival order family constellation dinosaur breed cyclone ballet ep single suv religion
"""
BEHIND = frozenset(DETAILS.split())
KINDS = {noun: kind for kind, nouns in {"PER": PEOPLE, "LOC": PLACES, "ORG": ORGANIZATIONS, NONE: OTHERS}.items()
         for noun in nouns.split()}  # fmt: skip
BORN = re.compile(r"\bborn\b|\d{3,4}\s*[-–—]\s*.*\d{3,4}")  # "(10 March 1892 – 27 November 1955)"
POINTING = frozenset(("It", "He", "She", "This", "That", "They", "These", "There", "A", "An", "In"))
EVENTS = frozenset(("War", "Wars", "Battle", "Revolution", "Empire", "Dynasty", "Rebellion", "Siege"))

# Parts of a name that tell its kind wherever it stands.
ORG_LAST = """
University College Party Company Corporation Corp. Inc. Ltd. Association Federation Committee Commission Institute
Orchestra Airlines Airways Agency Foundation Society FC F.C. Records Pictures Studios Entertainment Ministry Motors
Industries Bank Congress Council Organization Organisation Union League Court
"""
LOC_LAST = """
River County Lake Island Islands Mountains Street Avenue Bay Valley Peninsula Province Airport Park Sea Ocean Beach
Bridge Desert Creek Canal Forest
"""
LAST = {"ORG": frozenset(ORG_LAST.split()), "LOC": frozenset(LOC_LAST.split())}
FIRST = {
    "ORG": frozenset(("University", "Ministry", "Bank", "Institute", "Department", "Association", "Federation")),
    "LOC": frozenset(("Lake", "Mount", "Cape", "Gulf", "Isle", "Bay", "Strait")),
}


def find_defined(sentence: str) -> tuple[Name, str] | None:
    """The name that a sentence defines, and its kind; None where either is not sure."""
    found = DEFINED.match(sentence)
    if not found:
        return None
    name = tuple(found["name"].split())
    if name[0] in POINTING:
        return None
    what = []
    for word in found["what"].split():
        if word.lower() in BEHIND:
            break
        what.append(word.lower())
    kind = KINDS.get(what[-1]) if what else None
    lived = found["aside"] and BORN.search(found["aside"]) and not EVENTS.intersection(name)
    if lived and 1 < len(name) < 5 and kind not in ("LOC", "ORG"):  # "an English film, stage and television actor"
        kind = "PER"
    if kind is None or (kind == NONE and len(name) == 1):  # "Rocks" is an album, and seldom meant
        return None
    return name, kind


def learn_kinds(sentences: Iterable[str]) -> dict[Name, str]:
    """Of the first sentences of articles; a name that is defined as two kinds is none."""
    kinds: dict[Name, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        if found := find_defined(sentence):
            kinds[found[0]][found[1]] += 1
    return {name: next(iter(found)) for name, found in kinds.items() if len(found) == 1}


SHORTENED = re.compile(rf"(?P<name>{WORD}(?: (?:{JOINT} )*{WORD})+) \((?P<short>[A-Z]{{2,6}})\)")


def learn_short_forms(text: str, kinds: dict[Name, str]) -> Iterator[tuple[Name, str]]:
    """ "National Hockey League (NHL)": the letters are of the kind that the whole name is."""
    for found in SHORTENED.finditer(text):
        words = [word for word in found["name"].split() if word[0].isupper()]
        size = len(found["short"])
        if "".join(word[0] for word in words[-size:]) == found["short"]:
            at = found["name"].split().index(words[-size])
            name = tuple(found["name"].split()[at:])
            if kind := kinds.get(name) or tell_by_parts(name):
                yield (found["short"],), kind


def tell_by_parts(name: Name) -> str | None:
    """ "Lake Victoria", "National University of Singapore", "Holmes County"."""
    joints = {word for word in name if not word[0].isupper()}
    if len(name) < 2 or not joints <= {"of", "the"}:
        return None
    head = name[: name.index("of")] if "of" in name else name
    if head and head[-1] in LAST["ORG"] and (len(head) > 1 or head[0] in FIRST["ORG"]):
        return "ORG"
    if not joints and name[-1] in LAST["LOC"]:
        return "LOC"
    return next((kind for kind, words in FIRST.items()
                 if name[0] in words and (kind == "LOC" or (len(name) > 2 and name[1] == "of"))), None)  # fmt: skip
