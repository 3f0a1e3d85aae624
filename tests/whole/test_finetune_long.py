"""Nothing is cut in silence: what a run and its folder tell of long inputs, for each policy."""

import json

import pytest
import transformers
from whole.tiny import as_conll, questions, reviews, sentences

import bertsmith

pytestmark = pytest.mark.usefixtures("offline")
FEW = {"max_steps": 2, "batch": 8, "device": "cpu", "threads": 1}
PAD = "a song is on "  # four tokens


def documents(start="the"):
    """Every fourth text has 84 or more tokens, where 64 fit; its last word decides."""
    return [{**row, "text": PAD * 20 * (i % 4 == 0) + row["text"]} for i, row in enumerate(reviews(start))]


def lost(folder, texts, fits):
    """Inputs and tokens that do not fit, counted with the reference's tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    over = [len(ids) - fits for ids in tokenizer(texts)["input_ids"] if len(ids) > fits]
    return {"inputs": len(over), "tokens": sum(over)}


@pytest.mark.parametrize("length", [64, 32])
@pytest.mark.parametrize("policy", ["head", "tail", "head+tail", "windows"])
def test_classify(tmp_path, encoder, policy, length):
    said = []
    sides = {"train": documents(), "dev": documents("a"), "test": documents("this")}
    run = bertsmith.finetune(
        "classify", **sides, out=tmp_path / "m", model=encoder, truncate=policy, length=length, say=said.append, **FEW
    )
    none = {"inputs": 0, "tokens": 0}
    gone = {side: lost(encoder, [row["text"] for row in rows], length) for side, rows in sides.items()}
    cut = {side: none if policy == "windows" else gone[side] for side in sides}
    assert all(found["inputs"] == 12 for found in gone.values())

    told = [sentence for sentence in said if "are cut" in sentence]
    assert len(told) == (0 if policy == "windows" else 3)
    for side, sentence in zip(("dev", "test", "train"), told, strict=False):
        tokens = cut[side]["tokens"]
        assert sentence == (
            f"{side}: 12 of 48 inputs are longer than {length} tokens; {tokens:,} tokens of them are cut "
            f"(truncate={policy!r})."
        )

    facts = json.loads((run.folder / "metrics.json").read_text())
    assert facts["data"]["facts"]["truncated"] == cut
    for side in ("train", "dev"):
        known = facts["lengths"][side]
        assert (known["limit"], known["policy"]) == (length, policy)
        assert (known["examples_cut"], known["tokens_cut"]) == (12, cut[side]["tokens"])
    told = "read in windows; nothing is cut" if policy == "windows" else f"{cut['train']['tokens']:,} tokens"
    assert told in (run.folder / "report.html").read_text()
    assert policy == "windows" or told in (run.folder / "README.md").read_text()
    assert json.loads((run.folder / "bertsmith.json").read_text())["run"]["truncated"] == cut

    found = bertsmith.evaluate(run.folder, sides["dev"], device="cpu")
    assert found["truncated"] == {**cut["dev"], "policy": policy} and found["metrics"] == run.metrics["dev"]
    results = run.model.classify([row["text"] for row in sides["train"]])
    assert sum(result.truncated for result in results) == cut["train"]["tokens"]
    assert sum(result.truncated > 0 for result in results) == cut["train"]["inputs"]


def test_what_decides_must_be_seen(tmp_path, encoder):
    """The last word decides: the head of a long text says nothing, its tail and its windows say it."""
    learn = {**FEW, "max_steps": None, "epochs": 20, "rate": 2e-3, "model": encoder, "length": 24}
    long = [{**row, "text": PAD * 6 + row["text"]} for row in reviews()]
    right = {}
    for policy in ("head", "tail", "windows"):
        run = bertsmith.finetune("classify", long, long, out=tmp_path / policy, truncate=policy, check=False, **learn)
        right[policy] = run.metrics["dev"]["accuracy"]["value"]
    assert right["head"] == 0.5 and right["tail"] == 1 and right["windows"] > 0.9


def test_tags(tmp_path, encoder):
    """Windows lose no word; a head's words behind the limit are told, and count as what is usual there."""
    (tmp_path / "train.conll").write_text(as_conll(sentences()))
    long = [word for sentence in sentences("works") for word in sentence][:90]
    (tmp_path / "dev.conll").write_text(as_conll([long, *sentences("runs")[:5]]))
    text = " ".join(word for word, _ in long)
    more = lost(encoder, [text], 64)["tokens"]
    for policy, cut in (("windows", 0), ("head", more)):
        said = []
        run = bertsmith.finetune(
            "tag", tmp_path / "train.conll", tmp_path / "dev.conll", out=tmp_path / policy, model=encoder, check=False,
            truncate=policy, say=said.append, **FEW,
        )  # fmt: skip
        found = bertsmith.evaluate(run.folder, tmp_path / "dev.conll")
        assert found["truncated"] == {"inputs": int(cut > 0), "tokens": cut, "policy": policy}
        assert found["metrics"] == run.metrics["dev"]
        assert any(f"dev: 1 of 6 inputs is longer than 64 tokens; {cut} tokens" in s for s in said) == (cut > 0)
        result = run.model.tag(text)
        assert result.truncated == cut and len(result.tags) == len(long)


def test_questions(tmp_path, encoder):
    """Windows read the whole context; a question that is cut is told even so."""
    given = questions(filler=80)
    asked = given["data"][0]["paragraphs"][0]["qas"][0]
    asked["question"] = "who lives in the town " * 5
    (tmp_path / "train.json").write_text(json.dumps(given))
    said = []
    run = bertsmith.finetune(
        "span", tmp_path / "train.json", tmp_path / "train.json", out=tmp_path / "m", model=encoder, length=48,
        question_length=10, overlap=8, check=False, say=said.append, **FEW,
    )  # fmt: skip
    cut = lost(encoder, [asked["question"]], 12)["tokens"]  # two of these are special tokens
    assert f"train: 1 of 25 inputs is longer than 48 tokens; {cut} tokens of it are cut" in "\n".join(said)
    assert bertsmith.evaluate(run.folder, tmp_path / "train.json")["truncated"] == {
        "inputs": 1, "tokens": cut, "policy": "windows",
    }  # fmt: skip
    context = given["data"][0]["paragraphs"][0]["context"]
    assert run.model.answer(asked["question"], context).truncated == cut
    over = lost(encoder, [context], 48 - 3 - 4 + 2)["tokens"]  # beside [CLS], two [SEP] and a question of four
    assert run.model.answer("who lives in oslo", context, truncate="head").truncated == over
