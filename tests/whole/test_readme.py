"""What the README says is so: its Python runs, its tables are up to date, its verbs answer."""

import gzip
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from ready import Starter
from whole import tiny
from whole.glue import make_glue

import bertsmith
from bertsmith.models.files import read_noted, write_tensors
from bertsmith.models.hub import HOUSE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def starter(tmp_path_factory):
    """Starts commands where the default is a corner of the shipped model, with what its adapters have for it.

    That takes a small part of the time; the whole of it is asked by the demo, below, and by the pages of docs/.
    """
    folder = tmp_path_factory.mktemp("shipped") / "house"
    cut_house(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERTSMITH_MODEL", str(folder))
        with Starter(os.environ) as started:
            yield started


def cut_house(folder):
    """The first layer, an eighth as wide: all heads, jobs and pieces are there, and what they say means nothing."""
    shutil.copytree(HOUSE, folder)
    config = json.loads((folder / "config.json").read_text())
    width, inner = config["hidden_size"], config["intermediate_size"]
    narrow = {"num_hidden_layers": 1, "hidden_size": width // 8, "intermediate_size": inner // 8}
    (folder / "config.json").write_text(json.dumps({**config, **narrow}))
    wide = {width: 1, 3 * width: 3, inner: 1, 2 * inner: 2}  # how many matrices stand side by side
    for path in folder.rglob("*.compact.safetensors"):
        tensors, notes = read_noted(path)
        notes.pop("base", None)  # what an adapter knows its base by
        kept = {name: one for name, one in tensors.items() if "layers.0." in name or "layers." not in name}
        write_tensors(path, {name: cut_tensor(one, wide) for name, one in kept.items()}, notes)


def cut_tensor(tensor, wide):
    for place, size in enumerate(tensor.shape):
        if size in wide:
            parts = tensor.unflatten(place, (wide[size], -1))
            tensor = parts.narrow(place + 1, 0, size // wide[size] // 8).flatten(place, place + 1)
    return tensor.contiguous()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, demo_model, starter):
    """A working folder with `my-bert`, a small BERT with both pretraining heads, data, and models tuned on it."""
    place = tmp_path_factory.mktemp("readme")
    torch.manual_seed(0)
    config = transformers.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    transformers.BertForPreTraining(config).save_pretrained(place / "my-bert")
    for name in ("vocab.txt", "tokenizer_config.json"):
        (place / "my-bert" / name).write_bytes((demo_model / name).read_bytes())
    (place / "lines.txt").write_text("one line\nanother\n")
    (place / "asked.jsonl").write_text('{"question": "Who built it?", "context": "A smith built the bridge."}\n')
    (place / "masked.jsonl").write_text('{"text": "Paris is the [MASK] of France."}\n')
    (place / "bridge.txt").write_text("The bridge was built by a smith in 1861.\n")
    rows = [f"{record['text']},{record['label']}" for record in tiny.reviews()]
    for name in ("reviews.csv", "more-reviews.csv"):
        (place / name).write_text("\n".join(["text,label", *rows]) + "\n")
    (place / "train.conll").write_text(tiny.as_conll(tiny.sentences()))
    (place / "dev.conll").write_text(tiny.as_conll(tiny.sentences("works")))
    shutil.copytree(ROOT / "examples", place / "examples")
    make_glue(place / "GLUE")
    write_texts(place)
    tune_models(place)
    mix = run_line("bertsmith finetune --members examples/mix.toml --out my-mix", place, starter)
    assert mix.returncode == 0, mix.stderr
    return place


def write_texts(place):
    """Raw text in folders, packed lines, and codes: what tokenizers and corpora are made of."""
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CHANGES.md", "docs/own-task.md")]
    for folder in ("texts", "de", "fr", "wiki"):
        (place / folder).mkdir()
    for number, page in enumerate(pages):
        for folder in ("texts", "de", "fr"):
            (place / folder / f"{number}.txt").write_text(page, encoding="utf-8")
    with gzip.open(place / "wiki" / "pages.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": part}) + "\n" for page in pages for part in page.split("\n## "))
    codes = ([(7 * row + place_) % 1000 for place_ in range(64)] for row in range(40))
    (place / "codes.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in codes))


def tune_models(place):
    """By the very runs that the examples ask for, so that those find them finished."""
    reviews, train, dev = (place / name for name in ("reviews.csv", "train.conll", "dev.conll"))
    model = os.environ["BERTSMITH_MODEL"]
    bertsmith.finetune("classify", reviews, out=place / "my-classifier", model=model)
    bertsmith.finetune("classify", place / "examples" / "tickets.csv", out=place / "my-model", model=model)
    bertsmith.finetune("classify", place / "examples" / "tickets.csv", lora=8, out=place / "my-adapter", model=model)
    bertsmith.finetune("tag", train, dev, epochs=5.0, out=place / "my-tagger", model=model)
    story = [{"question": "who?", "context": f"{name} lives here", "answers": name} for name in tiny.PEOPLE]
    bertsmith.finetune("span", story, out=place / "my-reader", max_steps=1)
    shutil.copytree(place / "my-classifier", place / "another-model")
    shutil.copytree(place / "my-model", place / "my-other-model")
    tune_more(place)


def tune_more(place):
    """For numbers, choices and labels that were never learnt; a step each."""
    pairs = [{"text": f"text {i}", "pair": f"text {i % 5}", "score": i / 7} for i in range(30)]
    (place / "pairs.csv").write_text("text,pair\n" + "".join(f"{row['text']},{row['pair']}\n" for row in pairs))
    questions = [{"prompt": f"what {i}?", "choices": [f"this {i}", "that"], "answer": i % 2} for i in range(30)]
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    said = ("contradiction", "neutral", "entailment")
    inferred = [{"premise": f"text {i}", "hypothesis": f"it is {i}", "label": said[i % 3]} for i in range(30)]
    answered = [{"query": f"what {i}?", "positive": f"it is {i}"} for i in range(30)]
    for task, rows, name in (("regress", pairs, "my-scorer"), ("choose", questions, "my-chooser"),
                             ("rerank", answered, "my-reranker"),
                             ("classify", inferred, "my-nli-model")):  # fmt: skip
        bertsmith.finetune(task, rows, out=place / name, model=place / "my-bert", max_steps=1)


def test_the_python_blocks_run_in_order(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    assert len(blocks) >= 5
    exec("\n".join(blocks), {})
    assert re.search(r"\(3, \d+\) \[0, 0, 0\]", capsys.readouterr().out)
    assert (folder / "copy-of-my-bert" / "model.safetensors").exists()


def run_line(line, folder, starter):
    """As a shell would, which has nothing to do but to cut the line into words and to open a file."""
    line = line.replace("--model google-bert/bert-base-uncased --download", "--model my-bert")
    line = line.replace("path/to/folder", "my-bert")
    words, _, file = line.partition(" < ")
    assert not re.search(r"[|<>$&;`]", re.sub(r'"[^"]*"', "", words)), f"a line that needs a shell: {line}"
    return starter.run(shlex.split(words), folder, (folder / file).read_bytes() if file else b"")


def list_verbs(line, starter):
    found = run_line(f"{line} --help", ROOT, starter).stdout
    return re.findall(r"^  ([a-z]+)  ", found.partition("Commands:")[2], re.MULTILINE)


def examples_in_help(starter):
    verbs = list_verbs("bertsmith", starter)
    assert len(verbs) >= 6
    for verb in verbs:
        page = run_line(f"bertsmith {verb} --help", ROOT, starter).stdout
        if "Commands:" in page:
            parts = list_verbs(f"bertsmith {verb}", starter)
            page = "".join(run_line(f"bertsmith {verb} {part} --help", ROOT, starter).stdout for part in parts)
        examples = re.findall(rf"^\s+(bertsmith {verb}.*)$", page, re.MULTILINE)
        assert examples, verb
        yield from examples


def test_the_examples_of_the_verbs_run(folder, starter):
    """Those of the README and those of each `--help`, as they are typed; a model to download stands ready instead."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    typed = [line.split("  #")[0].strip() for line in re.findall(r"^bertsmith .+$", page, re.MULTILINE)]
    others = {*examples_in_help(starter), *re.findall(r"\| `(bertsmith .+?)` \|$", page, re.MULTILINE)}
    assert len(typed) >= 7 and len(others) >= 7
    failed = []
    for line in dict.fromkeys([*typed, *sorted(others)]):  # the page in its order: what it makes it goes on with
        if line.startswith("bertsmith serve"):  # has no end: tests/serving starts it, asks it and ends it
            continue
        done = run_line(line, folder, starter)
        if done.returncode or not (done.stdout or "--out" in line):
            failed.append((line, done.stderr))
    assert not failed, "\n".join(f"{line}: {said}" for line, said in failed)


def test_the_tables_are_up_to_date(monkeypatch):
    """Those of the README, of all results, of the presets and of the card; a stale one ends it with its name."""
    monkeypatch.setattr(sys, "argv", ["fill_pages.py", "--check"])
    runpy.run_path(str(ROOT / "docs" / "fill_pages.py"), run_name="__main__")


def test_the_demo_runs():
    whole = {name: value for name, value in os.environ.items() if name != "BERTSMITH_MODEL"}
    line = [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(line, capture_output=True, text=True, env=whole)
    assert done.returncode == 0, done.stderr
    for said in ("mask", "medicine, law, engineering and music", "1905", "does not say", "positive", "negative",
                 "Marie Curie PER", "entailment", "contradiction", "sport", "An octopus can open a jar"):  # fmt: skip
        assert said in done.stdout, said
