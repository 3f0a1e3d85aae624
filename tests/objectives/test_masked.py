"""What is hidden of a row follows BERT's rule (arXiv 1810.04805, section 3.1), and nothing but chance decides it."""

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from oracle import SIZES, make_reference
from torch.nn import functional as F

from bertsmith.data.batch import Batch
from bertsmith.errors import BertsmithError
from bertsmith.models.checkpoint import load_checkpoint
from bertsmith.objectives.masked import Masking, corrupt, draw_ordinary, masked_loss

MASK, SPECIALS, VOCABULARY = 4, frozenset({0, 2, 3, 4, 50}), 90

rows = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=60).map(np.array)
seeds = st.integers(0, 2**32)


def hide(ids, seed, masking=None):
    more = () if masking is None else (masking,)
    return corrupt(ids, SPECIALS, MASK, VOCABULARY, np.random.default_rng(seed), *more)


@given(rows, seeds)
def test_gold_is_what_stood_there_and_the_rest_is_untouched(ids, seed):
    before = ids.copy()
    read, at, gold = hide(ids, seed)
    assert (ids == before).all() and len(read) == len(ids)
    assert (gold == ids[at]).all() and (np.diff(at) > 0).all()
    rest = np.setdiff1d(np.arange(len(ids)), at)
    assert (read[rest] == ids[rest]).all()


@given(rows, seeds)
def test_special_tokens_are_never_chosen_nor_put_in(ids, seed):
    read, at, gold = hide(ids, seed, Masking(share=0.9, masked=0.3, random=0.6))
    assert not SPECIALS & set(gold.tolist())
    assert SPECIALS & set(read[at].tolist()) <= {MASK}
    assert ((read >= 0) & (read < VOCABULARY)).all()


@given(rows, seeds)
def test_a_share_of_what_may_be_chosen_at_least_one(ids, seed):
    free = sum(id not in SPECIALS for id in ids.tolist())
    _, at, _ = hide(ids, seed)
    assert len(at) == (max(1, round(0.15 * free)) if free else 0)


@given(rows, seeds)
def test_the_same_chance_hides_the_same(ids, seed):
    one, other = hide(ids, seed), hide(ids, seed)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("masked, random", [(0.8, 0.1), (0.5, 0.25), (1.0, 0.0), (0.0, 0.0)])
def test_of_the_chosen_the_shares_are_within_sampling_error(masked, random):
    ids = np.random.default_rng(0).integers(5, 50, 200_000)
    read, at, gold = hide(ids, 1, Masking(masked=masked, random=random))
    n = len(at)
    assert n == 30_000
    found = {"masked": (read[at] == MASK).mean(), "kept": (read[at] == gold).mean()}
    ordinary = VOCABULARY - len(SPECIALS)
    wanted = {"masked": masked, "kept": 1 - masked - random + random / ordinary}  # chance may draw the token itself
    for name, share in wanted.items():
        assert abs(found[name] - share) <= 4 * (share * (1 - share) / n) ** 0.5 + 1e-12, name


@given(st.sets(st.integers(0, 19)), seeds)
def test_ordinary_ids_are_drawn_alike(specials, seed):
    known = np.array(sorted(specials), dtype=np.int64)
    if len(known) == 20:
        return
    drawn = draw_ordinary(known, 20, np.random.default_rng(seed), 4000)
    ordinary = sorted(set(range(20)) - specials)
    assert set(drawn.tolist()) <= set(ordinary)
    counts = np.bincount(drawn, minlength=20)[ordinary]
    assert abs(counts / 4000 - 1 / len(ordinary)).max() < 0.06


def test_shares_that_cannot_be_are_refused():
    with pytest.raises(BertsmithError, match=r"^share is 1\.5; it must be between 0 and 1\.$"):
        Masking(share=1.5)
    with pytest.raises(BertsmithError, match=r"^masked and random are 0\.8 and 0\.3; together at most 1\.$"):
        Masking(masked=0.8, random=0.3)


def test_the_loss_is_that_of_transformers(tmp_path):
    """The mean over the masked places is BertForMaskedLM's loss, where all others have the label -100."""
    reference = make_reference("bert", "mask", 0)
    assert isinstance(reference, transformers.BertForMaskedLM)
    reference.save_pretrained(tmp_path)
    network = load_checkpoint(tmp_path).network
    ids = np.random.default_rng(2).integers(5, SIZES["vocab_size"], 30)
    read, at, gold = corrupt(ids, SPECIALS, MASK, SIZES["vocab_size"], np.random.default_rng(3))
    labels = torch.full((1, 30), -100)
    labels[0, torch.from_numpy(at)] = torch.from_numpy(gold)
    wanted = reference(input_ids=torch.from_numpy(read)[None], labels=labels).loss
    costs = masked_loss(network, Batch.of([read.tolist()]), torch.from_numpy(at), torch.from_numpy(gold))
    assert costs.shape == (len(at),)
    assert costs.mean().item() == pytest.approx(wanted.item(), rel=1e-5)
    none = masked_loss(network, Batch.of([read.tolist()]), torch.from_numpy(at), torch.full((len(at),), -100))
    assert F.l1_loss(none, torch.zeros(len(at))).item() == 0.0
