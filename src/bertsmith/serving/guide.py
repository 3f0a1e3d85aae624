"""What helps people to begin with a job: more examples, and which model can do it where none that is served can.

Out: rows by the job's name, for `GET /v1/jobs` and the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Need:
    words: str  # which model can do it
    command: str  # that serves one
    head: bool = True  # whether it takes more than an encoder; else a base does it that has adapters of several kinds


def _tune(task: str, folder: str, train: str) -> str:
    return f"bertsmith finetune --task {task} --train {train} --out {folder} && bertsmith serve --model {folder}"


_ANY = Need("Every model can do this.", "bertsmith serve", head=False)
_OWN = Need("Every model that is no graph with a head can do this.", "bertsmith serve", head=False)
_LOOKS = Need("Every model with weights can do this.", "bertsmith serve", head=False)
_MASKS = Need(
    "This needs a model with a head for masked words, as pretrained BERTs have it.",
    "bertsmith serve --model google-bert/bert-base-uncased --download",
)
_RANKS = Need("This needs a model that was fine-tuned to rank.", _tune("rerank", "my-ranker", "ranks.jsonl"))

NEEDS: dict[str, Need] = {
    "fill": _MASKS,
    "lens": _MASKS,
    "follows": Need(
        "This needs a model that was pretrained with next-sentence or sentence-order prediction.", _MASKS.command
    ),
    "classify": Need("This needs a model that was fine-tuned on labels.", _tune("classify", "my-model", "train.csv")),
    "score": Need("This needs a model that was fine-tuned on numbers.", _tune("regress", "my-model", "train.csv")),
    "tag": Need("This needs a model that was fine-tuned to tag words.", _tune("tag", "my-tagger", "train.conll")),
    "answer": Need("This needs a model that was fine-tuned on questions.", _tune("span", "my-reader", "train.json")),
    "choose": Need("This needs a model that was fine-tuned to choose.", _tune("choose", "my-model", "train.jsonl")),
    "rerank": _RANKS,
    "search": Need("This needs a folder of texts that the server may search.", "bertsmith serve --index my-texts"),
    "attribution": Need(
        "This needs a model that was fine-tuned for a task.", _tune("classify", "my-model", "train.csv")
    ),
    **dict.fromkeys(("tokenize", "decode"), _ANY),
    **dict.fromkeys(("embed", "hidden", "similar"), _OWN),
    **dict.fromkeys(("attention", "step", "senses"), _LOOKS),
}

_TOWER = (
    "The Eiffel Tower was built by the company of Gustave Eiffel for the World's Fair of 1889 in Paris. It was to "
    "stand for twenty years, but it proved so useful for radio that it was never taken down."
)
_BERT = (
    "BERT was published by researchers at Google in October 2018. It reads a sentence in both directions at once, and "
    "learns by guessing words that were hidden from it."
)
_KITCHEN = [
    "Put the dough in a warm place for an hour.",
    "The train to Lyon leaves from platform nine.",
    "Baking powder makes a cake rise.",
    "She finished her thesis on medieval law.",
    "Yeast needs sugar and warmth to work.",
]

EXAMPLES: dict[str, tuple[Mapping[str, Any], ...]] = {
    "fill": (
        {"text": "The man went to the [MASK] to buy milk."},
        {"text": "Paris is the [MASK] of France."},
        {"text": "The doctor said that [MASK] would call back tomorrow."},
        {"text": "He poured himself a cup of [MASK] and opened the [MASK]."},
    ),
    "follows": (
        {"a": "The man went to the store.", "b": "He bought a gallon of milk."},
        {"a": "It rained all night.", "b": "Penguins cannot fly."},
    ),
    "classify": (
        {"text": "A wonderful film, and funny from the first minute to the last."},
        {"text": "The plot was dull, and the ending made no sense at all."},
        {"text": "The match ended in a draw.", "labels": ["sport", "politics", "cooking"]},
        {"text": "A man plays the guitar on a stage.", "pair": "Somebody is making music."},
        {"text": "A man plays the guitar on a stage.", "pair": "The stage is empty."},
    ),
    "score": (
        {"text": "A man is playing a guitar.", "pair": "Someone plays an instrument."},
        {"text": "The cat sleeps on the sofa.", "pair": "Interest rates rose again."},
    ),
    "tag": (
        {"text": "Marie Curie was born in Warsaw and worked at the University of Paris."},
        {"text": "In 2019 Apple opened an office in Munich, said Tim Cook."},
    ),
    "answer": (
        {"question": "Why was the tower not taken down?", "context": _TOWER},
        {"question": "How does BERT learn?", "context": _BERT},
    ),
    "similar": (
        {"text": "How do I get bread to rise?", "others": _KITCHEN},
        {"text": "A man is playing a guitar.", "others": ["Someone makes music."]},
        {"text": "He sat down on the bank of the river.", "others": ["She took her money to the bank."]},
        {"text": "The cat sleeps on the sofa.", "others": ["Interest rates rose again."]},
    ),
    "rerank": ({"query": "How do I get bread to rise?", "texts": _KITCHEN},),
    "search": ({"query": "How do I get bread to rise?", "top_k": 5},),
    "tokenize": (
        {"text": "Ada Lovelace wrote the first program."},
        {"text": "Tokenization of unbelievably long words: antidisestablishmentarianism!"},
        {"text": "How many pieces?", "pair": "As many as the vocabulary needs."},
        {"text": "Straße, naïve café, 東京 and 🙂"},
    ),
    "attention": (
        {"text": "The animal didn't cross the street because it was too tired."},
        {"text": "The animal didn't cross the street because it was too wide."},
        {"text": "Who wrote the play?", "pair": "Hamlet was written by William Shakespeare around 1600."},
    ),
    "step": (
        {"text": "the river bank", "word": "bank", "layer": 0, "head": 0},
        {"text": "time flies like an arrow", "word": "flies", "layer": 1, "head": 1},
    ),
    "senses": (
        {
            "word": "bank",
            "sentences": [
                "We sat on the bank of the river and watched the boats.",
                "The grassy bank of the stream was covered with flowers.",
                "The river burst its bank after the storm.",
                "She works for a bank in the city.",
                "The bank raised its interest rates again.",
                "He opened an account at the bank.",
            ],
        },
        {
            "word": "apple",
            "sentences": [
                "She ate an apple and a pear for lunch.",
                "An apple fell from the tree onto the grass.",
                "This apple pie is still warm.",
                "The new apple phone has a better camera.",
                "Shares of apple rose after the announcement.",
                "He works as an engineer at apple in California.",
            ],
        },
    ),
}
