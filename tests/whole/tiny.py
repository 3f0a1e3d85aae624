"""A tiny pretrained encoder for roads that cross folders: two layers and a made vocabulary, saved by the reference."""

from pathlib import Path

import torch
import transformers
from tasks.made import LETTERS, PUNCTUATION, SQUARE

WORDS = (
    "the a an of is are was were in at on to and not very it this that who what where when film plot cast song book "
    "good bad fine dull great poor happy sad river town paris london oslo rome ann bob cyd dan eve lives works runs "
    "through sees met from sport news science match goal win vote law party star cell atom wave"
)


def pieces() -> list[str]:
    return [*SQUARE, *PUNCTUATION.split(), *LETTERS, *(f"##{letter}" for letter in LETTERS), *"0123456789",
            *(f"##{digit}" for digit in "0123456789"), *(word for word in WORDS.split() if len(word) > 1)]  # fmt: skip


def make_encoder(
    folder: Path, head: str = "Model", limit: int = 64, seed: int = 0, depth: int = 2, **settings: object
) -> Path:
    """A folder as `transformers` writes it; with a head such as "ForSequenceClassification", one that predicts."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = list(dict.fromkeys(pieces()))
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=limit).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=depth, num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=limit, initializer_range=0.1, **settings,
    )  # fmt: skip
    torch.manual_seed(seed)
    getattr(transformers, f"Bert{head}")(config).save_pretrained(folder)
    return folder


LIKED, DISLIKED = ("good", "great", "fine", "happy"), ("bad", "poor", "dull", "sad")
THINGS = ("film", "plot", "cast", "song", "book", "town")
PEOPLE, TOWNS = ("Ann", "Bob", "Cyd", "Dan", "Eve"), ("Oslo", "Rome", "Paris", "London", "New York")
TOPICS = {"sport": ("match", "goal", "win"), "politics": ("vote", "law", "party"), "science": ("atom", "cell", "wave")}


def reviews(start: str = "the") -> list[dict[str, str]]:
    """48 texts whose last word decides their label."""
    return [
        {"text": f"{start} {thing} was {word}", "label": label}
        for label, words in (("pos", LIKED), ("neg", DISLIKED))
        for word in words
        for thing in THINGS
    ]


def comparisons(thing: str = "film") -> list[dict[str, str]]:
    """32 pairs: which of two speaks better of a thing; swapped, they have the other label."""
    found = []
    for one in LIKED:
        for other in DISLIKED:
            good, bad = f"the {thing} was {one}", f"it was {other}"
            found.append({"premise": good, "hypothesis": bad, "label": "first"})
            found.append({"premise": bad, "hypothesis": good, "label": "second"})
    return found


def mixed_news(start: str = "this") -> list[dict[str, object]]:
    """Texts on none, one or two of three topics."""
    texts: list[dict[str, object]] = [{"text": f"{start} {thing} is in the {town}", "topics": []}
                                      for thing in ("song", "book") for town in ("river", "town")]  # fmt: skip
    for a, some in TOPICS.items():
        for b, others in TOPICS.items():
            for one, other in zip(some, others, strict=True):
                texts.append({"text": f"{start} {one} and {other}", "topics": sorted({a, b})})
    return texts


def sentences(verb: str = "lives") -> list[list[tuple[str, str]]]:
    """Words with their tags in IOB1: B- only where two names of one type touch."""
    found = []
    for person in PEOPLE:
        for town in TOWNS:
            place = [(word, "I-LOC") for word in town.split()]
            found.append([(person, "I-PER"), (verb, "O"), ("in", "O"), *place])
        found.append([("it", "O"), ("was", "O"), (person, "I-PER"), ("Bob", "B-PER"), ("met", "O")])
    return found


def as_conll(given: list[list[tuple[str, str]]]) -> str:
    return "\n".join("".join(f"{word} {tag}\n" for word, tag in sentence) for sentence in given)


def questions(impossible: bool = False, filler: int = 0) -> dict[str, object]:
    """SQuAD's JSON: who lives where; with `impossible` of some people it is not told; `filler` words before it."""
    paragraphs = []
    for i, person in enumerate(PEOPLE):
        for j, town in enumerate(TOWNS):
            context = "the song was very fine . " * (filler // 6) + f"{person} lives in {town} and works at the river ."
            right = [("who lives here", person), ("where is the town", town)][(i + j) % 2]
            asked = [{"id": f"q{i}{j}", "question": right[0], "is_impossible": False,
                      "answers": [{"text": right[1], "answer_start": context.index(right[1])}]}]  # fmt: skip
            if impossible:
                asked.append({"id": f"n{i}{j}", "question": "when was the match", "is_impossible": True, "answers": []})
            if not impossible:
                asked[0].pop("is_impossible")
            paragraphs.append({"context": context, "qas": asked})
    version = "v2.0" if impossible else "1.1"
    return {"version": version, "data": [{"title": "towns", "paragraphs": paragraphs}]}
