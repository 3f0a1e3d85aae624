"""The recipe of the house model: what is gathered, what is kept apart, what is measured and told of it."""

import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The scripts stand outside the package, and find each other by their folders."""
    added = [str(ROOT / name) for name in ("house", "benchmarks", "docs")]
    sys.path[:0] = added
    yield
    for path in added:
        sys.path.remove(path)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A few lines of each set in its makers' format."""
    folder = tmp_path_factory.mktemp("sets")
    write_nli(folder)
    write_questions(folder)
    for name, lines in {
        "glue/SST-2/train.tsv": ["sentence\tlabel", "a fine film\t1", "dull\t0"],
        "imdb/train.jsonl": [json.dumps({"text": "Long and good.", "label": "pos"})],
        "wikiann_en/train": ["en:Paris\tB-LOC", "en:is\tO", "", "en:Rome\tB-LOC"],
        "multilingual/de.txt": ["Ein Satz."],
    }.items():
        write(folder / name, lines)
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_nli(folder: Path) -> None:
    from gathering import NLI

    for number, source in enumerate(NLI):
        pairs = [(f"premise {number}", f"{label} {number}", label) for label in ("entailment", "contradiction")]
        pairs += [("shared", "pair", "neutral")]
        if source.path.endswith(".tsv"):
            rows = ["index\tsentence1\tsentence2\tgold_label"]
            rows += [f"{i}\t{a}\t{b}\t{label}" for i, (a, b, label) in enumerate(pairs)]
            write(folder / source.path, [*rows, "9\tno\tlabel\t-"])
        else:
            label = {"neutral": "not_entailment"} if "scitail" in source.path else {}
            rows = [json.dumps({"premise": a, "hypothesis": b, "label": label.get(c, c)}) for a, b, c in pairs]
            write(folder / source.path, rows)


def write_questions(folder: Path) -> None:
    from gathering import SQUAD, UNANSWERABLE

    for source in (*SQUAD, UNANSWERABLE):
        qas = [{"id": "1", "question": f"who in {source.path}?", "answers": [{"text": "Ada", "answer_start": 0}]}]
        if source is UNANSWERABLE:
            qas += [{"id": "2", "question": "why?", "answers": [], "is_impossible": True}]
        article = {"title": "t", "paragraphs": [{"context": "Ada wrote.", "qas": qas}]}
        write(folder / source.path, [json.dumps({"version": "1.1", "data": [article]})])


def test_each_pair_once_and_what_counts_twice_twice(data):
    from gathering import NLI, gather_nli

    records, counts = gather_nli(data)
    assert {record["label"] for record in records} == {"entailment", "contradiction", "neutral"}
    assert counts[NLI[0].path] == 3 and all(counts[source.path] == 2 for source in NLI[1:])  # "shared" is known by then
    assert len(records) == sum(counts[source.path] * source.times for source in NLI)
    assert records == gather_nli(data)[0]  # the same order every time


def test_what_is_shipped_leaves_out_what_may_not_go_along(data):
    from gathering import NLI, SQUAD, gather_nli, gather_questions

    counts = gather_nli(data, shipped=True)[1]
    assert all("-NC" not in source.licence for source in NLI if source.path in counts) and len(counts) < len(NLI)
    articles, counts = gather_questions(data, shipped=True, unanswerable=True)
    assert len([one for one in counts if "elsewhere" not in one]) == sum(source.is_shipped for source in SQUAD) + 1
    ids = [qa["id"] for article in articles for one in article["paragraphs"] for qa in one["qas"]]
    assert len(ids) == len(set(ids))  # two sets number their questions alike


def test_sentiment_speaks_one_language(data):
    from gathering import gather_sentiment

    assert {record["label"] for record in gather_sentiment(data)[0]} == {"positive", "negative"}


def test_search_pairs_have_something_that_does_not_belong(data):
    from gathering import gather_search

    records, counts = gather_search(data, shipped=True)
    assert counts["asked twice"] == 0 and all(set(record) == {"text", "pair", "negative"} for record in records)


def test_half_of_the_sentences_follow(tmp_path):
    from gathering import gather_follows

    documents = [[f"This is sentence number {i} of story {d} here." for i in range(6)] for d in range(3)]
    write(tmp_path / "text.txt", [" ".join(one) + "\n" for one in documents])
    records, counts = gather_follows(tmp_path / "text.txt", pairs=40)
    assert counts == {"documents": 3, "pairs": 40}
    for record in records:
        first, second = (next(one for one in documents if record[side] in one) for side in ("text", "pair"))
        follows = first is second and first.index(record["pair"]) == first.index(record["text"]) + 1
        assert follows == (record["label"] == "follows")


def test_what_is_asked_elsewhere_has_no_answer_there():
    from gathering import ask_elsewhere

    def ask(number: int, answer: str) -> dict:
        return {"id": str(number), "question": f"{number}?", "answers": [{"text": answer, "answer_start": 0}]}

    contexts = ["Ada wrote notes.", "Bob met Ada in Rome.", "It rained in Oslo."]
    asked = [[ask(0, "Ada")], [ask(1, "Rome"), ask(2, "Ada")], [ask(3, "Oslo")]]
    paragraphs = [{"context": one, "qas": qas} for one, qas in zip(contexts, asked, strict=True)]
    (found,) = ask_elsewhere([{"title": "t", "paragraphs": paragraphs}], share=1.0)
    moved = {qa["id"]: (one["context"], qa) for one in found["paragraphs"] for qa in one["qas"]}
    assert set(moved) == {"0", "1", "2", "3"} and all(qa["is_impossible"] and not qa["answers"]
                                                      for _, qa in moved.values())  # fmt: skip
    assert moved["0"][0] == moved["2"][0] == contexts[2]  # the only one that does not speak of Ada
    assert moved["1"][0] != contexts[1] and moved["3"][0] != contexts[2]
    assert not ask_elsewhere([{"title": "alone", "paragraphs": paragraphs[:1]}], share=1.0)


def test_sentences_with_names_are_taken_where_every_capital_is_explained(tmp_path):
    from naming import Known, explain, gather_names, read_tagged

    people = [("Ada", "Byron"), ("Ada", "Lovelace"), ("Alan", "Byron"), ("Alan", "Turing"), ("Kurt", "Turing")]
    lines = [line for a, b in people for line in (f"en:{a}\tB-PER", f"en:{b}\tI-PER", "")]
    lines += ["en:New\tB-LOC", "en:York\tI-LOC", "", "en:Paris\tB-LOC", "", "en:Paris\tB-LOC", ""]
    lines += ["en:Acme\tB-ORG", "", "en:Acme\tB-LOC", ""]  # of two kinds: not known
    write(tmp_path / "wikiann", lines)
    known = Known.learn(read_tagged(tmp_path / "wikiann"), {("Visby", "BBK"): "ORG", ("Hard", "Times"): "O"})
    small = {"the": 500, "in": 500, "paris": 0}

    def tags(text: str, about: str = "") -> list[str] | None:
        from collections import Counter

        return explain(text.split(), known, Counter(small), about)

    assert tags("In March Alan Lovelace left New York .") is None  # seen as a surname once only
    assert tags("In March Ada Turing left New York .") == ["O", "O", "B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    assert tags("Old New York is far .") is None  # who knows what is called so
    assert tags("Paris is old .") == ["B-LOC", "O", "O", "O"]
    assert tags("The old Acme works .") is None and tags("Zork is old .") is None
    assert tags("The New York Times is old .") is None  # a longer name than is known
    assert tags("The old Visby BBK won .") == ["O", "O", "B-ORG", "I-ORG", "O", "O"]
    assert tags("The old Hard Times sold well .") == ["O"] * 7  # a name, and of nothing that is tagged
    assert tags("In Holmes County it rains .") == ["O", "B-LOC", "I-LOC", "O", "O", "O"]
    assert tags("The old Zork won .") is None and tags("The old Zork won .", about="Zork")[2] == "B-PER"
    text = ["The sky was grey over all of the land today.", "Then Kurt Turing met Ada Byron in old Paris.",
            "Then Zork met the king of the land there."]  # fmt: skip
    write(tmp_path / "text.txt", [" ".join(text) + " Then the sun and then the rain." * 300])
    found = gather_names([tmp_path / "wikiann"], [tmp_path / "text.txt"], count=30)
    spoken = {" ".join(word for word, _ in rows): [tag for _, tag in rows] for rows in found}
    assert spoken["Then Kurt Turing met Ada Byron in old Paris ."].count("B-PER") == 2
    assert not any("Zork" in one for one in spoken)
    bare = [rows for rows in found if all(tag == "O" for _, tag in rows)]
    assert len(bare) == 10 and min(map(len, bare)) < 6 <= max(map(len, bare))


@pytest.mark.parametrize(("sentence", "name", "kind"), [
    ("Visby BBK is a basketball club in Visby, Sweden.", "Visby BBK", "ORG"),
    ("The Nièvre is a river in France.", "Nièvre", "LOC"),
    ("Memphis is the largest city in the state of Tennessee.", "Memphis", "LOC"),
    ("Wayne Maki (November 20, 1944 – May 12, 1974) was a Canadian ice hockey left winger.", "Wayne Maki", "PER"),
    ("Francis Matthews (born 1927) was an English film, stage and television actor.", "Francis Matthews", "PER"),
    ("The Seven Weeks War (1866 – 1866) was a war between Prussia and Austria.", "Seven Weeks War", "O"),
    ("Rear Window is a movie from 1954.", "Rear Window", "O"),
])  # fmt: skip
def test_a_first_sentence_tells_what_a_name_is_of(sentence, name, kind):
    from defining import find_defined

    assert find_defined(sentence) == (tuple(name.split()), kind)


@pytest.mark.parametrize("sentence", [
    "Rocks is an album by Aerosmith.",  # a word of its own
    "The Ones are a group of islands or of people.",
    "It is a city.", "perfectionism is the belief that one can be perfect.", "",
])  # fmt: skip
def test_what_a_first_sentence_does_not_tell_for_sure_is_not_taken(sentence):
    from defining import find_defined

    assert find_defined(sentence) is None


def test_letters_are_of_the_kind_of_the_name_that_they_stand_for():
    from defining import learn_short_forms

    text = "The National Hockey League (NHL) and the University of Utah (UU), not the Old Inn (OI) nor me (ME)."
    found = list(learn_short_forms(text, {("National", "Hockey", "League"): "ORG"}))
    assert found == [(("NHL",), "ORG"), (("UU",), "ORG")]


def test_benchmarks_of_tags_are_excluded_as_sentences(data, tmp_path):
    from cleaning import list_benchmarks

    found = list_benchmarks(data, tmp_path)
    assert data / "glue" in found and data / "multilingual" not in found
    assert (tmp_path / "exclude/wikiann_en/train.txt").read_text().splitlines() == ["Paris is", "Rome"]


def known(turn, task, value):
    metrics = {task.metric: {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 9}}
    return {"name": turn.name, "model": turn.model, "metrics": metrics}


def make_house(tmp_path: Path):
    from house import House
    from pretrained import Figures

    options = Namespace(out=tmp_path / "house.json", again=False, tiny=False, folders={"ours": "x"}, keep=str(tmp_path),
                        device="cpu", threads=1, commit="c", data=tmp_path)  # fmt: skip
    return House(options, Figures(options, "python benchmarks/house.py"))


def test_the_rate_is_chosen_by_the_first_seed_and_the_median_tells(tmp_path):
    from house import Turn, summarize
    from house_rows import FIVE, TASKS

    house = make_house(tmp_path)
    assert house.best_rate("ours", "cola") is None and house.others("ours", "cola") == []
    for name in FIVE:
        task = TASKS[name]
        for place, rate in enumerate(task.rates):
            house.figures.rows |= one(Turn("ours", name, rate, 1), task, 0.5 + 0.1 * (place == 1))
        assert house.best_rate("ours", name) == task.rates[1]
        others = house.others("ours", name)
        assert [turn.seed for turn in others] == list(range(2, task.seeds + 1))
        for turn in others:
            house.figures.rows |= one(turn, task, 0.7)
    told = summarize(house)["ours"]["glue5"]
    assert told["value"] == pytest.approx(70) and told["tasks"]["cola"]["scores"] == [60, 70, 70, 70, 70]
    house.options.folders = {"another": "y"}  # of a later call for the same file
    assert summarize(house)["ours"]["glue5"] == told
    assert told["tasks"]["sst2"]["seeds"] == 3 and told["low"] < 70 < told["high"] and told["high"] - 70 < 10


def test_a_start_made_anew_is_used_though_it_fell_behind_a_rate_whose_weights_are_gone(tmp_path):
    from house import Turn
    from house_rows import TASKS

    house, warm = make_house(tmp_path), Turn("ours", "rte-warm", 3e-5, 1)
    assert house.start(warm) is None
    first = house.first("ours", "nli")
    for turn, value in zip(first, (0.7, 0.6), strict=True):
        house.figures.rows |= one(turn, TASKS["nli"], value)
    assert house.start(warm) is None  # known, but no weights
    house.home(first[1]).mkdir(parents=True)
    (house.home(first[1]) / "model.safetensors").touch()
    assert house.start(warm) == str(house.home(first[1]))
    house.home(first[0]).mkdir(parents=True)
    (house.home(first[0]) / "model.safetensors").touch()
    assert house.start(warm) == str(house.home(first[0]))


def one(turn, task, value):
    return {turn.name: known(turn, task, value)}


def test_every_mark_has_a_row_and_a_title():
    from house_rows import MARKS, MEASURES, TASKS, UNTRAINED, count_runs, plan_seconds
    from house_tables import TASKS as NAMES
    from house_tables import TITLES

    assert set(MARKS) == set(MEASURES) == set(TITLES) == {t.measure for t in TASKS.values()} | set(UNTRAINED)
    assert set(NAMES) == set(TASKS)
    assert all(low < goal < high for low, goal, high in MARKS.values())
    assert sum(plan_seconds(task, count_runs(task), 12) for task in TASKS.values()) < 1800  # half an hour a model


def test_the_shipped_heads_learnt_nothing_from_conll():
    from gathering import NLI, SENTIMENT, SQUAD
    from heads import HEADS

    from bertsmith.resident import JOBS

    files = [head.train for head in HEADS.values()] + [source.path for source in (*NLI, *SQUAD, *SENTIMENT)]
    assert not any("conll2003" in file for file in files)
    jobs = [job for head in HEADS.values() for job in head.jobs]
    assert len(jobs) == len(set(jobs)) and set(jobs) <= set(JOBS)


def test_the_card_is_filled_from_files_alone(monkeypatch):
    """That it is up to date is asked with the other pages' tables."""
    import house_tables
    from tables import fill_tables

    monkeypatch.setattr(house_tables, "read_results", lambda pattern: [])
    page = (ROOT / "house" / "CARD.md").read_text(encoding="utf-8")
    empty = fill_tables(page, house_tables.HOUSE, house_tables.MISSING)
    assert empty.count(house_tables.MISSING) == len(house_tables.HOUSE)


def test_a_free_form_learns_and_is_read_again(tmp_path):
    """In a process of its own: what it installs must not be there for other tests."""
    import os
    import subprocess

    script = f"""
import sys
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
import free_form, torch
free_form.install()
from bertsmith.data.batch import Batch
from bertsmith.models.checkpoint import load_checkpoint, save_checkpoint
from bertsmith.models.fresh import make_fresh
import numpy as np
made = make_fresh("free-base", ["mask"], {{"vocabulary": 50, "depth": 4, "width": 32, "heads": 2, "inner": 128,
    "positions": 32, "window": 0, "global_every": 1}}, {{}})
network = made.network
ids = np.arange(10)
batch = Batch.of_flat(ids, np.zeros_like(ids), (6, 4), torch.device("cpu"))
with torch.no_grad():
    network.stream.bias.normal_()
hidden = network(batch)
hidden.square().sum().backward()
assert all(p.grad is not None and p.grad.abs().sum() > 0 for n, p in network.named_parameters()
           if not n.startswith("heads.") and n != "embed.norm.bias"), "some learns nothing"
q, k, _ = network.blocks[0].attention.qkv(torch.randn(3, 32)).view(3, 3, 2, 16).unbind(1)
assert torch.allclose(q.norm(dim=-1), torch.full((3, 2), 4.0), atol=1e-3)
save_checkpoint(made, __import__("pathlib").Path({str(tmp_path)!r}))
again = load_checkpoint(__import__("pathlib").Path({str(tmp_path)!r})).network
assert torch.equal(again(batch), hidden)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr[-1500:]


def test_every_trial_says_what_is_expected_and_asks_for_what_there_is():
    from proxies import LONG, TRIALS, USUAL, drop_sizes, spell

    from bertsmith.training.recipes import KINDS

    options = Namespace(tiny=False, seconds=60.0)
    for name, trial in TRIALS.items():
        assert len(trial.expected.split()) > 1, name
        words = spell(name, options)
        assert words[:2] == ["--recipe", trial.recipe] and words[-2] == "--minutes"
        assert float(words[-1]) == pytest.approx(trial.times, rel=1e-3)
        settings = [word[2:].replace("-", "_") for word in words if word.startswith("--")]
        assert set(settings) <= {"recipe", "minutes", *KINDS}, name
        assert not {"--depth", "--tokens"} & set(drop_sizes(trial.flags).split())
    assert TRIALS["smith"].flags == "" and TRIALS["smith"].corpus == USUAL and set(LONG) <= set(TRIALS)
