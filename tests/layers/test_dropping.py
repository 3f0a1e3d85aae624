"""What is left out is the share that was asked for, anew each time, and the mean stays."""

import pytest
import torch
from scipy.stats import binom, chisquare

from bertsmith.layers.dropping import draw_kept, drop_out


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
def test_the_share_is_that_of_a_binomial(share):
    torch.manual_seed(0)
    count = 1_000_003
    kept = draw_kept(torch.empty(count), share)
    low, high = binom.interval(1 - 1e-6, count, share)
    assert low <= (kept == 0).sum().item() <= high
    assert kept.unique().tolist() == pytest.approx([0, 1 / (1 - share)], rel=1e-3)
    assert kept.mean().item() == pytest.approx(1, abs=0.02)


def test_neighbours_have_nothing_to_do_with_each_other():
    """Four of them come from one draw: all 16 ways in which they may fall are as frequent as chance has it."""
    torch.manual_seed(0)
    fours = (draw_kept(torch.empty(400_000), 0.5) > 0).long().view(-1, 4) @ torch.tensor([1, 2, 4, 8])
    assert chisquare(torch.bincount(fours, minlength=16).numpy()).pvalue > 1e-4


def test_the_seed_decides():
    x = torch.ones(7, 5)
    torch.manual_seed(3)
    first, second = drop_out(x, 0.5), drop_out(x, 0.5)
    torch.manual_seed(3)
    assert torch.equal(drop_out(x, 0.5), first) and not torch.equal(first, second)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_the_gradient_goes_where_the_numbers_went(kind):
    x = torch.ones(40, 30, dtype=kind, requires_grad=True)
    found = drop_out(x, 0.3)
    found.sum().backward()
    assert found.dtype == kind and torch.equal(found, x.grad)
