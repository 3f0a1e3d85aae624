"""The whole road for words and for questions: CoNLL and raw text, SQuAD 1.1 and 2.0, against the reference's models."""

import json

import numpy as np
import pytest
import torch
import transformers
from whole.tiny import PEOPLE, TOWNS, as_conll, questions, sentences

import bertsmith

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"batch": 8, "rate": 2e-3, "device": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def tagger(tmp_path_factory, encoder):
    place = tmp_path_factory.mktemp("tagger")
    for side, verb in (("train", "lives"), ("dev", "works")):
        (place / f"{side}.conll").write_text(as_conll(sentences(verb)))
    run = bertsmith.finetune("tag", place, out=place / "model", model=encoder, epochs=15, **LEARN)
    return run, place


def test_tags_come_out_in_the_scheme_that_went_in(tagger):
    run, place = tagger
    settings = run.model.trained["settings"]
    assert (settings["scheme"], settings["label_scheme"]) == ("iob1", "iob2")
    assert run.metrics["dev"]["f1"]["value"] == 1
    assert bertsmith.evaluate(run.folder, place)["metrics"] == run.metrics["dev"]
    for sentence in sentences():
        result = run.model.tag(" ".join(word for word, _ in sentence))
        assert result.tags == [tag for _, tag in sentence]
    found = run.model.tag("Ann lives in New York")
    assert [(a["entity_group"], a["word"], a["start"], a["end"]) for a in found] == [
        ("PER", "Ann", 0, 3), ("LOC", "New York", 13, 21),
    ]  # fmt: skip


def test_the_reference_reads_the_same_tags(tagger):
    run, _ = tagger
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.folder)
    reference = transformers.AutoModelForTokenClassification.from_pretrained(run.folder).eval()
    assert list(reference.config.id2label.values()) == run.model.trained["settings"]["labels"]
    text = "it was Ann in New York"
    read = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = read.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        chances = reference(**read).logits[0].softmax(-1)
    for answer in run.model.tag(text):
        words = [i for i, (start, end) in enumerate(offsets) if end and answer["start"] <= start < answer["end"]
                 and (start == 0 or text[start - 1] == " ")]  # fmt: skip
        theirs = [chances[i, reference.config.label2id[f"{'B' if i == words[0] else 'I'}-{answer['entity_group']}"]]
                  for i in words]  # fmt: skip
        assert answer["score"] == pytest.approx(float(np.mean([float(c) for c in theirs])), abs=1e-5)


def test_entities_marked_in_raw_text(tmp_path, encoder):
    records = []
    for person in PEOPLE:
        for town in TOWNS:
            text = f"{person} lives in {town}."
            spans = [(0, len(person), "PER"), (len(text) - 1 - len(town), len(text) - 1, "LOC")]
            records.append({"text": text, "entities": [{"start": a, "end": b, "label": c} for a, b, c in spans]})
    run = bertsmith.finetune(
        "tag", records, records, out=tmp_path / "m", model=encoder, epochs=15, check=False, **LEARN
    )
    assert run.metrics["dev"]["f1"]["value"] == 1
    for record in records:
        found = [{"start": a["start"], "end": a["end"], "label": a["entity_group"]}
                 for a in run.model.tag(record["text"])]  # fmt: skip
        assert found == record["entities"]


@pytest.fixture(scope="module", params=["1.1", "2.0"])
def reader(request, tmp_path_factory, encoder):
    """Contexts of some 100 tokens in windows of 48; in 2.0 half of the questions have no answer."""
    place = tmp_path_factory.mktemp("reader")
    given = questions(impossible=request.param == "2.0", filler=80)
    (place / "train.json").write_text(json.dumps(given))
    run = bertsmith.finetune(
        "span", place / "train.json", place / "train.json", out=place / "model", model=encoder, check=False, length=48,
        overlap=12, **{**LEARN, "rate": 4e-3, "epochs": 20},
    )  # fmt: skip
    asked = [(p["context"], qa) for p in given["data"][0]["paragraphs"] for qa in p["qas"]]
    return run, place, asked, request.param


def test_questions_over_windows(reader):
    run, place, asked, version = reader
    settings = run.model.trained["settings"]
    assert settings["impossible"] == (version == "2.0") and (settings["length"], settings["overlap"]) == (48, 12)
    found = bertsmith.evaluate(run.folder, place / "train.json")
    assert found["metrics"] == run.metrics["dev"] and found["truncated"]["tokens"] == 0
    assert run.metrics["dev"]["f1"]["value"] > 0.9
    assert ("no_answer_f1" in found["metrics"]) == (version == "2.0")
    model = run.model
    results = model.answer([qa["question"] for _, qa in asked], [context for context, _ in asked])
    texts = {}
    for (context, qa), result in zip(asked, results, strict=True):
        answer = result[0]
        assert context[answer["start"] : answer["end"]] == answer["answer"]
        assert (result.no_answer is None) == (version == "1.1")
        texts[qa["id"]] = answer["answer"]
    by_text = bertsmith.evaluate(None, place / "train.json", predictions=texts)
    assert by_text["metrics"] == found["metrics"] and by_text["missing"] == 0


def test_the_reference_finds_the_same_answers(reader):
    """In one window, by the plain rule: the best sum of a start and an end in the context."""
    run, _, _, _ = reader
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.folder)
    reference = transformers.AutoModelForQuestionAnswering.from_pretrained(run.folder).eval()
    model = run.model
    model.trained["settings"]["threshold"] = 1e6  # an answer always
    for person, town in zip(PEOPLE, TOWNS, strict=True):
        for question in ("who lives here", "where is the town"):
            context = f"{person} lives in {town} and works at the river ."
            read = tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
            offsets, inside = read.pop("offset_mapping")[0].tolist(), np.array(read.sequence_ids()) == 1
            with torch.no_grad():
                found = reference(**read)
            start, end = (np.where(inside, x[0].numpy(), -np.inf) for x in (found.start_logits, found.end_logits))
            sums = np.where(np.triu(np.ones((len(start), len(start)), bool)), start[:, None] + end, -np.inf)
            first, last = np.unravel_index(sums.argmax(), sums.shape)
            ours = model.answer(question, context)[0]
            assert (ours["start"], ours["end"]) == (offsets[first][0], offsets[last][1])


def test_the_threshold_decides_what_has_no_answer(reader):
    run, _, asked, version = reader
    if version == "1.1":
        assert run.model.trained["settings"]["threshold"] == 0
        return
    model = run.model
    for shift, silent in ((-1e6, True), (1e6, False)):
        model.trained["settings"]["threshold"] = shift
        found = [model.answer(qa["question"], context)[0]["answer"] == "" for context, qa in asked]
        assert set(found) == {silent}
