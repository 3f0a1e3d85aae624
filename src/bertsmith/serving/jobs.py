"""What a server can be asked: each job with its fields, as the method of `Model` with that name takes them.

Forms, routes and help are made from this table; those that look inside a model are in `looks.py`.
"""

from dataclasses import replace

from bertsmith.serving.asks import Refusal
from bertsmith.serving.fields import Field, Job
from bertsmith.serving.looks import LOOKS


def _truncate(*choices: str) -> Field:
    return Field("truncate", "choice", "What is done with an input that is too long.", choices=choices)


ANSWERS = 1000  # a text has as many parts as pairs of places in it
ANSWER_LENGTH = 100  # a table of all answers is so many times as long as the text
WHOLE = ("error", "head", "tail", "head+tail")
LONG = _truncate(*WHOLE, "windows")
SHORT = _truncate(*WHOLE)
TOP = Field("top_k", "count", "How many answers are given.")

JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            "fill",
            "What stands behind each mask of a text.",
            (
                Field("text", "text", "A text with one mask or more.", required=True, many=True),
                TOP,
                Field("targets", "texts", "The words to choose from."),
                LONG,
            ),
            {"text": "The man went to the [MASK] to buy milk.", "top_k": 3},
        ),
        Job(
            "follows",
            "Whether one text follows another.",
            (
                Field("a", "text", "The first text.", required=True, many=True),
                Field("b", "text", "The text that may follow it.", required=True, many=True),
                SHORT,
            ),
            {"a": "The man went to the store.", "b": "He bought a gallon of milk."},
        ),
        Job(
            "classify",
            "Which class a text or a pair of texts is of; with labels, one that the model never learnt.",
            (
                Field("text", "text", "The text.", required=True, many=True),
                Field("pair", "text", "A second text, for a model of pairs.", many=True),
                Field("labels", "texts", "Classes to choose from, for a model of natural-language inference."),
                Field("hypothesis", "text", "The sentence that a label is put into, at {}."),
                Field("several", "flag", "Whether each label is judged on its own."),
                TOP,
                Field("raw", "flag", "Whether scores are the head's own numbers, before any function."),
                Field(
                    "apply",
                    "choice",
                    "What makes scores of them, whichever the model learnt with.",
                    choices=("softmax", "sigmoid"),
                ),
                LONG,
            ),
            {"text": "A wonderful film."},
        ),
        Job(
            "score",
            "A number for a text or a pair of texts.",
            (
                Field("text", "text", "The text.", required=True, many=True),
                Field("pair", "text", "A second text, for a model of pairs.", many=True),
                LONG,
            ),
            {"text": "A man is playing a guitar.", "pair": "Someone plays an instrument."},
        ),
        Job(
            "tag",
            "The names and other entities of a text.",
            (
                Field("text", "text", "The text.", required=True, many=True),
                Field(
                    "aggregation",
                    "choice",
                    "How the pieces of a word become one tag.",
                    choices=("none", "simple", "first", "average", "max"),
                ),
                LONG,
            ),
            {"text": "Ada Lovelace lived in London."},
        ),
        Job(
            "answer",
            "The part of a text that answers a question.",
            (
                Field("question", "text", "The question.", required=True, many=True),
                Field("context", "text", "The text that may hold the answer.", required=True, many=True),
                replace(TOP, most=ANSWERS),
                Field("answer_length", "count", "The most tokens of an answer.", most=ANSWER_LENGTH),
                LONG,
            ),
            {"question": "Who lived in London?", "context": "Ada Lovelace lived in London."},
        ),
        Job(
            "choose",
            "Which of several choices goes with a prompt.",
            (
                Field("prompt", "text", "What the choices go with.", required=True, many=True),
                Field("choices", "texts", "The choices.", required=True, many=True),
                LONG,
            ),
            {"prompt": "Where does one buy milk?", "choices": ["in a shop", "in the sky"]},
        ),
        Job(
            "embed",
            "A vector for a text.",
            (
                Field("texts", "text", "The text, or its token ids.", required=True, many=True, ids=True),
                Field("prompt", "text", "The name of one of the model's prompts, or words to put in front."),
                Field("normalize", "flag", "Whether vectors have length 1."),
                Field("dims", "count", "How many numbers of each vector are kept."),
                LONG,
            ),
            {"texts": ["a river bank", "a savings bank"]},
            gives_vectors=True,
        ),
        Job(
            "hidden",
            "The last hidden state of each token of a text.",
            (
                Field("texts", "text", "The text.", required=True, many=True),
                Field(
                    "layers", "numbers", "Which layers; 0 is the embedding, -1 the last; or 'all'.", choices=("all",)
                ),
                SHORT,
            ),
            {"texts": "a river bank"},
            gives_vectors=True,
        ),
        Job(
            "similar",
            "Other texts by how alike they are to a text.",
            (
                Field("text", "text", "The text.", required=True, many=True),
                Field("others", "texts", "The texts to compare it with.", required=True),
                TOP,
                LONG,
            ),
            {"text": "a river bank", "others": ["the shore of a stream", "a savings account"]},
        ),
        Job(
            "rerank",
            "Texts by how well they answer a query.",
            (
                Field("query", "text", "The query.", required=True, many=True),
                Field("texts", "texts", "The texts to rank.", required=True, many=True),
                TOP,
                Field("raw", "flag", "Whether scores are the head's own numbers, before the sigmoid."),
                LONG,
            ),
            {"query": "Who lived in London?", "texts": ["Ada Lovelace lived in London.", "Milk is white."]},
        ),
        Job(
            "tokenize",
            "The pieces of a text, with their ids and where they stand in it.",
            (
                Field("text", "text", "The text.", required=True, many=True),
                Field("pair", "text", "A second text.", many=True),
            ),
            {"text": "Ada Lovelace"},
        ),
        Job(
            "decode",
            "The text of token ids.",
            (
                Field("ids", "numbers", "The ids of a text, or a list of them.", required=True, many=True),
                Field("skip_specials", "flag", "Whether special tokens are left out."),
            ),
            {"ids": [101, 2300, 102]},
        ),
        Job(
            "search",
            "The passages of the server's own texts that answer a query best.",
            (
                Field("query", "text", "The query.", required=True, many=True),
                TOP,
                Field("how", "choice", "By words, by vectors, or by both.", choices=("hybrid", "dense", "bm25")),
            ),
            {"query": "Who lived in London?", "top_k": 3},
        ),
        *LOOKS,
    )
}


def find_job(name: str) -> Job:
    if name not in JOBS:
        raise Refusal("input", f"there is no job {name[:40]!r}; the jobs are {', '.join(JOBS)}.")
    return JOBS[name]
