"""The doctor for words with tags: which scheme the tags follow, where they break it, what they tag.

In: TagExamples of train and dev. Out: facts and findings. The schemes are those of schemes.py.
"""

import re
from collections import Counter
from collections.abc import Sequence

from bertsmith.data.doctor_labels import Labels, balance_facts, report_balance, report_strays, report_typos
from bertsmith.data.doctor_shared import report_empty, report_overlap, report_repeats, report_signs, report_unknown
from bertsmith.data.examples import TagExample
from bertsmith.data.findings import Diagnosis, counted, quoted, share
from bertsmith.data.schemes import OUTSIDE, find_odd, find_openings, find_scheme, split_tag

UNMARKED = ("plain", "bare")
UNSEEN = 0.01  # of dev's tags: real corpora hold a few types that their train part lacks
LONG_WORD = 100  # characters
ONE_SENTENCE = 1000  # words in the only sentence of a file: its blank lines are missing


def examine_tags(diagnosis: Diagnosis, train: Sequence[TagExample], dev: Sequence[TagExample] | None) -> None:
    """All findings on words and tags, and the facts of both sides."""
    sides = {"train": train} if dev is None else {"train": train, "dev": dev}
    scheme = find_scheme([e.tags for e in train if e.tags], strict=False)
    types = {}
    for side, examples in sides.items():
        report_empty(diagnosis, examples, [e.text for e in examples], side, "sentence")
        report_signs(diagnosis, examples, [e.text for e in examples])
        known = [e for e in examples if e.tags is not None]
        report_unknown(diagnosis, [e for e in examples if e.tags is None], side, "tags")
        _report_words(diagnosis, examples)
        types[side] = Labels.count(known, [_types(e.tags or (), scheme) for e in known])
        bare = sum(not any(tag != OUTSIDE for tag in e.tags or ()) for e in known)
        words = sum(len(e.spans) for e in examples)
        tags = [tag for e in known for tag in e.tags or ()]
        diagnosis.facts[side] |= {"words": words, "untagged_sentences": bare, **balance_facts(types[side], tags)}
    diagnosis.facts["scheme"] = scheme
    full = [e for e in train if e.text.strip()]
    report_repeats(diagnosis, full, [key(e) for e in full], [e.tags for e in full], "sentence", "tags")
    if dev:
        report_overlap(diagnosis, [key(e) for e in train], dev, [key(e) for e in dev], "sentence")
    if any(e.tags for e in train):
        _report_scheme(diagnosis, [e for e in train if e.tags], scheme)
        _report_types(diagnosis, types["train"], types.get("dev"), scheme)


def key(example: TagExample) -> tuple[str, ...]:
    """What makes two examples the same sentence."""
    return tuple(example.words)


def compare_types(diagnosis: Diagnosis, train: Sequence[TagExample], other: Sequence[TagExample], side: str) -> None:
    """Types of another side that train never shows, and the reverse."""
    scheme = diagnosis.facts["scheme"]
    known = [[e for e in examples if e.tags is not None] for examples in (train, other)]
    taught, asked = (Labels.count(some, [_types(e.tags or (), scheme) for e in some]) for some in known)
    if taught.counts and asked.counts:
        noun = "tag" if scheme in UNMARKED else "type"
        report_strays(diagnosis, taught, asked, noun, tolerated=UNSEEN, side=side)


def _types(tags: Sequence[str], scheme: str) -> list[str]:
    """What a sentence's tags name: the type of each chunk's words, O left out; every tag where tags are plain."""
    return list(tags) if scheme in UNMARKED else [split_tag(tag)[1] or tag for tag in tags if tag != OUTSIDE]


def _report_scheme(diagnosis: Diagnosis, examples: Sequence[TagExample], scheme: str) -> None:
    """Tags that break the scheme that most of them follow."""
    sentences = [e.tags or () for e in examples]
    if scheme in ("iob1", "iob2"):
        wrong = "I" if scheme == "iob2" else "B"
        broken = [number for number, kind in find_openings(sentences) if kind == wrong]
        if broken:
            chunks = counted(len(broken), "chunk")
            what = f"I- begins {chunks}" if wrong == "I" else f"B- begins {chunks} right after none of the same type"
            rule = "B- begins every chunk" if wrong == "I" else "I- begins a chunk"
            rows = [examples[number] for number in dict.fromkeys(broken)]
            diagnosis.add("warning", f"the tags look like {scheme} ({rule}), but {what}", rows)
    known = Counter(tag for tags in sentences for tag in tags)
    if scheme in UNMARKED:
        joined = [tag for tag in known if re.match("[BIES]_.", tag)]
        if 2 * len(joined) > len(known):
            diagnosis.add("warning", f"tags such as {quoted(joined[:1])} are taken as names; to mark chunks write "
                          f'"{joined[0].replace("_", "-", 1)}"', examples[:1])  # fmt: skip
        return
    odd = find_odd(known, scheme)
    if odd:
        bare = [tag for tag in odd if split_tag(tag)[0] == OUTSIDE]
        what = f"{'has' if len(odd) == 1 else 'have'} no prefix" if bare == odd else "cannot be in it"
        hint = ": is a B- or I- missing?" if bare == odd else ""
        hint = ": the letter O may be meant" if {"0", "o"} & set(bare) else hint
        rows = [e for e in examples if not set(odd).isdisjoint(e.tags or ())]
        diagnosis.add("error", f"the tags look like {scheme}, but {quoted(odd)} {what}{hint}", rows)


def _report_types(diagnosis: Diagnosis, train: Labels, dev: Labels | None, scheme: str) -> None:
    noun = "tag" if scheme in UNMARKED else "type"
    if not train.counts or set(train.counts) == {OUTSIDE}:
        diagnosis.add("error", "every word has the tag O: there is nothing to learn; is this the right column?",
                      train.examples[:1])  # fmt: skip
        return
    if scheme in UNMARKED and len(train.counts) == 1:
        report_balance(diagnosis, train, noun)
        return
    few = [label for label, count in train.balance.items() if count < 5]
    if few:
        diagnosis.add("note", f"{counted(len(few), noun)} on fewer than 5 words of train: {quoted(few)}",
                      train.bearers(few))  # fmt: skip
    bare = diagnosis.facts["train"]["untagged_sentences"]
    if bare > 0.5 * len(train.examples):
        diagnosis.add("note", f"{share(bare, len(train.examples))} of the sentences have no tag but O")
    report_typos(diagnosis, train, noun)
    if dev and dev.counts:
        report_strays(diagnosis, train, dev, noun, tolerated=UNSEEN)


def _report_words(diagnosis: Diagnosis, examples: Sequence[TagExample]) -> None:
    """Words that are no words, and sentences that were never separated."""
    wordless = [e for e in examples if not e.spans and e.text.strip()]
    if wordless:
        diagnosis.add("warning", f"{counted(len(wordless), 'sentence')} without a word", wordless)
    if len(examples) == 1 and len(examples[0].spans) >= ONE_SENTENCE:
        diagnosis.add("error", f"all {len(examples[0].spans):,} words are one sentence: put a blank line between "
                      f"sentences", examples)  # fmt: skip
    long = [e for e in examples if any(end - start > LONG_WORD for start, end in e.spans)]
    if long:
        diagnosis.add("note", f"{counted(len(long), 'sentence')} with a word of more than {LONG_WORD} characters", long)
