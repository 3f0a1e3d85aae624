"""Which part of a model is written: it gives what that part gives in the model."""

import numpy as np
import pytest
from export.made import make_all
from whole.test_features import train
from whole.tiny import as_conll, make_encoder, sentences

import bertsmith
from bertsmith.errors import BertsmithError

FORMS = ["transformers", "onnx"]
TEXTS = ["the film was good", "ann lives in oslo and works at the river"]


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_thread):
    return make_all(tmp_path_factory.mktemp("made"), "bert")


@pytest.mark.parametrize("to", FORMS)
@pytest.mark.parametrize("name", ["mood", "names"])
def test_vectors_of_an_adapter_are_those_of_its_encoder(made, tmp_path, name, to):
    """They were those of the base below it."""
    model = bertsmith.load(made[1][name])
    found = bertsmith.load(bertsmith.export_model(made[1][name], tmp_path / "out", to=to, head="embed").folder)
    np.testing.assert_allclose(found.embed(TEXTS), model.embed(TEXTS), atol=1e-4)
    assert np.abs(model.embed(TEXTS) - bertsmith.load(made[0]).embed(TEXTS)).max() > 0.1
    assert not found.trained and not found.info()["heads"]  # what its head learnt is not in it


@pytest.mark.parametrize("to", FORMS)
def test_the_encoder_below_features_of_several_layers(tmp_path, to):
    """As the refusal of its head says."""
    for side, verb in (("train", "lives"), ("dev", "works")):
        (tmp_path / f"tag-{side}.txt").write_text(as_conll(sentences(verb)))
    encoder = make_encoder(tmp_path / "encoder", depth=4)
    tagger = train("tag", tmp_path, encoder, tmp_path / "tagger", features="mix", recurrent=8, epochs=1).folder
    with pytest.raises(BertsmithError, match=r"which others do not; its bare encoder can be written \(--head embed\)"):
        bertsmith.export_model(tagger, tmp_path / "out", to=to)
    found = bertsmith.load(bertsmith.export_model(tagger, tmp_path / "out", to=to, head="embed").folder)
    np.testing.assert_allclose(found.embed(TEXTS), bertsmith.load(encoder).embed(TEXTS), atol=1e-4)
