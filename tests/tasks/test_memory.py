"""A batch that memory does not suffice for is read in halves, and nobody sees a difference."""

import pytest
import torch

from bertsmith.errors import BertsmithError
from bertsmith.tasks.embed import Embed


class Narrow(Embed):
    """As if the device had room for so many tokens."""

    room = 12

    def scores(self, network, batch, rows):
        if len(batch.ids) > self.room:
            raise torch.OutOfMemoryError("made")
        return super().scores(network, batch, rows)


def make(model, kind, **more):
    return kind(model.tokenizer, model.limit, "head", model.sentence.pooling, False, **more)


def test_halves_give_the_same_answers(bert):
    model, texts = bert.ours, ["the fox", "a quick dog in london", "paris", "we walk", "the lazy dog", "it is good"]
    whole = model.predictor.predict(make(model, Embed), texts)
    parts = model.predictor.predict(make(model, Narrow), texts)
    for one, other in zip(whole, parts, strict=True):
        assert abs(one - other).max() < 1e-5


def test_a_row_that_never_fits_is_named(bert):
    with pytest.raises(BertsmithError, match=r"not enough memory on cpu for a row of 1[0-9] tokens"):
        bert.ours.predictor.predict(make(bert.ours, Narrow), ["the fox", "a quick dog " * 4])
