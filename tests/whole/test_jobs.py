"""classify, tag, answer on folders that the reference saved, without a bertsmith.json; the model as an object."""

import copy
import json
import logging
import pickle
import stat

import numpy as np
import pytest
import torch
import transformers
from whole.tiny import make_encoder

import bertsmith
from bertsmith.errors import BertsmithError

pytestmark = pytest.mark.usefixtures("offline")
TEXTS = ["the film was good", "a very dull book, and a sad song!", "Ann lives in Oslo", "", "plot"]
NAMES = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
LONG = "the song was very fine . " * 30
TAGS = dict(enumerate(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders by kind of head, labels and problem_type."""
    place, tags = tmp_path_factory.mktemp("made"), {"id2label": TAGS, "label2id": {tag: i for i, tag in TAGS.items()}}
    kinds = {
        "named": ("ForSequenceClassification", NAMES),
        "bare": ("ForSequenceClassification", {"num_labels": 3}),
        "several": ("ForSequenceClassification", {**NAMES, "problem_type": "multi_label_classification"}),
        "lone": ("ForSequenceClassification", {"num_labels": 1}),
        "number": ("ForSequenceClassification", {"num_labels": 1, "problem_type": "regression"}),
        "tag": ("ForTokenClassification", tags),
        "span": ("ForQuestionAnswering", {}),
        "mask": ("ForMaskedLM", {}),
        "none": ("Model", {}),
    }
    return {name: make_encoder(place / name, head, **settings) for name, (head, settings) in kinds.items()}


def reference(folder, kind):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer, getattr(transformers, f"AutoModelFor{kind}").from_pretrained(folder).eval()


@pytest.mark.parametrize("name", ["named", "bare", "several", "lone"])
def test_classify_as_the_pipeline(made, name):
    model = bertsmith.load(made[name])
    tokenizer, network = reference(made[name], "SequenceClassification")
    pipe = transformers.pipeline("text-classification", model=network, tokenizer=tokenizer, device="cpu")
    for ours, theirs in zip(model.classify(TEXTS, top_k=3), pipe(TEXTS, top_k=3), strict=True):
        assert [answer["label"] for answer in ours] == [answer["label"] for answer in theirs]
        assert [a["score"] for a in ours] == pytest.approx([a["score"] for a in theirs], abs=1e-5)
    best = [result.answers for result in model.classify(TEXTS)]
    if name == "several":
        assert all(answer["score"] >= 0.5 for answers in best for answer in answers)
    else:
        assert [len(answers) for answers in best] == [1 if name == "lone" else 3] * len(TEXTS)


def test_classify_pairs(made):
    model = bertsmith.load(made["named"])
    tokenizer, network = reference(made["named"], "SequenceClassification")
    seconds = list(reversed(TEXTS))
    with torch.no_grad():
        theirs = network(**tokenizer(TEXTS, seconds, padding=True, return_tensors="pt")).logits.softmax(-1)
    for result, chances in zip(model.classify(TEXTS, seconds), theirs, strict=True):
        ours = {answer["label"]: answer["score"] for answer in result}
        assert [ours[name] for name in ("bad", "fair", "good")] == pytest.approx(chances.tolist(), abs=1e-5)
    with pytest.raises(BertsmithError, match="not one of each"):
        model.classify("one", ["two"])


def test_one_is_one_and_several_are_a_list(made):
    classifier, tagger, reader = (bertsmith.load(made[name]) for name in ("named", "tag", "span"))

    def answers(results):
        return [result.as_dict() for result in results]

    jobs = [
        (classifier.classify, [(text,) for text in TEXTS]),
        (classifier.classify, [(text, text) for text in TEXTS]),
        (tagger.tag, [(text,) for text in TEXTS]),
        (reader.answer, [("who lives in oslo", text) for text in TEXTS]),
    ]
    for job, given in jobs:
        together = job(*(list(column) for column in zip(*given, strict=True)))
        apart = [job(*one) for one in given]
        for ours, theirs in zip(answers(together), answers(apart), strict=True):
            assert json.loads(json.dumps(ours), parse_float=lambda x: round(float(x), 5)) == json.loads(
                json.dumps(theirs), parse_float=lambda x: round(float(x), 5)
            )
        assert job([], *[[]] * (len(given[0]) - 1)) == []


@pytest.mark.parametrize("aggregation", ["none", "simple", "first", "average", "max"])
def test_tag_as_the_pipeline_finds_pieces(made, aggregation):
    model = bertsmith.load(made["tag"])
    tokenizer, network = reference(made["tag"], "TokenClassification")
    text = "Ann lives in Oslo and Bob met the cast"
    found = model.tag(text, aggregation=aggregation)
    assert len(found.tags) == len(text.split())
    for answer in found:
        assert text[answer["start"] : answer["end"]] == answer["word"] or aggregation == "none"
    if aggregation in ("none", "simple"):
        pipe = transformers.pipeline(
            "token-classification", model=network, tokenizer=tokenizer, device="cpu", aggregation_strategy=aggregation
        )
        key = "entity" if aggregation == "none" else "entity_group"
        theirs = [(a[key], a["start"], a["end"]) for a in pipe(text)]
        assert [(a[key], a["start"], a["end"]) for a in found] == theirs


def test_answer_is_the_best_of_start_and_end(made):
    model = bertsmith.load(made["span"])
    tokenizer, network = reference(made["span"], "QuestionAnswering")
    context, asked = "Ann lives in Oslo and works at the river .", ["who lives", "where is the town", "what"]
    shared = model.answer(asked, context, top_k=3)
    assert [r.as_dict() for r in model.answer(asked, [context] * 3, top_k=3)] == [r.as_dict() for r in shared]
    for question, result in zip(asked, shared, strict=True):
        read = tokenizer(question, context, return_tensors="pt", return_offsets_mapping=True)
        offsets, inside = read.pop("offset_mapping")[0].tolist(), np.array(read.sequence_ids()) == 1
        with torch.no_grad():
            found = network(**read)
        start, end = (np.where(inside, x[0].numpy(), -np.inf) for x in (found.start_logits, found.end_logits))
        sums = np.where(np.triu(np.ones((len(start),) * 2, bool)), start[:, None] + end, -np.inf)
        chances = np.exp(sums - sums.max())
        chances /= chances.sum()
        for answer, place in zip(result, np.argsort(-sums, axis=None, kind="stable"), strict=False):
            first, last = np.unravel_index(place, sums.shape)
            assert (answer["start"], answer["end"]) == (offsets[first][0], offsets[last][1])
            assert answer["score"] == pytest.approx(chances[first, last], abs=1e-5)
            assert answer["answer"] == context[answer["start"] : answer["end"]]


def test_long_inputs_and_the_choice_of_a_policy(made, caplog, monkeypatch):
    monkeypatch.setattr("bertsmith.answering.log_cuts", logging.getLogger("fresh"))  # the command line silences its own
    model = bertsmith.load(made["named"])
    more = len(transformers.AutoTokenizer.from_pretrained(made["named"])(LONG)["input_ids"]) - 64
    assert model.classify(LONG).truncated == more
    assert f"1 of 1 inputs were longer than 64 tokens; {more} tokens were cut" in caplog.text
    for policy, cut in (("tail", more), ("head+tail", more), ("windows", 0)):
        assert model.classify(LONG, truncate=policy).truncated == cut
    with pytest.raises(BertsmithError, match=f"the input has {more + 64} tokens but at most 64 fit"):
        model.classify(LONG, truncate="error")
    with pytest.raises(BertsmithError, match="truncate='middle' is not a choice"):
        model.classify(LONG, truncate="middle")
    tagger, reader = bertsmith.load(made["tag"]), bertsmith.load(made["span"])
    assert tagger.tag(LONG).truncated == 0 and tagger.tag(LONG, truncate="tail").truncated == more
    assert reader.answer("who", LONG).truncated == 0 and reader.answer("who", LONG, truncate="head").truncated > 0
    with pytest.raises(BertsmithError, match=r"head\+tail"):
        reader.answer("who", LONG, truncate="head+tail")


@pytest.mark.parametrize(
    "folder, job, sentence",
    [
        ("mask", lambda m: m.classify("x"), "has no head to classify texts (heads there: mask); fine-tune it for that"),
        ("none", lambda m: m.tag("x"), "has no head to tag words (heads there: none); fine-tune it for that (finetune, "
                                       "task 'tag'), or give another model."),
        ("named", lambda m: m.answer("x", "y"), "has no head to answer questions (heads there: classify); fine-tune"),
        ("named", lambda m: m.fill("[MASK]"), "has no head to fill masks (heads there: classify); give another model."),
        ("number", lambda m: m.classify("x"), "gives a number (problem_type is regression), not a class"),
        ("named", lambda m: m.classify(5), "give a text or a list of texts, not int."),
        ("named", lambda m: m.classify(["a", None]), "text 2 must be a string, not NoneType."),
        ("named", lambda m: m.classify("a", top_k=0), "top_k is 0; it must be a whole number of at least 1."),
        ("named", lambda m: m.save(""), "give the name of a folder to write to, not ''."),
        ("named", lambda m: m.save(None), "give the name of a folder to write to, not None."),
        ("tag", lambda m: m.tag("a", aggregation="mean"), "aggregation='mean' is not a choice; use one of"),
        ("span", lambda m: m.answer("a", ["b", "c"]), "answer takes two texts or two lists of texts"),
        ("span", lambda m: m.answer(["a"], ["b", "c"]), "answer got 1 first texts and 2 second ones"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(made, folder, job, sentence):
    with pytest.raises(BertsmithError) as error:
        job(bertsmith.load(made[folder]))
    assert sentence in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"device": 5}, "device=5 is not a choice; use auto, cpu, cuda or mps."),
        ({"device": "gpu"}, "device='gpu' is not a choice; use auto, cpu, cuda or mps."),
        ({"device": "cuda:x"}, "device='cuda:x' is not a choice"),
        ({"device": "cuda:99"}, "device='cuda:99' is not on this machine"),
        ({"device": ["cpu"]}, "device=['cpu'] is not a choice"),
        ({"dtype": ["float32"]}, "dtype=['float32'] is not a choice; use one of float32, bfloat16, float16."),
        ({"dtype": None}, "dtype=None is not a choice"),
        ({"threads": 0}, "threads is 0; it must be a whole number of at least 1."),
        ({"batch_tokens": "many"}, "batch_tokens is 'many'; it must be a whole number"),
    ],
)
def test_a_wrong_option_is_one_sentence(made, options, sentence):
    with pytest.raises(BertsmithError) as error:
        bertsmith.load(made["named"], **options)
    assert str(error.value).startswith(sentence)
    if "device" in options:
        with pytest.raises(BertsmithError, match="device="):
            bertsmith.finetune("classify", [], out="never", model=made["named"], **options)


def test_what_it_says_of_itself(made):
    model = bertsmith.load(made["named"], device=torch.device("cpu"))
    count = sum(p.numel() for p in reference(made["named"], "SequenceClassification")[1].parameters())
    assert repr(model) == (
        f"<bertsmith.Model '{made['named']}': bert, 2 layers of 32, {count:,} parameters, "
        "heads: classify with 3 labels, float32 on cpu>"
    )


def test_copies_and_other_processes(made, tmp_path):
    model = bertsmith.load(made["named"], dtype="bfloat16", batch_tokens=77)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.classify(TEXTS[0]).answers == model.classify(TEXTS[0]).answers
        assert (other.dtype, other.predictor.budget) == ("bfloat16", 77)
    model.save(tmp_path / "gone")
    packed = pickle.dumps(bertsmith.load(tmp_path / "gone"))
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    with pytest.raises(BertsmithError, match="gone"):
        pickle.loads(packed)


def test_saving(made, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model = bertsmith.load(made["named"])
    model.save("~/mine")
    assert bertsmith.load(tmp_path / "mine").classify(TEXTS[0]).answers == model.classify(TEXTS[0]).answers
    (tmp_path / "probe").touch()
    (tmp_path / "folder").mkdir()
    usual = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("probe", "folder")]
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == usual[1]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "mine").iterdir()} == {usual[0]}


def test_tokenize_takes_several(made):
    model, tokenizer = bertsmith.load(made["named"]), transformers.AutoTokenizer.from_pretrained(made["named"])
    assert [row.ids for row in model.tokenize(TEXTS)] == tokenizer(TEXTS)["input_ids"]
    assert [row.ids for row in model.tokenize(TEXTS, TEXTS[::-1])] == tokenizer(TEXTS, TEXTS[::-1])["input_ids"]
    assert model.tokenize(TEXTS[1]).ids == tokenizer(TEXTS[1])["input_ids"]
    assert model.tokenize([]) == []
    with pytest.raises(BertsmithError, match="give a text or a list of texts, not int"):
        model.tokenize(5)


def test_a_task_file_of_another_model_is_refused(made, tmp_path):
    bertsmith.load(made["named"]).save(tmp_path / "m")
    for settings in ({"labels": ["a", "b"], "several": False, "truncate": "head"}, None, {}):
        (tmp_path / "m/bertsmith.json").write_text(json.dumps({"task": "classify", "settings": settings}))
        with pytest.raises(BertsmithError, match="does not belong to the model, whose head has 3 outputs"):
            bertsmith.load(tmp_path / "m").classify("x")
