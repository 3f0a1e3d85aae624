"""What a sweep tries: all combinations in one order, a seeded draw of them, ranges; and what is refused before it."""

import itertools
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import BertsmithError
from bertsmith.training.proposals import Proposals
from bertsmith.training.space import draw, make_space

LISTS = st.fixed_dictionaries(
    {
        "rate": st.lists(st.sampled_from([1e-5, 2e-5, 5e-5, 1e-4]), min_size=2, unique=True),
        "batch": st.lists(st.integers(1, 64), min_size=2, max_size=4, unique=True),
        "schedule": st.permutations(["linear", "cosine", "constant"]),
    }
)


@given(LISTS)
def test_the_grid_is_the_product_in_the_order_given(lists):
    space = make_space({**lists, "epochs": 2, "text": "review"})
    assert [tuple(one.values()) for one in space.combinations()] == list(itertools.product(*lists.values()))
    assert space.fixed == {"epochs": 2, "text": "review"} and list(space.lists) == list(lists)


@given(LISTS, st.integers(1, 60), st.integers(0, 5))
def test_a_draw_is_a_part_of_the_grid_and_the_same_again(lists, samples, seed):
    grid = make_space(lists).combinations()
    drawn = draw(grid, samples, seed)
    assert drawn == draw(grid, samples, seed) and len(drawn) == min(samples, len(grid))
    places = [grid.index(one) for one in drawn]
    assert places == sorted(set(places))


def test_another_seed_draws_others():
    grid = make_space({"batch": list(range(1, 101))}).combinations()
    assert len({tuple(one["batch"] for one in draw(grid, 5, seed)) for seed in range(10)}) > 5


def test_a_list_of_one_is_fixed():
    space = make_space({"rate": [1e-4], "batch": [8, 16]})
    assert space.fixed == {"rate": 1e-4} and list(space.lists) == ["batch"]


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"lr": [1, 2]}, "lr is not a setting; did you mean rate?"),
        ({"rates": [1, 2]}, "rates is not a setting; did you mean rate?"),
        ({"rate": [1e-4, -1.0]}, "rate is -1.0; it must be more than 0."),
        ({"batch": [8, "many"]}, "batch is 'many'; it must be a whole number."),
        ({"batch": []}, "batch is an empty list; give the values to try."),
        ({"batch": [8, 16, 8]}, "batch has 8 twice; name each value once."),
        ({"seed": [1, 2]}, "seed cannot be chosen for a sweep: give seeds"),
        ({"metric": ["f1", "accuracy"]}, "metric is what the combinations are compared by; give one."),
        ({"rate": "1e-3:1e-4"}, "a range goes from a lower number to a higher one"),
        ({"rate": "0:1e-4"}, "its range must begin above 0"),
        ({"rate": "1e-5:x"}, "a range is two numbers, as in LOW:HIGH"),
        ({"batch": "8:16.5"}, "a range is two whole numbers"),
        ({"warmup": "0.1:2"}, "warmup is 2.0; it must be between 0 and 1."),
        ({"text": ["a", "b"]}, "text is ['a', 'b']; give the name or the number of a column."),
    ],
)
def test_what_is_refused(settings, said):
    with pytest.raises(BertsmithError) as error:
        make_space(settings)
    assert said in str(error.value)


def test_too_many_combinations_are_not_made():
    with pytest.raises(BertsmithError, match="make 1,000,000 combinations, more than 10,000"):
        make_space({name: [i / 101 for i in range(1, 101)] for name in ("rate", "warmup", "beta1")}).combinations()


@pytest.mark.parametrize("samples", [0, -1, True, 1.5])
def test_samples_is_a_count(samples):
    with pytest.raises(BertsmithError, match=r"samples is .*; it must be at least 1"):
        draw([{}], samples, 0)


def ask_all(seed, trials=12):
    proposals = Proposals(make_space({"rate": "1e-6:1e-2", "batch": "4:64", "schedule": ["linear", "cosine"]}), seed)
    found = []
    for _ in range(trials):
        (one,) = proposals.ask(1)
        found.append(one)
        proposals.tell([None if one["schedule"] == "cosine" else -abs(math.log10(one["rate"]) + 4)])
    return found


def test_optuna_proposes_the_same_again_within_the_ranges():
    pytest.importorskip("optuna")
    found = ask_all(3)
    assert found == ask_all(3) != ask_all(4)
    assert all(1e-6 <= one["rate"] <= 1e-2 and 4 <= one["batch"] <= 64 for one in found)
    assert all(isinstance(one["batch"], int) and one["rate"] == float(f"{one['rate']:.3g}") for one in found)
    assert any(one["rate"] < 1e-4 for one in found) and any(one["rate"] > 1e-4 for one in found)  # on a log scale


def test_what_is_proposed_is_rounded_within_its_range():
    pytest.importorskip("optuna")
    found = Proposals(make_space({"rate": "1.2345e-5:1.2349e-5"}), 0).ask(5)
    assert all(1.2345e-5 <= one["rate"] <= 1.2349e-5 for one in found)


def test_optuna_is_asked_for_where_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BertsmithError, match=r"needs the extra `sweep`: pip install 'bertsmith\[sweep\]'"):
        Proposals(make_space({"rate": "1e-5:1e-3"}), 0)
