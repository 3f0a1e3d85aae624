"""The jobs that look inside a model: functions of `bertsmith.inspect`, within limits that a server can keep.

Out: rows of the table in `jobs.py`. What they give is a picture's kind, its title and the numbers that are drawn.
"""

from bertsmith.serving.fields import Field, Job

SENTENCES = 64
LABELS = 8
EXPLAINED = ("classify", "answer", "tag", "fill", "follows", "score", "similar")
TEXT = Field("text", "text", "The text.", required=True)
PAIR = Field("pair", "text", "A second text, read behind the first.")
CAUSAL = Field("causal", "flag", "Whether a token sees only itself and those before it.")

LOOKS: tuple[Job, ...] = (
    Job(
        "attention",
        "Which words of a text look at which, in every layer and head.",
        (
            TEXT,
            PAIR,
            CAUSAL,
            Field("neurons", "flag", "Whether queries and keys come, too, to see a weight number by number."),
        ),
        {"text": "The animal didn't cross the street because it was too tired."},
        looks=True,
        tokens=512,
    ),
    Job(
        "step",
        "One step of attention with every number: query, keys, scores, weights and what comes out.",
        (
            TEXT,
            Field("word", "text", "The word that looks at the others.", required=True),
            Field("layer", "place", "The layer, from 0 on.", required=True),
            Field("head", "place", "The head, from 0 on.", required=True),
            PAIR,
            CAUSAL,
        ),
        {"text": "the river bank", "word": "bank", "layer": 0, "head": 0},
        looks=True,
        tokens=128,
    ),
    Job(
        "lens",
        "What a model would put in each place of a text, layer by layer.",
        (TEXT, Field("top_k", "count", "How many words are told of each place.", most=20)),
        {"text": "The man went to the [MASK] to buy milk."},
        looks=True,
        tokens=128,
    ),
    Job(
        "senses",
        "How alike one word's vectors are in several sentences, layer by layer.",
        (
            Field("word", "text", "The word.", required=True),
            Field("sentences", "texts", "Sentences with the word in them.", required=True, most=SENTENCES),
        ),
        {"word": "bank", "sentences": ["We sat on the bank of the river.", "She works for a bank in the city."]},
        looks=True,
        tokens=512,
    ),
    Job(
        "attribution",
        "Which words an answer hangs on.",
        (
            Field("job", "choice", "The job whose answer is explained.", required=True, choices=EXPLAINED),
            Field("texts", "texts", "What that job takes, in its order: a text or two.", required=True, most=2),
            Field("target", "text", "The answer that is explained; else the model's own."),
            Field("labels", "texts", "Classes that were never learnt, for a model of inference.", most=LABELS),
            Field("method", "choice", "How it is found out.", choices=("integrated", "gradient", "occlusion", "all")),
        ),
        {"job": "classify", "texts": ["A wonderful film."]},
        looks=True,
        tokens=256,
    ),
)
