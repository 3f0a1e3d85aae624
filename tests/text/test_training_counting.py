"""Words are counted as the engine would cut the whole text, however it comes in."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text.corpora import make_lines

from bertsmith.text.training import counting
from bertsmith.text.training.balancing import balance_counts, find_factors
from bertsmith.text.training.counting import count_texts, cut_slices
from bertsmith.text.training.recipes import Recipe, make_recipe

RECIPES = [make_recipe(kind, cased) for kind in ("wordpiece", "bpe", "unigram") for cased in (True, False)]
PARTS = st.sampled_from([" ", "  ", "\n", "\t", "\r\n", "a", "Über", "don't", "東京", "12", "…", "\u3000", "é", "\x00"])
TEXTS = st.one_of(st.lists(PARTS, max_size=12).map("".join), st.text(max_size=30))


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@given(text=TEXTS)
def test_chunks_give_the_words_of_the_whole_text(recipe: Recipe, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    cleaned = recipe.normalizer().normalize_str(text) if recipe.normalizer() else text
    whole = Counter(word for word, _ in recipe.splitter().pre_tokenize_str(cleaned))
    assert +count_texts([text], recipe).words == whole


@given(st.lists(PARTS, max_size=60).map("".join))
def test_slices_are_the_text(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "SLICE", 7)
        assert "".join(cut_slices(text)) == text


def test_one_giant_line_counts_as_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, lines = make_recipe("bpe"), make_lines(300)
    whole = count_texts([" ".join(lines)], recipe)
    monkeypatch.setattr(counting, "SLICE", 1000)
    monkeypatch.setattr(counting, "PATIENCE", 2500)
    assert count_texts([" ".join(lines)], recipe) == whole


def test_words_over_the_limit_are_left_out_and_counted() -> None:
    counted = count_texts(["ab " + "x" * 101 + " ab"], make_recipe("wordpiece"))
    assert (counted.words, counted.skipped, counted.chunks) == ({"ab": 2}, 1, 3)


def test_half_of_a_pair_is_no_reason_to_stop() -> None:
    assert sum(count_texts(["a \ud800b"], make_recipe("bpe")).words.values()) == 3


def test_balancing() -> None:
    # 0.7 of parts 100 : 1 (Conneau et al. 2019): the small one counts 100 ** 0.3 = 3.981 times.
    assert find_factors([100, 1], 0.7) == [1000, 3981]
    assert find_factors([100, 1], 1.0) == [1000, 1000]
    assert find_factors([100, 1], 0.0) == [1000, 100_000]
    assert balance_counts([{"a": 5, "b": 1}, {"b": 2}], [1000, 3981]) == {"a": 5, "b": 9}
