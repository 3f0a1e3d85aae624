"""The model card against the readers it is for: PyYAML and the hub's own ModelCard."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
import transformers
import yaml
from evaluation.made_facts import classify_facts, span_facts, tag_facts
from huggingface_hub import ModelCard
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.evaluation.report import RunFacts
from bertsmith.evaluation.report.card import hub_metric, make_card
from bertsmith.evaluation.report.markup import visible
from bertsmith.evaluation.report.usage import FOLDER, use_bertsmith, use_command_line, use_transformers

RUNS = {
    "classify": classify_facts(),
    "pairs": replace(classify_facts(), pairs=True),
    "several": replace(classify_facts(), several=True, thresholds={"sport": 0.31, "travel": 0.44}),
    "tag": tag_facts(),
    "span": span_facts(),
    "bare": RunFacts(task="tag"),
}


def front_of(card: str) -> dict:
    start, front, _ = card.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(front)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_the_hub_reads_the_front_matter(run: RunFacts) -> None:
    card = make_card(run)
    front = front_of(card)
    kinds = {"classify": "text-classification", "tag": "token-classification", "span": "question-answering"}
    assert front["pipeline_tag"] == kinds[run.task] and "bertsmith" in front["tags"]
    read = ModelCard(card).data
    assert read.pipeline_tag == kinds[run.task]
    found = {(one.dataset_split, one.metric_name): one.metric_value for one in read.eval_results or []}
    wanted = {
        (split, name): round(s["value"], 6) for split, metrics in run.metrics.items() for name, s in metrics.items()
    }
    assert found == wanted


def test_a_folder_on_a_disk_is_no_base_model_and_its_place_is_not_told() -> None:
    assert front_of(make_card(RUNS["classify"]))["base_model"] == "microsoft/MiniLM-L12-H384-uncased"
    for base in ("/home/ada/models/minilm", "C:\\Users\\ada\\minilm", "./minilm"):
        card = make_card(RunFacts(task="tag", base=base, data={"files": {"train": "/home/ada/train.csv"}}))
        assert "base_model" not in front_of(card) and "ada" not in card and "minilm" in card and "train.csv" in card
        adapter = make_card(RunFacts(task="tag", base=base, settings={"lora": 8}))
        assert "ada/" not in adapter and "ada\\" not in adapter and 'from_pretrained("path/to/minilm"' in adapter


def test_a_task_of_ones_own_is_asked_by_its_class() -> None:
    card = make_card(RunFacts(task="stars", labels=["score"], metrics={"dev": {"close": {"value": 0.5}}}))
    assert "# A task of its own: stars" in card and "model.predict(Class, examples)" in card
    assert "classify" not in card.lower() and "With transformers" not in card
    assert "bertsmith evaluate --task module:Class" in card
    for block in re.findall(r"```python\n(.*?)```", card, re.DOTALL):
        ast.parse(block)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_the_code_in_a_card_is_python(run: RunFacts) -> None:
    blocks = re.findall(r"```python\n(.*?)\n```", make_card(run), re.DOTALL)
    assert len(blocks) == 2
    assert ["bertsmith" in block for block in blocks] == [True, False]
    for block in blocks:
        ast.parse(block)


def test_the_card_says_scores_labels_limits_and_settings() -> None:
    card = make_card(RUNS["several"])
    assert "| dev | accuracy | 0.9243 | 0.9091 – 0.9382 | 1,234 |" in card
    wanted = (
        "## Limits",
        "The dev set chose the checkpoint, the thresholds and the temperature",
        "| science and technology |",
        "| rate | 5e-05 |",
        "the tuned thresholds; the temperature",
        'function_to_apply="sigmoid"',
        "14 texts stand in both",
    )
    for words in wanted:
        assert words in card, words


@pytest.mark.parametrize("name", ["classify", "pairs", "several", "tag", "span"])
def test_the_code_for_transformers_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "text", "was", "the", "bridge", "built", ".", "?"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    transformers.BertTokenizerFast.from_pretrained(tmp_path).save_pretrained(tmp_path)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    names = {"id2label": {0: "O", 1: "B-X"}, "label2id": {"O": 0, "B-X": 1}}
    config = transformers.BertConfig(vocab_size=len(vocabulary), **names, **sizes)
    kinds = {"tag": transformers.BertForTokenClassification, "span": transformers.BertForQuestionAnswering}
    kinds.get(name, transformers.BertForSequenceClassification)(config).save_pretrained(tmp_path)
    exec(use_transformers(RUNS[name]).replace(FOLDER, str(tmp_path)), {})
    shown = capsys.readouterr().out
    assert shown.endswith("\n")
    if name in ("classify", "pairs", "several"):
        answers = ast.literal_eval(shown)
        assert {one["label"] for one in (answers[0] if isinstance(answers[0], list) else answers)} == {"O", "B-X"}


def test_tags_and_kinds_of_entities_are_told_apart() -> None:
    card = make_card(RUNS["tag"])
    assert "It answers with: O, B-PER, I-PER," in card and "| PER | 0.840 |" in card and "| B-PER |" not in card


def test_a_folder_that_looks_like_a_name_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "minilm").mkdir(parents=True)
    run = RunFacts(task="tag", base="models/minilm")
    assert front_of(make_card(run))["base_model"] == "models/minilm"
    monkeypatch.chdir(tmp_path)
    assert "base_model" not in front_of(make_card(run))


def test_the_mask_is_spelled_as_the_tokenizer_has_it() -> None:
    assert 'bertsmith fill "Ada <mask> in London."' in make_card(RunFacts(task="mask", mask="<mask>"))
    mix = RunFacts(task="several", mask="<mask>", members=[{"name": "words", "task": "mask"}])
    assert 'bertsmith fill "Ada <mask> in London." --model' in use_command_line(mix)


def test_a_bare_run_has_a_bare_card() -> None:
    assert re.findall("^## (.*)", make_card(RUNS["bare"]), re.MULTILINE) == ["How to use it"]


@given(st.text(st.characters(), max_size=40), st.text(st.characters(), min_size=1, max_size=20), st.floats())
def test_any_text_stays_one_value(text: str, name: str, value: float) -> None:
    facts = RunFacts(
        task="classify", title=text, base=text, labels=[name], metrics={name: {name: {"value": value, "n": 1}}},
        settings={name: text}, command=text, data={"findings": [{"sentence": text}], "files": {"train": text}},
    )  # fmt: skip
    card = make_card(facts)
    card.encode("utf-8")
    front = front_of(card)
    assert set(front) <= {"library_name", "pipeline_tag", "base_model", "tags", "metrics", "model-index"}
    assert front["metrics"] == [visible(hub_metric(name))]
    if "model-index" in front and text:
        assert front["model-index"][0]["name"] == visible(text)
    rows = [line for line in card.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"\|", row)) in (3, 4, 6) for row in rows)


def test_names_in_code_are_spelt_as_they_are() -> None:
    members = [{"name": "sst_2", "task": "classify"}, {"name": "_words_", "task": "mask"}]
    mix = RunFacts(task="several", members=members)
    assert 'model.use("sst_2").classify(' in use_bertsmith(mix) and 'model.use("_words_")' in use_bertsmith(mix)
    assert "--use sst_2\n" in use_command_line(mix)
    adapter = make_card(RunFacts(task="classify", base="ann/my_base_a", labels=["a"], settings={"lora": 8}))
    assert 'from_pretrained("ann/my_base_a", num_labels=1)' in adapter
