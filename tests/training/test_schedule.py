"""The rate over the steps: as the reference's schedules behind the warm-up, which here never starts at zero."""

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.training.schedule import layers_awake, rate_share
from bertsmith.training.settings import Training

THEIRS = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


def their_shares(name: str, climb: int, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = transformers.get_scheduler(name, optimizer, num_warmup_steps=climb, num_training_steps=steps)
    found = []
    for _ in range(steps):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("schedule", THEIRS)
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.25, 1.0])
@pytest.mark.parametrize("steps", [1, 7, 40])
def test_behind_the_warm_up_a_schedule_is_that_of_the_reference(schedule, warmup, steps):
    settings = Training(schedule=schedule, warmup=warmup)
    climb = round(warmup * steps)
    ours = [rate_share(step, steps, settings) for step in range(steps)]
    theirs = their_shares(THEIRS[schedule], climb, steps)
    assert ours[climb:] == pytest.approx(theirs[climb:], abs=1e-12)
    # Theirs is step / climb, so that the first step learns nothing; ours has its first share there.
    assert ours[:climb] == pytest.approx([(step + 1) / (climb + 1) for step in range(climb)])


@given(
    st.sampled_from(["linear", "cosine", "constant", "trapezoid"]),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(1, 300),
)
def test_every_step_learns_and_none_more_than_the_peak(schedule, warmup, cooldown, steps):
    settings = Training(schedule=schedule, warmup=warmup, cooldown=cooldown)
    shares = [rate_share(step, steps, settings) for step in range(steps)]
    assert all(0 < share <= 1 for share in shares)
    climb = round(warmup * steps)
    assert shares[:climb] == sorted(shares[:climb])
    assert shares[climb:] == sorted(shares[climb:], reverse=True)


def test_a_trapezoid_climbs_stays_and_falls():
    settings = Training(schedule="trapezoid", warmup=0.1, cooldown=0.2)
    shares = [rate_share(step, 100, settings) for step in range(100)]
    assert shares[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert shares[10:81] == pytest.approx([1.0] * 71)
    assert shares[80:] == pytest.approx([(100 - step) / 20 for step in range(80, 100)])


def test_layers_wake_from_the_top_one_at_a_time():
    settings = Training(unfreeze=0.5)
    awake = [layers_awake(step, steps_an_epoch=4, depth=2, settings=settings) for step in range(10)]
    assert awake == [0, 0, 1, 1, 2, 2, 3, 3, 3, 3]
    assert {layers_awake(step, 4, 2, Training()) for step in range(10)} == {3}
