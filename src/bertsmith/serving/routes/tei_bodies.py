"""The request bodies of text-embeddings-inference, and what their way of cutting long inputs is called here.

In: JSON. Out: checked bodies, and the fields of a job.
"""

from typing import Any, Literal

from fastapi import Request
from pydantic import Field

from bertsmith.serving.asks import Card, Refusal
from bertsmith.serving.http.shapes import Count, Ids, Inputs, Pairs, Shape, Texts, shown_as

Direction = Literal["right", "left", "Right", "Left"]
RAW_SCORES = Field(False, description="Whether scores are the head's own, not probabilities.")
TRUNCATE = Field(None, description="Whether a long input is cut or refused; left out, it is as the server was started.")
MODEL = Field(None, description="The id of a served model; any other name, or none, means the default one.")
PROMPT_NAME = Field(None, description="Which of the model's prompts is put in front.")


class Truncated(Shape):
    truncate: bool | None = TRUNCATE
    truncation_direction: Direction = Field("right", description="The side that is cut away.")


class EmbedBody(Truncated):
    model_config = shown_as({"inputs": "a river bank"}, {"inputs": ["a river bank", "a savings bank"]})

    inputs: Inputs
    normalize: bool = Field(True, description="Whether vectors have length 1.")
    prompt_name: str | None = PROMPT_NAME
    dimensions: Count | None = Field(None, description="How many numbers of each vector are kept.")
    model: str | None = MODEL


class EmbedAllBody(Truncated):
    model_config = shown_as({"inputs": "a river bank"})

    inputs: Texts
    prompt_name: str | None = PROMPT_NAME
    model: str | None = MODEL


class PredictBody(Truncated):
    model_config = shown_as(
        {"inputs": "A wonderful film."}, {"inputs": [["A wonderful film."], ["A dull one."]], "raw_scores": True}
    )

    inputs: Pairs
    raw_scores: bool = RAW_SCORES
    model: str | None = MODEL


class Comparison(Shape):
    source_sentence: str = Field(min_length=1)
    sentences: list[str] = Field(min_length=1)


class ComparisonParameters(Truncated):
    prompt_name: str | None = PROMPT_NAME


class SimilarityBody(Shape):
    model_config = shown_as(
        {"inputs": {"source_sentence": "a river bank", "sentences": ["the shore of a stream", "a savings account"]}}
    )

    inputs: Comparison
    parameters: ComparisonParameters | None = None
    model: str | None = MODEL


class TokenizeBody(Shape):
    model_config = shown_as({"inputs": "river", "add_special_tokens": False})

    inputs: Texts
    add_special_tokens: bool = True
    prompt_name: str | None = PROMPT_NAME
    model: str | None = MODEL


class DecodeBody(Shape):
    model_config = shown_as({"ids": [101, 1037, 2314, 102]})

    ids: Ids
    skip_special_tokens: bool = True
    model: str | None = MODEL


class VertexBody(Shape):
    model_config = shown_as({"instances": [{"inputs": "a river bank"}]})

    instances: list[dict[str, Any]]


def choose_truncation(request: Request, truncate: bool | None, direction: Direction) -> dict[str, str]:
    """The field of a job, if any: cut from the right, the head of a text stays."""
    if truncate is False:
        return {"truncate": "error"}
    if direction.lower() == "left":
        refuses = truncate is None and request.app.state.settings.truncate == "error"
        return {} if refuses else {"truncate": "tail"}
    return {"truncate": "head"} if truncate else {}


def choose_prompt(name: str | None, card: Card) -> dict[str, str]:
    """The field of a job, if any; an unknown name must not become words that are put in front of each text."""
    if name is None:
        return {}
    if name not in card.prompts:
        known = f"they are {', '.join(card.prompts)}" if card.prompts else "it has none"
        raise Refusal("input", f"the model {card.id!r} has no prompt {name[:40]!r}; {known}.")
    return {"prompt": name}
