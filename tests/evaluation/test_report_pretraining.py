"""The curves of a pretraining: well formed and inside their frame for any log, over steps and tokens, one picture."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest
from evaluation.test_report_charts import ANY, BROKEN, check_drawing
from hypothesis import given, settings
from hypothesis import strategies as st
from pretraining_made import SHORT, SMALL, pretrain

from bertsmith.evaluation.report import RunFacts
from bertsmith.evaluation.report.axes import interpolate
from bertsmith.evaluation.report.numbers import show_count
from bertsmith.evaluation.report.pretraining_curves import choose_charts, draw_course, draw_picture

NAMES = ("masked_accuracy", "masked_loss", "next_sentence_accuracy", "next_sentence_loss")


def make_facts(curves, tokens=((0, 0), (10, 4096))):
    return RunFacts(task="mask", title="A <run> & more", curves=curves, tokens=list(tokens))


@pytest.mark.parametrize("curves", BROKEN.values(), ids=BROKEN)
def test_any_log_becomes_a_picture(curves):
    facts = make_facts(curves)
    check_drawing(draw_course(facts))
    picture = draw_picture(facts)
    if picture:
        assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
        # Where names of colours are not known, too.
        assert "rect.paper { fill: #ffffff; fill: var(--card); }" in picture


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 10**6), ANY, ANY), max_size=80), st.booleans())
def test_any_numbers_become_a_picture(points, several):
    curves = [{"step": step, "loss": loss, "masked": loss, "norm": norm} for step, loss, norm in points]
    names = NAMES if several else NAMES[:2]
    curves += [{"step": step, "split": "dev", "metrics": dict.fromkeys(names, one)} for step, one, _ in points[:5]]
    facts = make_facts(curves)
    check_drawing(draw_course(facts))
    picture = draw_picture(facts)
    assert not picture or ElementTree.fromstring(picture) is not None


def test_what_one_stage_asks_has_a_chart_of_its_own():
    """Words read onward and hidden words were one line, which jumped where the stages change."""
    plain = {"rate": 0.1, "skipped": 0, "epoch": 0.1, "norm": 1.0}
    curves = [{"step": step, "loss": 7.0, "next_token": 7.0, **plain} for step in (1, 2)]
    curves += [{"step": step, "loss": 4.0, "masked": 4.0, **plain} for step in (3, 4)]
    curves.append({"step": 4, "split": "dev", "metrics": {"masked_accuracy": 0.3, "masked_loss": 3.5}})
    charts = {one.title: {s.name: s.points for s in one.series} for one in choose_charts(make_facts(curves))}
    assert charts == {
        "Loss, masked": {"in training": [(3.0, 4.0), (4.0, 4.0)], "held out": [(4.0, 3.5)]},
        "Held-out accuracy": {"masked": [(4.0, 0.3)]},
        "Loss, next token": {"in training": [(1.0, 7.0), (2.0, 7.0)]},
    }


def test_a_run_without_a_record_has_no_picture():
    assert draw_picture(make_facts([])) == "" and draw_course(make_facts([])) == ""


@pytest.mark.parametrize(
    "count, shown", [(0, "0"), (950, "950"), (999.7, "1k"), (41_000, "41k"), (1_536_000, "1.54M"), (2e9, "2B")]
)
def test_counts_are_short(count, shown):
    assert show_count(count) == shown


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20, unique=True), st.floats(-10, 1010))
def test_between_two_points_lies_a_straight_line(places, at):
    known = [(place, 3 * place + 1) for place in sorted(places)]
    found = interpolate(at, known)
    assert (found is None) == (not known[0][0] <= at <= known[-1][0])
    assert found is None or math.isclose(found, 3 * at + 1, abs_tol=1e-6)


def read_facts(folder):
    curves = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return make_facts(curves)


@pytest.mark.parametrize(
    "recipe, titles",
    [("smith", ["Loss", "Held-out accuracy"]),
     ("bert", ["Loss, masked", "Held-out accuracy", "Loss, next sentence"]),
     ("electra", ["Loss, generator", "Held-out accuracy", "Loss, replaced"])],
)  # fmt: skip
def test_a_run_leaves_its_picture(corpus, tmp_path, recipe, titles):
    pretrain(corpus, tmp_path / "out", recipe, **SHORT)
    charts = choose_charts(read_facts(tmp_path / "out"))
    assert [chart.title for chart in charts] == titles
    assert [one.name for one in charts[0].series] == ["in training", "held out"]
    assert [step for step, _ in charts[0].series[1].points] == [4, 8, 12]
    texts = {element.text for element in ElementTree.parse(tmp_path / "out" / "curves.svg").iter()}
    assert {f"Pretraining: {recipe}", "tokens", "step", *titles} <= texts
    assert show_count(12 * SMALL["tokens"]) in texts  # what was seen at the end
    assert "](curves.svg)" in (tmp_path / "out" / "README.md").read_text()


def test_a_ramp_sees_fewer_tokens_at_first(corpus, tmp_path):
    pretrain(corpus, tmp_path / "out", "smith", max_steps=10, first_tokens=256, ramp=1.0, evaluate_every=5)
    texts = [element.text for element in ElementTree.parse(tmp_path / "out" / "curves.svg").iter()]
    counts = [256 * max(1, round((256 + 256 * step / 10) / 256)) for step in range(10)]
    assert show_count(sum(counts)) in texts and show_count(sum(counts[:4])) in texts
