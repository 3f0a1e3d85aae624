"""The report: well-formed, stand-alone, safe for any text, and silent about what is not known."""

import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from evaluation.made_facts import classify_facts, make_confusion, rows_of, span_facts, tag_facts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.data.doctor import diagnose
from bertsmith.data.examples import SpanExample, TextExample
from bertsmith.errors import BertsmithError
from bertsmith.evaluation.report import RunFacts, add_diagnosis, read_metrics, write_report
from bertsmith.evaluation.report.card import make_card
from bertsmith.evaluation.report.excerpts import choose_words, cut_around, cut_middle
from bertsmith.evaluation.report.page import make_page

RUNS = {"classify": classify_facts(), "tag": tag_facts(), "span": span_facts()}
VOID = {"meta", "br", "hr", "img", "input", "link"}
NASTY = "<script>alert(1)</script>\"' onload=x &amp; <!-- \x00\x07\u202eevil\u2066 \ud800 ]]> </style> 💡 \u2028"


class Outline(HTMLParser):
    """Checks that every tag is closed in order; gathers what a browser would load, run or show."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(data)


def check_page(page: str) -> Outline:
    """What must be true of any report."""
    page.encode("utf-8")
    outline = Outline(page)
    assert not {tag for tag, _ in outline.tags} & {"script", "img", "link", "iframe", "object", "embed", "base", "use"}
    for tag, attributes in outline.tags:
        assert not any(name.startswith("on") or name in ("src", "srcset", "xlink:href") for name in attributes), tag
        assert attributes.get("href", "#").startswith("#")  # type: ignore[union-attr]
        check_numbers(attributes)
    assert "http://" not in page and "https://" not in page and "url(" not in page and "@import" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in outline.tags if tag == "a"]
    assert links == [f"#{one}" for one in ids]
    return outline


def check_numbers(attributes: dict[str, str | None]) -> None:
    """Coordinates are finite and none of a drawing lies far outside it."""
    for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "viewBox", "fill-opacity"):
        value = attributes.get(name)
        if value is None or (name in ("width", "height") and "content" in attributes):
            continue
        numbers = [float(found) for found in re.sub("[ML]", " ", value).split()]
        assert numbers and all(-50 <= number <= 5000 for number in numbers), (name, value)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_whole_report_is_well_formed_and_stands_alone(run: RunFacts, tmp_path: Path) -> None:
    write_report(tmp_path / "new" / "folder", run)
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "metrics.json", "report.html"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    outline = check_page(page)
    shown = " ".join(outline.text)
    for words in ("Scores", "Training", "Worst errors", "Lengths and cutting", "Settings", run.title, run.command):
        assert words in shown
    assert len(page) < 400_000


def test_the_page_forbids_what_it_does_not_need() -> None:
    policy = next(a["content"] for _, a in check_page(make_page(RUNS["tag"])).tags if "http-equiv" in a)
    assert policy is not None and "default-src 'none'" in policy and "script-src" not in policy


def test_a_run_that_knows_nothing_has_no_sections() -> None:
    outline = check_page(make_page(RunFacts(task="classify")))
    assert not {"section", "svg", "table", "nav"} & {tag for tag, _ in outline.tags}


OPTIONAL = [field.name for field in fields(RunFacts) if field.name != "task"]


@pytest.mark.parametrize("name", OPTIONAL)
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_part_that_is_absent_leaves_no_empty_section(run: RunFacts, name: str) -> None:
    without = replace(run, **{name: getattr(RunFacts(task=run.task), name)})
    alone = replace(RunFacts(task=run.task), **{name: getattr(run, name)})
    for facts in (without, alone):
        page = make_page(facts)
        check_page(page)
        assert not re.search(
            r"<(section|table|ul|figure|p|tbody|pre|nav|main)[^>]*>\s*</\1>", page.replace("<main></main>", "")
        )
        assert not re.search(r"</h2>\s*</section>", page)


def poison(value: object) -> object:
    """The same facts with a nasty text in place of every text, keys of free tables too."""
    if isinstance(value, str):
        return value + NASTY
    if isinstance(value, dict):
        return {k + NASTY if k.islower() is False or " " in k else k: poison(v) for k, v in value.items()}
    return [poison(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_no_text_of_the_data_becomes_markup(run: RunFacts, tmp_path: Path) -> None:
    facts = RunFacts(**{f.name: poison(getattr(run, f.name)) if f.name != "task" else run.task for f in fields(run)})
    facts.data["balance"] = {"train": {NASTY: 3}}
    facts.settings = {NASTY: NASTY}
    write_report(tmp_path, facts)
    outline = check_page((tmp_path / "report.html").read_text(encoding="utf-8"))
    shown = " ".join(outline.text)
    assert "<script>alert(1)</script>" in shown  # as words
    assert "␀␇[U+202E]evil[U+2066] [U+D800]" in shown
    assert (
        "<script"
        not in (tmp_path / "README.md").read_text(encoding="utf-8").split("## Run it again")[0].split("---")[2]
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(), max_size=60), st.text(st.characters(), min_size=1, max_size=30))
def test_any_text_is_harmless(text: str, label: str) -> None:
    errors = [{"text": text, "pair": label, "gold": label, "predicted": text, "score": 0.5, "where": text}]
    facts = RunFacts(
        task="classify", title=text, base=label, errors=errors, settings={label: text}, labels=[label],
        confusion={"labels": [label, text], "counts": [[1, 2], [0, 3]]},
        metrics={"dev": {label: {"value": 0.5, "n": 3}}},
        data={"findings": [{"level": label, "sentence": text}], "balance": {"train": {label: 2, text: 1}}},
    )  # fmt: skip
    check_page(make_page(facts))
    spans = [{"question": text, "context": text + label, "gold": [label], "predicted": text[:3], "score": None}]
    check_page(make_page(RunFacts(task="span", errors=spans)))
    words = [{"words": [text, label], "gold": ["O", label], "predicted": ["O", text], "score": 0.1}]
    check_page(make_page(RunFacts(task="tag", errors=words)))


def test_metrics_come_back_as_they_were(tmp_path: Path) -> None:
    for name, run in RUNS.items():
        write_report(tmp_path / name, run)
        assert read_metrics(tmp_path / name) == replace(run, curves=[], errors=[])
        kept = json.loads((tmp_path / name / "metrics.json").read_text(encoding="utf-8"))
        assert kept["metrics"] == run.metrics and kept["best_step"] == run.best_step


def test_metrics_that_another_version_wrote_or_somebody_lost(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"metrics": {"dev": {}}, "unheard_of": 1}')
    assert read_metrics(tmp_path) == RunFacts(task="", metrics={"dev": {}})
    (tmp_path / "metrics.json").unlink()
    with pytest.raises(BertsmithError, match=r"metrics\.json cannot be read: No such file or directory\.$"):
        read_metrics(tmp_path)


def test_metrics_are_json_without_nan(tmp_path: Path) -> None:
    broken = {"dev": {"F1": {"value": float("nan"), "low": float("-inf"), "high": float("inf"), "n": 0}}}
    write_report(tmp_path, RunFacts(task="tag", metrics=broken))

    def refuse(word: str) -> None:
        raise AssertionError(word)

    kept = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert kept["metrics"]["dev"]["F1"] == {"value": None, "low": None, "high": None, "n": 0}
    check_page((tmp_path / "report.html").read_text(encoding="utf-8"))


def test_writing_again_replaces(tmp_path: Path) -> None:
    write_report(tmp_path, RUNS["tag"])
    write_report(tmp_path, RUNS["span"])
    assert RUNS["span"].title in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == 3


def test_errors_come_in_the_order_of_surety() -> None:
    scores = [0.2, None, 0.9, float("nan"), 0.5]
    errors = [{"text": f"text {score}", "gold": "a", "predicted": "b", "score": score} for score in scores]
    page = make_page(RunFacts(task="classify", errors=errors))
    assert re.findall(r"text ([\w.]+)<", page) == ["0.9", "0.5", "0.2", "None", "nan"]


def test_several_labels_are_told_apart() -> None:
    errors = [{"text": "t", "gold": ["joy", "love"], "predicted": ["joy", "fear"], "score": 0.7}]
    shown = " ".join(Outline(make_page(RunFacts(task="classify", several=True, errors=errors))).text)
    assert re.search(r"missed\s+love\s+added\s+fear\s+right\s+joy", shown)


def test_long_texts_show_what_matters() -> None:
    context = "word " * 20_000 + "the answer is forty two indeed " + "word " * 20_000
    start = context.index("forty two")
    error = {"question": "What?", "context": context, "gold": ["forty two"], "gold_start": start,
             "predicted": "is forty", "predicted_start": context.index("is forty"), "score": 1.0}  # fmt: skip
    page = make_page(RunFacts(task="span", errors=[error]))
    marked = '<mark class="said">is </mark><mark class="gold said">forty</mark><mark class="gold"> two</mark>'
    assert marked in page
    words, gold = ["w"] * 40_000, ["O"] * 40_000
    said = [*gold[:30_000], "B-X", *gold[30_001:]]
    tags = make_page(RunFacts(task="tag", errors=[{"words": words, "gold": gold, "predicted": said, "score": 0.4}]))
    texts = make_page(
        RunFacts(task="classify", errors=[{"text": context, "gold": "a", "predicted": "b", "score": 0.4}])
    )
    empty = len(make_page(RunFacts(task="tag")))
    assert max(len(page), len(tags), len(texts)) < empty + 4000
    assert "B-X" in tags and "characters left out" in texts


@given(st.text(max_size=3000), st.integers(0, 200), st.integers(0, 200))
def test_a_cut_text_keeps_its_ends(text: str, head: int, tail: int) -> None:
    shown = cut_middle(text, head, tail)
    assert shown == text or (len(shown) <= head + tail + 60 and "characters left out" in shown)


@given(st.text("ab ", max_size=900), st.lists(st.tuples(st.integers(0, 900), st.integers(0, 40)), max_size=4))
def test_what_is_cut_around_places_holds_them(text: str, found: list[tuple[int, int]]) -> None:
    places = [(min(start, len(text)), min(start + length, len(text))) for start, length in found]
    parts = cut_around(text, places)
    assert all(any(low <= start and end <= high for low, high in parts) for start, end in places)
    flat = [edge for part in parts for edge in part]
    assert flat == sorted(flat) and flat[0] >= 0 and flat[-1] <= len(text)


@given(st.integers(1, 300), st.data())
def test_chosen_words_hold_the_wrong_ones(length: int, data: st.DataObject) -> None:
    wrong = sorted(data.draw(st.sets(st.integers(0, length - 1), max_size=40)))
    parts = choose_words(wrong, length)
    assert all(any(low <= i < high for low, high in parts) for i in wrong)
    flat = [edge for part in parts for edge in part]
    assert flat == sorted(flat)


def test_caveats_say_what_the_dev_set_chose() -> None:
    shown = " ".join(Outline(make_page(RUNS["classify"])).text)
    assert "The dev set chose the checkpoint and the temperature" in shown and "no test set was scored" in shown
    assert "the test set chose nothing" in " ".join(Outline(make_page(RUNS["tag"])).text)
    assert "The dev set chose the checkpoint and the threshold" in " ".join(Outline(make_page(RUNS["span"])).text)
    assert "dev set chose" not in make_page(RunFacts(task="tag", metrics={"dev": {"F1": {"value": 0.5, "n": 9}}}))


@pytest.mark.parametrize("n", [1, 2, 7, 40, 41, 60])
def test_any_number_of_labels(n: int) -> None:
    labels = [f"label number {i} with a rather long name" * (1 + i % 3) for i in range(n)]
    confusion = make_confusion(labels)
    balance = {"train": {label: 5 * i for i, label in enumerate(labels)}, "dev": {labels[0]: 1}}
    facts = RunFacts("classify", confusion=confusion, per_label=rows_of(confusion), data={"balance": balance})
    outline = check_page(make_page(facts))
    maps = [a for tag, a in outline.tags if tag == "svg" and "map" in (a.get("class") or "")]
    assert len(maps) == (n <= 40)
    assert ("too many for a map" in " ".join(outline.text)) == (n > 40)


def test_what_the_doctor_found_is_shown(tmp_path: Path) -> None:
    train = [
        TextExample("word " * (i % 90 + 1), None, ("good" if i % 3 else "bad",), f"a.csv, row {i}") for i in range(90)
    ]
    diagnosis = diagnose(train, train[:9], "classify", lengths=None, limit=64)
    facts = RunFacts("classify")
    add_diagnosis(facts, diagnosis, "head")
    assert facts.data["counts"] == {"train": 90, "dev": 9} and facts.data["balance"]["train"] == {"good": 60, "bad": 30}
    assert sum(facts.lengths["train"]["counts"]) == 90 and facts.lengths["train"]["examples_cut"] == 26
    write_report(tmp_path, facts)
    shown = " ".join(check_page((tmp_path / "report.html").read_text(encoding="utf-8")).text)
    assert diagnosis.findings and all(finding.sentence in shown for finding in diagnosis.findings)
    assert "26 of 90 examples (28.9 %) are longer than 64 tokens and are cut (policy head)" in shown
    alone = RunFacts("span")
    spans = [SpanExample(f"Who is {i}?", "It is Ada.", (("Ada", 6),), where=f"a.json, question {i}") for i in range(30)]
    add_diagnosis(alone, diagnose(spans, None, "span", lengths=None, limit=None), "windows")
    check_page(make_page(alone))


def test_gold_answers_are_shown_once_and_none_is_named() -> None:
    mistake = {"question": "Who?", "context": "It is Ada.", "score": 0.5, "where": ""}
    said = {"predicted": "Ada", "predicted_start": 6}
    none = {**mistake, **said, "gold": [""], "gold_start": None}
    twice = {**mistake, "predicted": "", "predicted_start": 0, "gold": ["Ada", "Ada", "is Ada", "Ada"], "gold_start": 6}
    shown = ["".join(check_page(make_page(RunFacts("span", errors=[error]))).text) for error in (none, twice)]
    assert "said Ada" in shown[0] and "gold no answer" in shown[0]
    assert "said no answer" in shown[1] and "gold Adais Ada0.500 sure" in shown[1]


def test_a_file_of_many_labels_keeps_the_mistakes_made_most(tmp_path: Path) -> None:
    """The report and the card are those of the whole table, which is kept up to a hundred labels."""
    n = 240
    counts = [[5 * (i == j) or (i * 7 + j * 3) % 11 * (j % 9 == 0) for j in range(n)] for i in range(n)]
    confusion = {"labels": [f"label {i}" for i in range(n)], "counts": counts}
    write_report(tmp_path, RunFacts("classify", confusion=confusion))
    kept = json.loads((tmp_path / "metrics.json").read_text())["confusion"]
    wrong = sorted((-counts[i][j], i, j) for i in range(n) for j in range(n) if i != j and counts[i][j])
    assert kept["most"] == [[i, j, -count] for count, i, j in wrong[:1000]]
    assert kept["left_out"] == {"pairs": len(wrong) - 1000, "examples": -sum(count for count, _, _ in wrong[1000:])}
    assert kept["gold"] == list(map(sum, counts)) and kept["right"] == [5] * n and "counts" not in kept
    assert "metrics.json, 1,000 pairs at most" in (tmp_path / "report.html").read_text()

    whole, again = RunFacts("classify", confusion=confusion), read_metrics(tmp_path)
    assert make_page(again).partition("Confusion")[2] == make_page(whole).partition("Confusion")[2]
    assert make_card(again) == make_card(whole)
    small = make_confusion([f"label {i}" for i in range(100)])
    write_report(tmp_path, RunFacts("classify", confusion=small))
    assert json.loads((tmp_path / "metrics.json").read_text())["confusion"] == small
