"""One folder for each kind of vocabulary and head, made once a run."""

import pytest
from tasks.made import Both, bert_pieces, bytelevel_files, open_both, sentencepiece_files, wordpiece_files


@pytest.fixture(scope="module", autouse=True)
def small_and_alone(one_thread):
    """These models are so small that a second thread only waits."""


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("bert"), "bert", "mask", wordpiece_files(bert_pieces()))


@pytest.fixture(scope="session")
def bert_released(tmp_path_factory, demo_model):
    """BERT's own vocabulary of 30,522 pieces."""
    files = {"vocab.txt": (demo_model / "vocab.txt").read_bytes()}
    return open_both(tmp_path_factory.mktemp("released"), "bert", "mask", files)


@pytest.fixture(scope="session")
def bert_pairs(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("pairs"), "bert", "pretraining", wordpiece_files(bert_pieces()))


@pytest.fixture(scope="session")
def bert_30(tmp_path_factory):
    """A vocabulary so small that every filling can be tried."""
    words = "the a of is paris london cat dog play walk ##ing ##ed ##s . , ! ? x y z small good not it he"
    return open_both(tmp_path_factory.mktemp("thirty"), "bert", "mask", wordpiece_files(words.split()))


@pytest.fixture(scope="session")
def roberta(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("roberta"), "roberta", "mask", bytelevel_files())


@pytest.fixture(scope="session")
def albert(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("albert"), "albert", "mask", sentencepiece_files())


@pytest.fixture(scope="session")
def albert_pairs(tmp_path_factory):
    return open_both(tmp_path_factory.mktemp("order"), "albert", "pretraining", sentencepiece_files())


@pytest.fixture(params=["bert", "bert_released", "roberta", "albert"])
def filler(request) -> Both:
    """Each kind of vocabulary in turn, with a head for masks."""
    return request.getfixturevalue(request.param)
