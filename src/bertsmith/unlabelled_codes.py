"""What a model of codes is asked without labels. In: a corpus of codes, a model that learnt them. Out: plain JSON.

There is no text, so no tokenizer is asked: a code is a word of one piece.
"""

import time
from typing import Any

from bertsmith.data.shards import Corpus
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.codes import AROUND, measure_codes
from bertsmith.model import Model
from bertsmith.text.loading import has_tokenizer
from bertsmith.training.preparing import check_row_length


def ask_codes(corpus: Corpus, model: Model, samples: int, seed: int, length: int | None) -> dict[str, Any]:
    """Codes guessed and their pseudo-perplexity, of a sample of the held-out ones."""
    words, most = model.checkpoint.config.vocabulary, model.checkpoint.config.limit
    if words != corpus.vocabulary or has_tokenizer(model.sentence.encoder):
        raise BertsmithError(
            f"{corpus.folder} holds {corpus.vocabulary:,} codes, special ones included, and {model.folder} is no model "
            f"of these; give one that was pretrained on such a corpus, or a corpus of text."
        )
    check_row_length(length, most, AROUND, model.folder)
    start = time.monotonic()
    found = measure_codes(model.predictor, corpus, length or most, samples, seed)
    head = {"model": str(model.folder), "way": "plain", "length": length or most}
    return {**head, **found, "seconds": time.monotonic() - start}
