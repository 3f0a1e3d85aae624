"""A model's tokenizer and the longest row it reads, without its weights."""

from pathlib import Path

from bertsmith.errors import BertsmithError
from bertsmith.models.adapter_folders import find_encoder
from bertsmith.models.families import find_family
from bertsmith.models.files import read_any_settings
from bertsmith.models.hub import find_default, locate
from bertsmith.text.loading import load_tokenizer
from bertsmith.text.tokenizer import Tokenizer


def find_tokenizer(model: str | Path | None) -> tuple[Tokenizer | None, int | None]:
    """A model's tokenizer and the longest row it reads; none where none is named and there is no default.

    A sentence encoder that was made for shorter texts still reads what its encoder reads.
    """
    if model is None:
        try:
            model = find_default()
        except BertsmithError:
            return None, None
    folder = find_encoder(locate(model))
    tokenizer = load_tokenizer(folder)
    settings = read_any_settings(folder)
    most = find_family(settings.get("model_type", "bert")).config(settings).limit
    return tokenizer, min(most, tokenizer.limit or most)
