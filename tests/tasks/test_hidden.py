"""Hidden states of ragged texts against the reference, layer by layer."""

import numpy as np
import pytest
import torch
from tasks.made import CLOSE, Both

from bertsmith.errors import BertsmithError

TEXTS = ["Paris is the capital of France.", "", "dog", "the quick brown fox jumps over the lazy dog!", "it is"]


def states(both: Both, text: str) -> np.ndarray:
    """(layers, tokens, width)"""
    with torch.no_grad():
        found = both.reference(**both.tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
    return torch.cat(found).numpy()


@pytest.mark.parametrize(
    ("layers", "chosen"),
    [
        (None, 3),
        ("all", slice(None)),
        ([-1], [3]),
        ([0, 2], [0, 2]),
        ([2, 0, -2], [2, 0, 2]),
        (np.array([0, 2]), [0, 2]),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_same_as_the_reference(request, model, layers, chosen):
    both = request.getfixturevalue(model)
    for text, found in zip(TEXTS, both.ours.hidden(TEXTS, layers=layers), strict=True):
        expected = states(both, text)[chosen]
        assert found.dtype == np.float32
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < CLOSE
        assert found.truncated == 0


def test_one_text_gives_one_array(bert):
    assert bert.ours.hidden("it is").shape == (4, 48)
    assert bert.ours.hidden([]) == []


@pytest.mark.parametrize("layers", [[4], [0, -5], [99]])
def test_layer_that_is_not_there(bert, layers):
    with pytest.raises(BertsmithError, match="this model has 0 to 3"):
        bert.ours.hidden("it is", layers=layers)


@pytest.mark.parametrize("layers", ["last", 2, [1.5], [], ["1"], [True], np.array(1), np.array([0.5]), object()])
def test_layers_that_are_no_list_of_numbers(bert, layers):
    with pytest.raises(BertsmithError, match="layers="):
        bert.ours.hidden("it is", layers=layers)
