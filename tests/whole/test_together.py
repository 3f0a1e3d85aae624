"""Several tasks on one encoder: from a file to a folder that others open, resumed, asked, and refused in a sentence."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from typer.testing import CliRunner
from whole.tiny import DISLIKED, LIKED, THINGS, make_encoder, reviews, sentences

import bertsmith
from bertsmith.cli.app import app
from bertsmith.errors import BertsmithError
from bertsmith.tasks.classify import Classify
from bertsmith.training.loop import Watcher

pytestmark = pytest.mark.usefixtures("offline")
LEARN = {"epochs": 8, "batch": 8, "rate": 2e-3, "device": "cpu", "threads": 1}


def tagged(verb="lives"):
    return [{"words": [word for word, _ in one], "tags": [tag for _, tag in one]} for one in sentences(verb)]


def ratings(start="the"):
    worth = {word: i for i, word in enumerate([*DISLIKED, *LIKED])}
    return [{"text": f"{start} {thing} was {word}", "target": -500.0 + 1000.0 * value}
            for word, value in worth.items() for thing in THINGS]  # fmt: skip


def mix(**more):
    """Texts with a class, words with tags, and masked tokens of both."""
    return {
        "mood": {"task": "classify", "train": reviews(), "dev": reviews("a"), "test": reviews("this")},
        "names": {"task": "tag", "train": tagged(), "dev": tagged("works"), "weight": 0.5},
        "words": {"task": "mask", "weight": 0.1},
        **more,
    }


@pytest.fixture(scope="module")
def learnt(tmp_path_factory, encoder):
    """With a number too, whose head is of the same kind as the classifier's."""
    members = mix(worth={"task": "regress", "train": ratings(), "dev": ratings("a")})
    said: list[str] = []
    run = bertsmith.finetune_together(members, out=tmp_path_factory.mktemp("mix") / "out", model=encoder,
                                      say=said.append, **{**LEARN, "epochs": 25})  # fmt: skip
    return run, said


def test_each_member_is_learnt_and_told(learnt):
    run, said = learnt
    dev = run.metrics["dev"]
    assert next(iter(dev)) == "mean" and dev["mood/accuracy"]["value"] > 0.9 and dev["names/f1"]["value"] > 0.9
    assert dev["worth/pearson"]["value"] > 0.8
    mains = [dev[name]["value"] for name in ("mood/accuracy", "names/f1", "worth/pearson")]
    assert dev["mean"]["value"] == pytest.approx(sum(mains) / 3)
    assert {"value", "low", "high", "n"} <= set(run.metrics["test"]["mood/accuracy"])
    assert sum(sentence.startswith(("mood, test: accuracy", "names, dev: f1", "worth, dev: pearson"))
               for sentence in said) == 3  # fmt: skip


def test_the_folder_is_an_encoder_with_a_head_each(learnt):
    run, _ = learnt
    _, said = transformers.AutoModel.from_pretrained(run.folder, output_loading_info=True)
    assert not said["unexpected_keys"] and all(key.startswith("pooler.") for key in said["missing_keys"])
    places = {place.name: json.loads((place / "bertsmith.json").read_text())
              for place in (run.folder / "adapters").iterdir()}  # fmt: skip
    assert {name: (one["task"], one["head"]) for name, one in places.items()} == {
        "mood": ("classify", "classify"), "names": ("tag", "tag"), "words": ("mask", "mask"),
        "worth": ("regress", "classify"),
    }  # fmt: skip


def reference(folder, name, model_class, **settings):
    """A member as a single model of transformers, made of the encoder's tensors and its own."""
    own = load_file(folder / "adapters" / name / "adapter_model.safetensors")
    state = {f"bert.{key}": tensor for key, tensor in load_file(folder / "model.safetensors").items()}
    state |= {key.removeprefix("base_model.model."): tensor for key, tensor in own.items()}
    model = model_class(transformers.BertConfig.from_pretrained(folder, **settings))
    _, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected
    model.tie_weights()
    return model.eval()


def test_each_member_answers_like_a_single_model_of_the_same_weights(learnt):
    run, _ = learnt
    model = run.model
    assert set(model.adapters) == {"mood", "names", "words", "worth"}
    tokenizer = transformers.AutoTokenizer.from_pretrained(run.folder)
    text = "the film was very good"
    given = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        mood = reference(run.folder, "mood", transformers.BertForSequenceClassification, num_labels=2)(**given).logits
        worth = reference(run.folder, "worth", transformers.BertForSequenceClassification, num_labels=1)(**given).logits
        names = reference(run.folder, "names", transformers.BertForTokenClassification, num_labels=4)
        words = reference(run.folder, "words", transformers.BertForMaskedLM)
        tags = names(**tokenizer("Ann lives in Oslo", return_tensors="pt")).logits[0].softmax(-1)
        masked = words(**tokenizer("the [MASK] was good", return_tensors="pt")).logits[0, 2].softmax(-1)
    ours = {answer["label"]: answer["score"] for answer in model.use("mood").classify(text)}
    labels = json.loads((run.folder / "adapters/mood/bertsmith.json").read_text())["settings"]["labels"]
    assert np.allclose([ours[label] for label in labels], mood[0].softmax(-1), atol=1e-5)
    assert model.use("worth").score(text)[0]["score"] == pytest.approx(worth.item(), rel=1e-4)
    assert model.use("names").tag("Ann lives in Oslo")[0]["score"] == pytest.approx(tags[1].max().item(), abs=1e-5)
    assert model.use("words").fill("the [MASK] was good")[0]["score"] == pytest.approx(masked.max().item(), abs=1e-5)
    assert model.classify(text).answers == model.use("mood").classify(text).answers  # the one that can
    assert model.score(text).answers == model.use("worth").score(text).answers
    assert "heads: classify with 1 label, " in repr(model.use("worth"))


def test_the_folder_scores_what_is_written(learnt):
    run, _ = learnt
    found = run.model.use("mood").classify([one["text"] for one in reviews("this")])
    right = [one[0]["label"] == row["label"] for one, row in zip(found, reviews("this"), strict=True)]
    assert np.mean(right) == run.metrics["test"]["mood/accuracy"]["value"]


def test_report_and_card_have_a_row_each(learnt):
    run, _ = learnt
    page, card = (run.folder / "report.html").read_text(), (run.folder / "README.md").read_text()
    assert '<h2 id="members">Members</h2>' in page and "Several tasks on one encoder" in page
    assert "| mood | classify | 1 |" in card and "| words | mask | 0.1 |" in card
    assert 'model.use("names").tag(' in card and "bertsmith fill" in card and "--use words" in card
    facts = json.loads((run.folder / "metrics.json").read_text())
    assert [one["name"] for one in facts["members"]] == ["mood", "names", "words", "worth"]
    assert facts["settings"]["mixing"] == "proportional"


def test_each_loss_is_in_the_log(learnt):
    run, _ = learnt
    records = [json.loads(line) for line in (run.folder / "log.jsonl").read_text().splitlines()]
    steps = [record for record in records if "loss" in record]
    assert steps[-1]["loss/mood"] < 0.5 * steps[0]["loss/mood"]
    assert steps[-1]["loss/words"] < steps[0]["loss/words"]
    assert next(iter(records[-1]["metrics"])) == "mean"


class Interrupt(Watcher):
    def __init__(self, step):
        self.step = step

    def stepped(self, step, record, speed):
        if step == self.step:
            raise KeyboardInterrupt


def contents(folder):
    files = [*folder.glob("checkpoints/**/*"), *folder.glob("adapters/*/*")]
    files += [folder / name for name in ("log.jsonl", "model.safetensors", "config.json", "run.json")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_file()}


@pytest.mark.parametrize("mixing", ["together", "temperature"])
def test_an_interrupted_run_goes_on_to_the_same_bytes(tmp_path, encoder, mixing):
    settings = {**LEARN, "model": encoder, "max_steps": 14, "evaluate_every": 5, "log_every": 4, "mixing": mixing,
                "keep_checkpoints": True, "check": False}  # fmt: skip
    members = mix(worth={"task": "regress", "train": ratings(), "dev": ratings("a")})
    bertsmith.finetune_together(members, out=tmp_path / "whole", **settings)
    for step in (3, 7):
        with pytest.raises(BertsmithError, match=rf"^stopped at step {step} of 14; the same command goes on"):
            bertsmith.finetune_together(members, out=tmp_path / "parts", watchers=[Interrupt(step)], **settings)
    said: list[str] = []
    bertsmith.finetune_together(members, out=tmp_path / "parts", say=said.append, **settings)
    assert "going on from last-000007." in said
    ours, theirs = contents(tmp_path / "parts"), contents(tmp_path / "whole")
    assert set(ours) == set(theirs) and [name for name in ours if ours[name] != theirs[name]] == []
    said.clear()
    bertsmith.finetune_together(members, out=tmp_path / "parts", say=said.append, **settings)
    assert any("holds this very run, finished" in sentence for sentence in said)
    members["names"]["weight"] = 2
    with pytest.raises(BertsmithError, match=r"names\.weight was 0\.5 and is now 2\.0"):
        bertsmith.finetune_together(members, out=tmp_path / "parts", **settings)


def test_overwriting_leaves_no_member_of_the_old_run(tmp_path, encoder):
    settings = {**LEARN, "model": encoder, "max_steps": 2, "check": False, "out": tmp_path / "out"}
    bertsmith.finetune_together(mix(), **settings)
    members = mix()
    members["moods"] = members.pop("mood")
    bertsmith.finetune_together(members, overwrite=True, **settings)
    assert {place.name for place in (tmp_path / "out" / "adapters").iterdir()} == {"moods", "names", "words"}


def test_a_head_that_fits_goes_on_and_a_pooler_is_taken_over(tmp_path):
    """From a masked-token model its own head; from a classifier of these labels its own, of others its pooler."""
    pretrained = make_encoder(tmp_path / "pretrained", "ForPreTraining")
    said: list[str] = []
    bertsmith.finetune_together(mix(), out=tmp_path / "out", model=pretrained, say=said.append, max_steps=1,
                                check=False, **{**LEARN, "rate": 1e-9, "epochs": None})  # fmt: skip
    assert "Heads kept: words; begun anew: mood, names; left out: follows." in said
    theirs = load_file(pretrained / "model.safetensors")
    ours = load_file(tmp_path / "out" / "adapters" / "words" / "adapter_model.safetensors")
    bias = "cls.predictions.bias"
    assert torch.allclose(ours[f"base_model.model.{bias}"], theirs[bias], atol=1e-6)
    mood = load_file(tmp_path / "out" / "adapters" / "mood" / "adapter_model.safetensors")
    pooler = "bert.pooler.dense.weight"
    assert torch.allclose(mood[f"base_model.model.{pooler}"], theirs[pooler], atol=1e-6)


def test_members_go_on_as_they_were_learnt(tmp_path, learnt):
    """A step that changes nothing leaves the scores as they were: of the number too, whose scale is put back on."""
    first, _ = learnt
    members = mix(worth={"task": "regress", "train": ratings("this"), "dev": ratings("a")})
    members["towns"] = {"task": "tag", "train": tagged("sees"), "dev": tagged("works")}
    said: list[str] = []
    again = bertsmith.finetune_together(members, out=tmp_path / "out", model=first.folder, say=said.append, check=False,
                                        **{**LEARN, "rate": 1e-12, "max_steps": 1, "epochs": None})  # fmt: skip
    assert "Heads kept: mood, names, words, worth; begun anew: towns." in said
    for name in ("mood/accuracy", "names/f1", "worth/mse"):
        assert again.metrics["dev"][name]["value"] == pytest.approx(first.metrics["dev"][name]["value"], rel=1e-3)


def test_an_adapter_beside_the_members_is_not_taken_for_one(tmp_path, learnt):
    """Its head reads an encoder with more in it."""
    first, _ = learnt
    model = shutil.copytree(first.folder, tmp_path / "model")
    said: list[str] = []
    bertsmith.finetune("classify", reviews(), reviews("a"), out=model / "adapters" / "other", model=model, lora=2,
                       max_steps=1, check=False, device="cpu", say=said.append)  # fmt: skip
    assert f"its members' heads are left out (--model {model / 'adapters' / 'mood'} goes on with one)" in said[0]
    members = mix()
    members["other"] = members.pop("mood")
    bertsmith.finetune_together(members, out=tmp_path / "out", model=model, max_steps=1, check=False, device="cpu",
                                say=said.append)  # fmt: skip
    assert "Heads kept: names, words; begun anew: other; left out: mood, worth." in said


def test_a_reranker_goes_on_whatever_its_output_was_called_where_it_came_from(tmp_path):
    """As a cross-encoder of another library names it: LABEL_0."""
    model = make_encoder(tmp_path / "cross", "ForSequenceClassification", num_labels=1)
    queries = [{"query": f"where is {one}", "passage": f"{one} is in {town}"}
               for one in ("ann", "bob", "cyd") for town in ("oslo", "rome")]  # fmt: skip
    members = mix(best={"task": "rerank", "train": queries, "dev": queries})
    said: list[str] = []
    for name in ("first", "second"):
        bertsmith.finetune_together(members, out=tmp_path / name, model=model, max_steps=1, check=False, device="cpu",
                                    say=said.append)  # fmt: skip
        model = tmp_path / name
    assert [line for line in said if line.startswith("Heads")] == [
        "Heads kept: best; begun anew: mood (other labels before: LABEL_0), names, words.",
        "Heads kept: mood, names, words, best.",
    ]


def write_mix(folder, extra=""):
    for side, start, verb in (("train", "the", "lives"), ("dev", "a", "works")):
        for name, rows in (("mood", reviews(start)), ("names", tagged(verb))):
            (folder / f"{name}-{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "mix.toml").write_text(
        f"""epochs = 4
batch = 8
rate = 2e-3
mixing = "round-robin"
{extra}
[members.mood]
task = "classify"
train = "mood-train.jsonl"
dev = "mood-dev.jsonl"
[members.names]
task = "tag"
train = "names-train.jsonl"
dev = "names-dev.jsonl"
weight = 0.5
length = 32
[members.words]
task = "mask"
weight = 0.1
"""
    )
    return folder / "mix.toml"


def run_cli(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command_line_reads_a_mix_and_paths_from_beside_it(tmp_path, encoder):
    path = write_mix(tmp_path)
    plan = run_cli("finetune", "--members", path, "--out", tmp_path / "out", "--model", encoder, "--dry-run")
    assert plan.exit_code == 0, plan.output
    assert "words: mask, 78 texts, weight 0.1, 8 a step in 33.3 % of the steps" in plan.output
    assert "mixing: round-robin" in plan.output and not (tmp_path / "out").exists()
    ran = run_cli("finetune", "--members", path, "--out", tmp_path / "out", "--model", encoder, "--epochs", 2,
                  "--device", "cpu", "--metric", "names", "--json")  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert "to use names: bertsmith tag" in ran.output
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["task"] == "several" and "names/f1" in result["metrics"]["dev"]
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["asked"]["epochs"] == 2 and run["asked"]["names.length"] == 32
    log = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert next(iter(log[-1]["metrics"])) == "names/f1"
    asked = run_cli("tag", "Ann lives in Oslo", "--model", tmp_path / "out", "--use", "names", "--json")
    assert asked.exit_code == 0 and "entity_group" in asked.stdout


def test_choices_for_all_are_taken_by_those_that_have_a_use_for_them(tmp_path, encoder):
    """A length for all, one member with its own; label_scheme is the tagger's alone."""
    said: list[str] = []
    members = mix()
    members["names"]["length"] = 12
    bertsmith.finetune_together(members, out=tmp_path / "out", model=encoder, length=7, label_scheme="iobes",
                                max_steps=1, check=False, say=said.append, device="cpu")  # fmt: skip
    settings = {name: json.loads((tmp_path / f"out/adapters/{name}/bertsmith.json").read_text())["settings"]
                for name in ("mood", "names")}  # fmt: skip
    assert settings["mood"]["length"] == 7 and settings["names"]["length"] == 12
    assert settings["names"]["label_scheme"] == "iobes" and "label_scheme" not in settings["mood"]


def test_a_member_that_learnt_nothing_is_told(tmp_path, encoder):
    said: list[str] = []
    bertsmith.finetune_together(mix(), out=tmp_path / "out", model=encoder, max_steps=1, rate=1e-9, say=said.append,
                                check=False, device="cpu")  # fmt: skip
    told = next(sentence for sentence in said if sentence.startswith("warning: mood: On test, the accuracy of 0.5000"))
    assert told.removeprefix("warning: ")[:40] in (tmp_path / "out" / "README.md").read_text()


def test_texts_that_are_scored_here_and_trained_on_there_are_told(tmp_path, encoder):
    said: list[str] = []
    worth = {"task": "regress", "train": ratings("a"), "dev": ratings("an")}
    bertsmith.finetune_together(mix(worth=worth), out=tmp_path / "out", model=encoder, dry_run=True, say=said.append)
    assert "warning: 48 of 48 texts of mood's dev are in worth's train." in said


def test_masked_tokens_of_a_file_of_its_own(tmp_path, encoder):
    (tmp_path / "texts.txt").write_text("the song was fine\nthe town is in oslo\nthe song was fine\n")
    said: list[str] = []
    members = mix(words={"task": "mask", "texts": str(tmp_path / "texts.txt"), "batch": 2})
    bertsmith.finetune_together(members, out=tmp_path / "out", model=encoder, dry_run=True, say=said.append)
    assert any("words: mask, 2 texts, weight 1, 2 a step" in sentence for sentence in said)


WRONG = [
    ({}, {}, r"^a mix needs at least two members, but there are none; for one task leave members out\.$"),
    ({"mood": {}}, {}, r"^a mix needs at least two members, but there is only 'mood'; "),
    ({"mood": {"weight": 0}}, {}, r"^member mood: weight is 0; it must be a number above 0\.$"),
    ({"mood": {"weight": "much"}}, {}, r"^member mood: weight is 'much'; it must be a number above 0\.$"),
    ({"mood": {"train": None}}, {}, r"^member mood: train is missing; give the file it learns from\.$"),
    ({"mood": {"task": None}}, {}, r"^member mood: task is missing; "),
    ({"mood": {"task": "clasify"}}, {}, r"^member mood: task='clasify' is not a choice; use one of classify, "),
    ({"mood": {"wieght": 1}}, {}, r"^member mood: wieght is not a setting of a member; did you mean weight\?$"),
    ({"mood": {"epochs": 3}}, {}, r"^member mood: epochs is a setting of the whole run; give it outside of the "),
    ({"mood": {"scheme": "iob2"}}, {}, r"^member mood: scheme is for tag and has no use in classify; "),
    ({"mood": {"train": tagged()}}, {}, r"^member mood: train, row 1, column \"words\": a text is needed here, "),
    ({"mood": {"metric": "f2"}}, {}, r"^member mood: metric='f2' is not a choice for classify; "),
    ({"mood": {"text": "nothing"}}, {}, r"^member mood: .*nothing"),
    ({"names": {"texts": "a.txt"}}, {}, r"^member names: texts are for task = \"mask\" alone; give train\.$"),
    ({"words": {"dev": reviews()}}, {}, r"^member words: dev has no meaning for masked tokens; leave it out\.$"),
    ({"words": {"train": [{"text": ""}]}}, {}, r"^member words: there is no text whose tokens could be hidden; "),
    ({"words": {"text": "body"}}, {}, r"^member words: a column is named, but no file of texts; "),
    ({"again": {"task": "mask"}}, {}, r"^the members words and again learn the same task \(mask\) from the same examp"),
    ({"again": {"task": "tag", "train": tagged(), "dev": tagged("works")}}, {},
     r"^the members names and again learn the same task \(tag\) from the same examples; leave one of them out"),
    ({"a/b": {"task": "mask"}}, {}, r"^'a/b' cannot be a member's name; use another, of letters, digits, - and _\.$"),
    ({"keys": {"task": "mask"}}, {}, r"^'keys' cannot be a member's name; "),
    ({}, {"mixing": "shaken"}, r"^mixing is 'shaken', which is not a choice; use one of together, proportional, "),
    ({}, {"temperature": 2.0}, r"^temperature is for mixing = \"temperature\"; give that too, or leave it out\.$"),
    ({}, {"mixing": "temperature", "temperature": 0}, r"^temperature is 0; it must be a number above 0\.$"),
    ({}, {"lora": 8}, r"^lora is for one task; several train the whole encoder: leave lora out\.$"),
    ({}, {"features": "last"}, r"^features is for one task; "),
    ({}, {"spread": "fsdp"}, r"^spread=fsdp is for one task; "),
    ({}, {"metric": "f1"}, r"^metric='f1' is not a choice for a mix; use a member that is scored \(mood, names\), "),
    ({}, {"metric": "names/f2"}, r"^metric='f2' is not a choice for the member names; use one of f1, "),
    ({}, {"metric": "words"}, r"^metric='words' is not a choice for a mix; "),
    ({}, {"text": "body"}, r"^text is a column of one member; give it there\.$"),
    ({}, {"epoch": 3}, r"^epoch is not a setting; did you mean epochs\?$"),
]  # fmt: skip


@pytest.mark.parametrize("changes, settings, sentence", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said_in_a_sentence_and_leaves_nothing(tmp_path, encoder, changes, settings, sentence):
    members = {name: {**one, **changes.get(name, {})} for name, one in mix().items()}
    members |= {name: one for name, one in changes.items() if name not in members}
    if "at least two" in sentence:
        members = changes
    with pytest.raises(BertsmithError, match=sentence) as caught:
        bertsmith.finetune_together(members, out=tmp_path / "out", model=encoder, device="cpu", **settings)
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


class Strange(Classify):
    """A person's own task, for a head that BERT does not have."""

    head = "replaced"


def test_a_head_that_the_family_lacks_and_a_task_without_one_are_refused_in_a_dry_run(tmp_path, encoder):
    other = {"task": "whole.test_together:Strange", "train": reviews("an"), "dev": reviews("a")}
    with pytest.raises(BertsmithError, match=r"^member other: the family bert has no head for replaced\.$"):
        bertsmith.finetune_together(mix(other=other), out=tmp_path / "out", model=encoder, dry_run=True, check=False)
    with pytest.raises(BertsmithError, match=r"^member other: embed trains the encoder itself and has no head, so "):
        bertsmith.finetune_together(mix(other={"task": "embed", "train": []}), out=tmp_path, model=encoder)


def test_flags_of_one_task_and_unknown_keys_are_refused_on_the_command_line(tmp_path, encoder):
    path = write_mix(tmp_path)
    ran = run_cli("finetune", "--members", path, "--train", "x.csv", "--out", tmp_path / "out")
    assert ran.exit_code == 2 and "--train is of one task" in ran.output
    ran = run_cli("finetune", "--members", path)
    assert ran.exit_code == 2 and "--out is missing." in ran.output
    path = write_mix(tmp_path, "mixin = 3")
    ran = run_cli("finetune", "--members", path, "--out", tmp_path / "out")
    assert ran.exit_code == 1 or isinstance(ran.exception, BertsmithError)
    assert "has mixin, which is not a setting; did you mean mixing" in f"{ran.output}{ran.exception}"
    (tmp_path / "bare.toml").write_text("epochs = 3\n")
    ran = run_cli("finetune", "--members", tmp_path / "bare.toml", "--out", tmp_path / "out")
    assert "has no members; give each a table" in f"{ran.output}{ran.exception}"
    assert not (tmp_path / "out").exists()


def test_the_model_that_is_learnt_from_is_never_cleared(tmp_path, encoder):
    """With --overwrite its folder would be emptied before it was read; so would that of the encoder of a head."""
    settings = {**LEARN, "epochs": None, "max_steps": 1, "check": False}
    first = bertsmith.finetune_together(mix(), out=tmp_path / "first", model=encoder, **settings)
    kept = contents(first.folder)
    for model in (first.folder, first.folder / "adapters" / "mood"):
        said = rf"^{first.folder} holds the model {model}, from which this run learns; give another folder\.$"
        with pytest.raises(BertsmithError, match=said):
            bertsmith.finetune_together(mix(), out=first.folder, model=model, overwrite=True, **settings)
        with pytest.raises(BertsmithError, match=said):
            bertsmith.finetune("classify", reviews(), reviews("a"), out=first.folder, model=model, overwrite=True,
                               **settings)  # fmt: skip
    lora = bertsmith.finetune("classify", reviews(), reviews("a"), out=tmp_path / "lora", model=first.folder, lora=2,
                              **settings)  # fmt: skip
    with pytest.raises(BertsmithError, match=rf"^{first.folder} holds the model {first.folder}, from which this run "):
        bertsmith.finetune("classify", reviews(), reviews("a"), out=first.folder, model=lora.folder, overwrite=True,
                           **settings)  # fmt: skip
    assert contents(first.folder) == kept


def test_how_a_member_of_pairs_is_used_is_told_with_a_pair(tmp_path, encoder):
    rows = [{"sentence1": f"the {a} was {b}", "sentence2": f"it was {b}", "label": "xy"[i % 2]}
            for i, (a, b) in enumerate((a, b) for a in THINGS for b in LIKED)]  # fmt: skip
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = write_mix(tmp_path)
    path.write_text(path.read_text() + '[members.same]\ntask = "classify"\ntrain = "pairs.jsonl"\n')
    ran = run_cli("finetune", "--members", path, "--out", tmp_path / "out", "--model", encoder, "--max-steps", 1,
                  "--device", "cpu", "--no-check")  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert 'to use same: bertsmith classify "A text." --pair "Another text." --model' in ran.output
    assert 'to use mood: bertsmith classify "A text." --model' in ran.output
