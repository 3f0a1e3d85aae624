"""Charts: finite and inside their frame for any data, however little or broken; numbers as people read them."""

import math
import re

import pytest
from evaluation.made_facts import make_curves
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.evaluation.report import RunFacts
from bertsmith.evaluation.report.axes import Scale, measure, shorten
from bertsmith.evaluation.report.charts import draw_bars, draw_histogram, draw_interval, draw_reliability, span_scores
from bertsmith.evaluation.report.confusion import draw_confusion, list_confusions
from bertsmith.evaluation.report.curves import draw_curves, smooth, thin
from bertsmith.evaluation.report.numbers import round_steps, show_number, show_score, show_seconds, show_share

NAN = float("nan")
ANY = st.floats(width=32) | st.sampled_from([0.0, 1.0, NAN, float("inf"), -float("inf"), 1e308, -1e308, 1e-320])
COORDINATE = re.compile(r' (x|y|x1|x2|y1|y2|cx|cy|r|width|height|d|viewBox)="([^"]*)"')


def check_drawing(picture: str) -> None:
    """Every coordinate is a number and lies on the paper."""
    for svg in re.findall(r"<svg.*?</svg>", picture, re.DOTALL):
        found = re.search(r'viewBox="0 0 (\S+) (\S+)"', svg)
        assert found
        width, height = map(float, found.groups())
        for name, value in COORDINATE.findall(svg):
            numbers = [float(one) for one in re.sub("[ML]", " ", value).split()]
            assert all(math.isfinite(one) and -20 <= one <= max(width, height) + 20 for one in numbers), (name, value)


BROKEN = {
    "one point": [{"step": 1, "loss": 0.5}],
    "one evaluation": [{"step": 10, "split": "dev", "metrics": {"F1": 0.5}}],
    "constant": [{"step": i, "loss": 0.5, "rate": 0.0, "norm": 0.0} for i in range(200)],
    "NaN": [{"step": i, "loss": NAN, "norm": float("inf")} for i in range(200)],
    "NaN from the middle": [{"step": i, "loss": 1 / (i + 1) if i < 90 else NAN, "rate": 1e-5} for i in range(300)],
    "None": [{"step": 1, "loss": None}, {"step": 2, "loss": 0.1}],
    "no step": [{"loss": 0.3}],
    "huge": [{"step": 10**9 * i, "loss": 10.0**i} for i in range(40)],
    "no dev": [record for record in make_curves(100, ()) if "split" not in record],
    "dev as objects": [{"step": 3, "split": "dev", "metrics": {"F1": {"value": 0.4, "low": 0.3, "high": 0.5}}}],
    "step 0": [{"step": 0, "loss": 1.0}, {"step": 0, "split": "dev", "metrics": {"F1": 0.1}}],
}


@pytest.mark.parametrize("curves", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("best", [None, 0, 10, 10**12])
def test_curves_of_any_log(curves: list[dict], best: int | None) -> None:
    check_drawing(draw_curves(RunFacts(task="tag", curves=curves, best_step=best)))


@given(st.lists(st.tuples(st.integers(0, 10**6), ANY, ANY), max_size=120))
def test_curves_of_any_numbers(points: list[tuple[int, float, float]]) -> None:
    curves = [{"step": step, "loss": loss, "norm": norm, "rate": norm} for step, loss, norm in points]
    curves += [{"step": step, "split": "dev", "metrics": {"F1": loss, "loss": norm}} for step, loss, norm in points[:5]]
    check_drawing(draw_curves(RunFacts(task="tag", curves=curves, best_step=7)))


def test_the_best_checkpoint_is_marked_where_it_stands() -> None:
    picture = draw_curves(RunFacts(task="tag", curves=make_curves(100, ("F1",)), best_step=50))
    assert picture.count("best: step 50") == 2  # in the loss and in the scores
    found = {float(at) for at in re.findall(r'<line x1="([\d.]+)"[^>]*class="best"', picture)}
    middle = Scale(0, 100, 56, 440 - 20)(50)
    assert found == {middle}


def test_a_gap_breaks_the_line() -> None:
    curves = [{"step": i, "loss": NAN if 10 <= i < 20 else 1.0 / i} for i in range(1, 31)]
    assert draw_curves(RunFacts(task="tag", curves=curves)).count("<path") == 2


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=2000))
def test_thinning_keeps_the_mean_and_smoothing_the_range(values: list[float]) -> None:
    points = [(float(i), value) for i, value in enumerate(values)]
    assert len(thin(points)) == min(len(points), 240)
    for found in (thin(points), smooth(points)):
        assert all(min(values) - 1e-3 <= y <= max(values) + 1e-3 for _, y in found)
        assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert smooth(points)[0][0] == 0 and smooth(points)[-1][0] == len(points) - 1


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=40), st.integers(1, 10**5), st.integers(1, 10**6))
def test_histograms(counts: list[int], width: int, limit: int) -> None:
    edges = [width * i for i in range(len(counts) + 1)]
    picture = draw_histogram({"edges": edges, "counts": counts, "limit": limit})
    check_drawing(picture)
    assert picture.count('class="fill c2"') == sum(edge >= limit for edge in edges[:-1])
    check_drawing(draw_histogram({"edges": edges, "counts": counts}))


@given(
    st.dictionaries(st.text(max_size=80), st.tuples(st.integers(0, 10**6), st.integers(0, 9)), min_size=1, max_size=60)
)
def test_bars(rows: dict[str, tuple[int, int]]) -> None:
    totals = [sum(row[i] for row in rows.values()) for i in range(2)]
    check_drawing(draw_bars(rows, ["train", "dev"], totals))
    check_drawing(draw_bars({name: row[:1] for name, row in rows.items()}, ["train"], totals[:1]))


@given(st.lists(st.tuples(ANY, ANY, st.integers(0, 10**6)), max_size=15))
def test_reliability(found: list[tuple[float, float, int]]) -> None:
    bins = [{"confidence": sure, "accuracy": right, "count": count} for sure, right, count in found]
    picture = draw_reliability(bins, bins)
    check_drawing(picture)
    assert 'class="diagonal"' in picture


@given(ANY, ANY, ANY)
def test_intervals(value: float, low: float, high: float) -> None:
    score = {"value": value, "low": low, "high": high, "n": 3}
    check_drawing(draw_interval(score, span_scores([{"F1": score, "ece": {"value": 0.01}}])))


@given(st.integers(1, 40), st.integers(0, 10**9), st.integers(1, 200))
def test_maps_of_labels(n: int, count: int, length: int) -> None:
    counts = [[count if i == j or j == 0 else 0 for j in range(n)] for i in range(n)]
    picture = draw_confusion({"labels": [f"{i} " + "x" * length for i in range(n)], "counts": counts})
    check_drawing(picture)
    assert picture.count("<rect") == n * n


def test_the_most_confused_pairs() -> None:
    confusion = {"labels": ["a", "b", "c"], "counts": [[5, 3, 0], [0, 9, 1], [7, 0, 1]]}
    rows = re.findall(r"<tr>(.*?)</tr>", list_confusions(confusion, 2))[1:]
    cells = [re.findall(r"<td[^>]*>(?:<bdi>)?(.*?)(?:</bdi>)?</td>", row) for row in rows]
    assert cells == [["c", "a", "7", "87.5 %"], ["a", "b", "3", "37.5 %"]]
    assert list_confusions({"labels": ["a", "b"], "counts": [[1, 0], [0, 1]]}, 5) == ""


@given(st.floats(-1e20, 1e20), st.floats(-1e20, 1e20))
def test_steps_are_round_and_inside(one: float, other: float) -> None:
    low, high = sorted((one, other))
    steps = round_steps(low, high)
    room = 1e-6 * max(abs(low), abs(high), high - low)
    assert len(steps) <= 7 and all(low - room <= step <= high + room for step in steps)
    assert steps == sorted(steps)


@given(st.lists(st.floats(-1e20, 1e20), min_size=1), st.booleans())
def test_a_scale_holds_its_values(values: list[float], zero: bool) -> None:
    scale = Scale.around(values, 300, 10, zero=zero)
    assert scale.low <= min(values) and max(values) <= scale.high and scale.low < scale.high
    assert all(10 <= scale(value) <= 300 for value in values)


@given(st.text(max_size=300), st.floats(20, 200))
def test_short_texts_fit(text: str, width: float) -> None:
    assert measure(shorten(text, width)) <= width


@pytest.mark.parametrize(("shown", "wanted"), [
    (show_number(0.05), "0.05"), (show_number(2e-5), "2e-05"), (show_number(1200), "1,200"), (show_number(-3), "−3"),
    (show_number(3.2e8), "3.2e8"), (show_number(NAN), "not finite"), (show_score(0.92431), "0.9243"),
    (show_score(81.784), "81.78"), (show_score(None), "–"), (show_score(NAN), "–"), (show_share(1, 100_000), "< 0.1 %"),
    (show_share(99_999, 100_000), "> 99.9 %"), (show_share(0, 5), "0 %"), (show_share(5, 5), "100 %"),
    (show_share(1, 0), "0 %"), (show_seconds(59.7), "59.7 s"), (show_seconds(402.6), "6 min 43 s"),
    (show_seconds(7199.8), "2 h 00 min"),
])  # fmt: skip
def test_numbers_as_people_read_them(shown: str, wanted: str) -> None:
    assert shown == wanted
