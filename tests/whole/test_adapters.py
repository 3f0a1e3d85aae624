"""An adapter's whole road: trained, stopped and resumed, loaded alone and beside others, used from the command line."""

import copy
import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import peft
import pytest
import torch
import transformers
from safetensors.torch import load_file
from typer.testing import CliRunner
from whole.soak_resume import differences
from whole.tiny import comparisons, make_encoder, reviews

import bertsmith
from bertsmith.cli.app import app
from bertsmith.errors import BertsmithError
from bertsmith.training.loop import Watcher

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"epochs": 10, "batch": 8, "rate": 1e-2, "device": "cpu", "threads": 1, "lora": 4, "dropout": 0.0}
TAGS = [{"words": ["Ann", "lives", "in", word], "tags": ["B-PER", "O", "O", tag]}
        for word, tag in (("Oslo", "B-LOC"), ("Rome", "B-LOC"), ("it", "O"), ("this", "O"))] * 6  # fmt: skip


@pytest.fixture(scope="module")
def adapters(tmp_path_factory, encoder):
    """Three adapters on one encoder, by name."""
    place = tmp_path_factory.mktemp("adapters")
    asked = {"liked": ("classify", reviews()), "better": ("classify", comparisons()), "names": ("tag", TAGS)}
    for name, (task, rows) in asked.items():
        bertsmith.finetune(task, rows, rows, out=place / name, model=encoder, check=False, **LEARN)
    return {name: place / name for name in asked}


def ask(models):
    return [
        models["liked"].classify(["the film was good", "a plot so poor"]),
        models["better"].classify(["the film was good", "it was sad"], ["it was bad", "the film was fine"]),
        models["names"].tag(["Ann lives in Rome", "Eve sees this"]),
    ]


def answers(found):
    return [[result.answers for result in results] for results in found]


def test_it_learns_and_is_small(adapters, encoder):
    for name in ("liked", "better"):
        metrics = json.loads((adapters[name] / "metrics.json").read_text())["metrics"]
        assert metrics["dev"]["accuracy"]["value"] == 1
        assert not (adapters[name] / "model.safetensors").exists()
    size = sum(path.stat().st_size for path in adapters["liked"].glob("adapter*"))
    assert size < (encoder / "model.safetensors").stat().st_size / 2


def test_resident_together_they_answer_as_models_apart(adapters, encoder):
    together = bertsmith.load(encoder, adapters=adapters)
    assert list(together.adapters) == ["liked", "better", "names"]
    apart = {name: bertsmith.load(folder) for name, folder in adapters.items()}
    assert answers(ask(together.adapters)) == answers(ask(apart))
    assert together.use("names").use(adapters["liked"]).classify("a good book").answers == apart["liked"].classify(
        "a good book").answers  # fmt: skip


@pytest.mark.parametrize("given", [["liked"], "liked", {5: "liked"}, {"liked": 5}, {"liked": None}])
def test_what_names_no_adapter_is_told(adapters, encoder, given):
    with pytest.raises(BertsmithError, match=r"^adapters is .+; it must be a mapping of names\.$"):
        bertsmith.load(encoder, adapters=given)
    with pytest.raises(BertsmithError, match=r"^adapter is 5; it must be a string or a path"):
        bertsmith.load(encoder, adapters=adapters).use(5)


def test_many_threads_may_ask_different_ones(adapters, encoder):
    together = bertsmith.load(encoder, adapters=adapters)
    expected = answers(ask(together.adapters))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: answers(ask(together.adapters)), range(24)))
    assert all(each == expected for each in found)


def test_the_one_that_can_do_a_job_is_found(adapters, encoder):
    together = bertsmith.load(encoder, adapters=adapters)
    assert together.tag("Ann lives in Rome").answers == together.use("names").tag("Ann lives in Rome").answers
    # Of two that classify, one learnt from single texts and the other from pairs.
    assert together.classify("a good film").answers == together.use("liked").classify("a good film").answers
    pair = ("it was sad", "the film was fine")
    assert together.classify(*pair).answers == together.use("better").classify(*pair).answers
    twice = bertsmith.load(encoder, adapters={**adapters, "again": adapters["liked"]})
    with pytest.raises(BertsmithError, match=r"several adapters .* can classify texts: liked, again; say which"):
        twice.classify("a good film")
    with pytest.raises(BertsmithError, match=r"no head to answer questions .*of its adapters: liked, better, names"):
        together.answer("who?", "Ann lives in Rome")
    with pytest.raises(BertsmithError, match=r"no adapter 'liket' .its adapters are liked, better, names"):
        together.use("liket")
    assert together.info()["adapters"] == {"liked": ["classify"], "better": ["classify"], "names": ["tag"]}


def test_a_copy_and_another_process_have_them_too(adapters, encoder):
    together = bertsmith.load(encoder, adapters={"liked": adapters["liked"]})
    for again in (copy.deepcopy(together), pickle.loads(pickle.dumps(together))):
        assert again.classify("a good film").answers == together.classify("a good film").answers
    alone = pickle.loads(pickle.dumps(together.use("liked")))
    assert alone.classify("a good film").answers == together.classify("a good film").answers


def test_peft_gives_the_same_scores(adapters, encoder):
    base = transformers.AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=2)
    model = peft.PeftModel.from_pretrained(base, str(adapters["liked"])).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    with torch.no_grad():
        theirs = model(**tokenizer("a fine song", return_tensors="pt")).logits.softmax(-1)[0]
    ours = bertsmith.load(adapters["liked"]).classify("a fine song")
    labels = json.loads((adapters["liked"] / "bertsmith.json").read_text())["settings"]["labels"]
    for answer in ours:
        assert answer["score"] == pytest.approx(theirs[labels.index(answer["label"])].item(), abs=1e-6)


def test_saved_whole_it_opens_everywhere(adapters, tmp_path):
    adapted = bertsmith.load(adapters["liked"])
    adapted.save(tmp_path / "whole")
    texts = ["a fine song", "the town was dull"]
    expected = [result.answers for result in adapted.classify(texts)]
    pipeline = transformers.pipeline("text-classification", model=str(tmp_path / "whole"), top_k=None)
    whole = bertsmith.load(tmp_path / "whole").classify(texts)
    for one, two, three in zip(expected, [r.answers for r in whole], pipeline(texts), strict=True):
        assert [a["label"] for a in one] == [a["label"] for a in two] == [a["label"] for a in three]
        assert [a["score"] for a in two] == pytest.approx([a["score"] for a in one], abs=1e-5)
        assert [a["score"] for a in three] == pytest.approx([a["score"] for a in one], abs=1e-5)


def test_a_base_is_saved_with_its_adapters(adapters, encoder, tmp_path):
    together = bertsmith.load(encoder, adapters=adapters)
    together.save(tmp_path / "all")
    again = bertsmith.load(tmp_path / "all")
    assert list(again.adapters) == ["better", "liked", "names"]
    assert answers(ask(again.adapters)) == answers(ask(together.adapters))


def test_a_model_does_not_come_between_adapters_and_their_base(adapters, encoder, tmp_path):
    bertsmith.load(encoder, adapters={"liked": adapters["liked"]}).save(tmp_path / "all")
    with pytest.raises(BertsmithError, match="holds the adapter 'liked', which the model to be saved does not have"):
        bertsmith.load(adapters["better"]).save(tmp_path / "all")
    assert list(bertsmith.load(tmp_path / "all").adapters) == ["liked"]


def test_a_whole_model_in_the_place_of_an_adapter_is_what_opens(adapters, encoder, tmp_path):
    """The files of the adapter that was there made it answer in the place of the model that was trained over it."""
    settings = {**LEARN, "model": encoder, "epochs": 1, "check": False, "out": tmp_path / "run"}
    bertsmith.finetune("classify", reviews(), reviews(), **settings)
    run = bertsmith.finetune("classify", reviews(), reviews(), **{**settings, "lora": 0, "overwrite": True})
    (tmp_path / "plain").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tmp_path / "run" / name, tmp_path / "plain")
    theirs = transformers.pipeline("text-classification", model=str(tmp_path / "plain"), top_k=None)("a fine song")
    for found in (run.model, bertsmith.load(tmp_path / "run")):
        assert [a["score"] for a in found.classify("a fine song")] == pytest.approx([a["score"] for a in theirs[0]])
    run.model.save(tmp_path / "saved")
    bertsmith.load(encoder, adapters=adapters).use("better").save(tmp_path / "saved")
    assert bertsmith.load(tmp_path / "saved").trained["settings"]["pairs"]


def test_evaluate_and_go_on_training_from_one(adapters, tmp_path):
    found = bertsmith.evaluate(adapters["liked"], reviews("a"))
    assert found["metrics"]["accuracy"]["n"] == 48
    said = []
    settings = {**LEARN, "lora": 0, "rate": 1e-4, "epochs": 1}
    run = bertsmith.finetune(
        "classify", reviews(), reviews("a"), out=tmp_path / "on", model=adapters["liked"], say=said.append, **settings
    )
    assert any("own head for classify goes on" in sentence for sentence in said)
    assert run.metrics["dev"]["accuracy"]["value"] >= found["metrics"]["accuracy"]["value"] - 0.05


def test_an_adapter_goes_on_as_one(adapters, encoder, tmp_path):
    """Of the same base: with its own head where that fits, else with its matrices alone."""
    said = []
    run = bertsmith.finetune(
        "classify", reviews(), reviews("a"), out=tmp_path / "same", model=adapters["liked"], say=said.append,
        **{**LEARN, "rate": 1e-12, "epochs": 1},
    )  # fmt: skip
    assert any("own head for classify goes on training; the adapter's own matrices go on" in one for one in said)
    before, after = (load_file(folder / "adapter_model.safetensors") for folder in (adapters["liked"], run.folder))
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-7) for name in before)
    assert json.loads((run.folder / "adapter_config.json").read_text())["base_model_name_or_path"] == str(encoder)
    scores = [{"text": one["text"], "label": float(len(one["text"]))} for one in reviews()]
    other = bertsmith.finetune("regress", scores, scores, out=tmp_path / "other", model=adapters["liked"], check=False,
                               **{**LEARN, "rate": 1e-12, "epochs": 1})  # fmt: skip
    found = load_file(other.folder / "adapter_model.safetensors")
    thin = [name for name in before if "lora" in name]
    assert thin and all(torch.allclose(before[name], found[name], atol=1e-7) for name in thin)
    pairs = [{"text": one["text"], "pair": two["text"]} for one, two in zip(reviews(), reviews("a"), strict=False)]
    vectors = bertsmith.finetune("embed", pairs, pairs, out=tmp_path / "vectors", model=adapters["liked"], check=False,
                                 **{**LEARN, "rate": 1e-12, "epochs": 1})  # fmt: skip
    bare = load_file(vectors.folder / "adapter_model.safetensors")  # without a head, so without the encoder's own name
    assert len(bare) == len(thin) and all(
        torch.allclose(before[name], bare[name.replace(".bert.", ".")], atol=1e-7) for name in thin
    )
    back = bertsmith.finetune("regress", scores, scores, out=tmp_path / "back", model=vectors.folder, check=False,
                              **{**LEARN, "rate": 1e-12, "epochs": 1})  # fmt: skip
    again = load_file(back.folder / "adapter_model.safetensors")
    assert all(torch.allclose(before[name], again[name], atol=1e-7) for name in thin)
    with pytest.raises(BertsmithError, match=r"has rank \d+ and alpha [\d.]+, and goes on as it is; give lora="):
        bertsmith.finetune("classify", reviews(), reviews("a"), out=tmp_path / "no", model=adapters["liked"],
                           **{**LEARN, "lora": 3})  # fmt: skip
    with pytest.raises(BertsmithError, match="of other matrices than lora_targets says"):
        bertsmith.finetune("classify", reviews(), reviews("a"), out=tmp_path / "no", model=adapters["liked"],
                           **{**LEARN, "lora_targets": "attention"})  # fmt: skip
    assert not (tmp_path / "no").exists()


class Stop(Watcher):
    def stepped(self, step, record, speed):
        if step == 25:
            raise RuntimeError("a made mistake")


def test_a_run_that_failed_goes_on_to_the_same_end(encoder, tmp_path):
    def train(out, *watchers):
        bertsmith.finetune(
            "classify", reviews(), reviews("a"), out=tmp_path / out, model=encoder, keep_checkpoints=True,
            watchers=watchers, **{**LEARN, "epochs": 6, "dropout": 0.1},
        )  # fmt: skip

    train("whole")
    with pytest.raises(RuntimeError, match="a made mistake"):
        train("parts", Stop())
    train("parts")
    assert len([*(tmp_path / "whole").rglob("adapter_model.safetensors")]) == 3  # the last, the best, the result
    assert differences(tmp_path / "whole", tmp_path / "parts") == []


def test_a_number_for_a_pair_by_an_adapter(encoder, tmp_path):
    """Regression folds its mean and spread into the head, which an adapter has too."""
    rows = [
        {"text": f"the {thing} was {word}", "score": 100 + 5 * value}
        for thing in ("film", "plot", "cast", "book")
        for word, value in (("good", 4), ("fine", 3), ("dull", 1))
    ]
    run = bertsmith.finetune("regress", rows, rows, out=tmp_path / "stars", model=encoder, check=False, label="score",
                             **{**LEARN, "epochs": 40})  # fmt: skip
    assert run.metrics["dev"]["pearson"]["value"] > 0.9
    base = transformers.AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=1)
    model = peft.PeftModel.from_pretrained(base, str(tmp_path / "stars")).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    with torch.no_grad():
        theirs = model(**tokenizer("the film was fine", return_tensors="pt")).logits.item()
    assert bertsmith.load(tmp_path / "stars").score("the film was fine")[0]["score"] == pytest.approx(theirs, abs=1e-3)


def test_from_the_command_line(adapters, encoder):
    run = CliRunner().invoke(app, ["classify", "the film was good", "--model", str(encoder), "--use",
                                   str(adapters["liked"]), "--threads", "1"])  # fmt: skip
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["answers"][0]["label"] == "pos"
    run = CliRunner().invoke(app, ["classify", "x", "--model", str(encoder), "--use", "nothing"])
    assert run.exit_code != 0


def test_for_another_base(adapters, tmp_path):
    other = make_encoder(tmp_path / "other", seed=7)
    with pytest.raises(BertsmithError, match="liked is an adapter for another base model"):
        bertsmith.load(other, adapters={"liked": adapters["liked"]})
    path = tmp_path / "lost"
    path.mkdir()
    for name in ("adapter_model.safetensors", "adapter_config.json", "bertsmith.json"):
        (path / name).write_bytes((adapters["liked"] / name).read_bytes())
    config = json.loads((path / "adapter_config.json").read_text())
    (path / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": "some/model"}))
    with pytest.raises(BertsmithError, match="is an adapter for some/model, which is not here"):
        bertsmith.load(path)


def test_settings_that_contradict_each_other(encoder, tmp_path):
    for settings, told in (
        ({"lora": 0, "lora_alpha": 4.0}, "lora_alpha is given, but no adapter is trained"),
        ({"lora": -1}, "lora is -1"),
        ({"lora": 4, "features": "last"}, "features are read from an encoder that does not learn; leave lora out"),
    ):
        with pytest.raises(BertsmithError, match=told):
            bertsmith.finetune("classify", reviews(), out=tmp_path / "x", model=encoder, **{**LEARN, **settings})
