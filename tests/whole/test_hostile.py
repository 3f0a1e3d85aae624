"""Damaged and hostile folders through the command line: one line that begins with `error:`, and no code run."""

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cli.running import Ran, run_here
from oracle import make_reference
from safetensors.torch import load_file, save_file

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS)]
PIECES += [f"word{number}" for number in range(97 - len(PIECES))]
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs `bertsmith *words` in this process."""
    return lambda *words, stdin=b"": run_here(monkeypatch, capsys, words, stdin)


@pytest.fixture
def refused(run):
    """Asks the folder for a vector, wants a refusal and gives its sentence."""

    def refuse(folder: Path) -> str:
        return sentence(run("embed", "a cab", "--model", folder))

    return refuse


def sentence(ran: Ran) -> str:
    assert ran.status == 1, (ran.status, ran.out[:200], ran.err[:500])
    assert ran.out == ""
    assert ran.err.startswith("error: ") and ran.err.count("\n") == 1 and "Traceback" not in ran.err
    return ran.err


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small masked-LM in a sentence-transformers folder, every companion file there."""
    folder = tmp_path_factory.mktemp("whole") / "model"
    make_reference("bert", "mask").save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in PIECES))
    write(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "model_max_length": 60})
    write(folder / "special_tokens_map.json", {"mask_token": "[MASK]"})
    write(folder / "modules.json", MODULES)
    write(folder / "sentence_bert_config.json", {"max_seq_length": 50, "do_lower_case": False})
    write(folder / "config_sentence_transformers.json", {"prompts": {}})
    (folder / "1_Pooling").mkdir()
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 48, "pooling_mode_mean_tokens": True})
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))


def change(path: Path, **settings: object) -> None:
    write(path, {**json.loads(path.read_text()), **settings})


FILES = [
    "config.json",
    "model.safetensors",
    "vocab.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
]


def test_the_whole_folder_works(run, folder: Path):
    assert run("embed", "a cab", "--model", folder).status == 0
    assert run("fill", "a [MASK] cab", "--model", folder).status == 0
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there == set(FILES)


# Each file in turn.


@pytest.mark.parametrize("file", FILES)
def test_an_empty_file(file: str, refused, folder: Path):
    (folder / file).write_bytes(b"")
    assert Path(file).name in refused(folder)


@pytest.mark.parametrize("file", FILES)
def test_a_folder_in_place_of_a_file(file: str, refused, folder: Path):
    (folder / file).unlink()
    (folder / file).mkdir()
    assert Path(file).name in refused(folder)


@pytest.mark.parametrize("file", FILES)
def test_a_link_in_a_circle_in_place_of_a_file(file: str, refused, run, folder: Path):
    (folder / file).unlink()
    (folder / file).symlink_to(Path(file).name)
    if file in ("tokenizer_config.json", "special_tokens_map.json"):  # taken for missing, which they may be
        assert run("embed", "a cab", "--model", folder).status in (0, 1)
    else:
        refused(folder)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("junk", [b"\xff\xfe\x00junk", b"\x00" * 64, b"PK\x03\x04", b"[" * 100_000, b"7", b"null"])
def test_junk_in_place_of_a_file(file: str, junk: bytes, refused, folder: Path):
    (folder / file).write_bytes(junk)
    assert Path(file).name in refused(folder)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "vocab.txt", "1_Pooling/config.json"])
def test_a_file_that_is_not_there(file: str, refused, folder: Path):
    (folder / file).unlink()
    refused(folder)


# The folder itself.


def test_odd_folders(refused, folder: Path, tmp_path: Path):
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "nowhere").symlink_to("nothing")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for odd in ("circle", "nowhere", "empty", "file", "missing", "file/below"):
        assert odd in refused(tmp_path / odd)
    assert "give the folder it is in" in refused(folder / "model.safetensors")


# config.json


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "[1, 2]",
        '"text"',
        "not JSON",
        '{"model_type": "bert"',
        '{"hidden_size": NaN, "model_type": "bert"}',
        '{"x": Infinity, "model_type": "bert"}',
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        '{"hidden_size": ' + "9" * 10_000 + "}",
        "{}",
        '{"model_type": "bert", "architectures": ["\\ud800"]}',
    ],
    ids=range(11),
)
def test_odd_settings(content: str, refused, folder: Path):
    (folder / "config.json").write_text(content)
    refused(folder)


def test_settings_that_are_not_utf_8(refused, folder: Path):
    (folder / "config.json").write_bytes('{"model_type": "bért"}'.encode("latin-1"))
    assert "config.json" in refused(folder)


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_size": 96},
        {"num_hidden_layers": 99},
        {"vocab_size": 96},
        {"vocab_size": 10**12},
        {"num_hidden_layers": 10**12},
        {"num_attention_heads": 7},
        {"hidden_act": "os.system"},
        {"auto_map": {"AutoModel": "evil.Model"}},
        {"layer_norm_eps": 1e308},
    ],
    ids=str,
)
def test_wrong_sizes(settings: dict, refused, folder: Path):
    change(folder / "config.json", **settings)
    refused(folder)


# Weights.


@pytest.mark.parametrize("keep", [1, 7, 8, 9, 100, 5000, 0.5, -1])
def test_truncated_safetensors(keep: float, refused, folder: Path):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    assert "model.safetensors" in refused(folder)


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**40, 2**63, 2**64 - 1])
def test_a_header_of_another_length(length: int, refused, folder: Path):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", length) + data[8:])
    assert "model.safetensors" in refused(folder)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, 2**60]},
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]},
        {"dtype": "F4", "shape": [8], "data_offsets": [0, 4]},
        {"dtype": "F8_E8M0", "shape": [4], "data_offsets": [0, 4]},
        {},
    ],
    ids=str,
)
def test_a_hostile_header(entry: dict, refused, folder: Path):
    header = json.dumps({"bert.embeddings.word_embeddings.weight": entry}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    refused(folder)


class Payload:
    """Runs a command in whoever unpickles it."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("form", ["pickle", "torch", "torch-old", "among-tensors", "safetensors", "shard"])
def test_a_pickle_with_a_payload_does_not_run(form: str, refused, folder: Path, tmp_path: Path):
    mark = tmp_path / "it-ran"
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    place = folder / {"safetensors": "model.safetensors", "shard": "part.bin"}.get(form, "pytorch_model.bin")
    if form == "pickle":
        place.write_bytes(pickle.dumps(Payload(mark)))
    else:
        content = {**tensors, "x": Payload(mark)} if form == "among-tensors" else Payload(mark)
        torch.save(content, place, _use_new_zipfile_serialization=form != "torch-old")
    if form == "shard":
        write(folder / "model.safetensors.index.json", {"weight_map": dict.fromkeys(tensors, "part.bin")})
    assert place.name in refused(folder)
    assert not mark.exists()
    with open(place, "rb") as file:  # the payload would have run
        pickle.load(file) if form == "pickle" else torch.load(file, weights_only=False)
    assert mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        {1: torch.zeros(2)},
        {"a": "text"},
        torch.zeros(3),
        {"state_dict": 3},
        {"bert.embeddings.word_embeddings.weight": torch.zeros(97, 48).to_sparse()},
        {"bert.embeddings.word_embeddings.weight": torch.zeros(97, 48, device="meta")},
    ],
    ids=range(7),
)
def test_a_pickle_of_something_else(content: object, refused, folder: Path):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    refused(folder)


@pytest.mark.parametrize("keep", [1, 4, 100, 0.5, 0.999])
def test_a_truncated_pickle(keep: float, refused, folder: Path):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    data = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    assert "pytorch_model.bin" in refused(folder)


@pytest.mark.parametrize(
    "places",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "missing.safetensors",
        "..",
        "",
        "1_Pooling",
        "config.json",
        "model.safetensors.index.json",
        "a\0b",
        7,
        None,
    ],
)
def test_a_hostile_list_of_shards(places: object, refused, folder: Path):
    names = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    write(folder / "model.safetensors.index.json", {"weight_map": dict.fromkeys(names, places)})
    refused(folder)


@pytest.mark.parametrize(
    "index", [{}, {"weight_map": []}, {"weight_map": {}}, [], {"weight_map": {"x": "m.safetensors"}}]
)
def test_an_odd_list_of_shards(index: object, refused, folder: Path):
    (folder / "model.safetensors").rename(folder / "m.safetensors")
    write(folder / "model.safetensors.index.json", index)
    refused(folder)


def test_weights_that_are_not_numbers(refused, run, folder: Path, tmp_path: Path):
    tensors = load_file(folder / "model.safetensors")
    save_file({name: torch.full_like(t, float("nan")) for name, t in tensors.items()}, folder / "model.safetensors")
    assert "not a number" in refused(folder)
    for words in (["embed", "a cab", "--out", tmp_path / "vectors.npy"], ["fill", "a [MASK]"]):
        assert "not a number" in sentence(run(*words, "--model", folder))
    assert not (tmp_path / "vectors.npy").exists()


# Sentence-transformers files.


@pytest.mark.parametrize("path", ["../../x", "../secret", "/etc", "1_Pooling/../../secret"])
def test_modules_out_of_the_folder_are_not_read(path: str, refused, folder: Path):
    secret = folder.parent / "secret"
    secret.mkdir()
    write(secret / "config.json", {"pooling_mode": "max"})
    write(folder / "modules.json", [MODULES[0], {**MODULES[1], "path": path}])
    assert "out of the folder" in refused(folder)


@pytest.mark.parametrize("kind", ["os.system", "evil.Pooling", "sentence_transformers.models.Evil"])
def test_modules_of_other_types_are_not_run(kind: str, refused, folder: Path):
    write(folder / "modules.json", [MODULES[0], {**MODULES[1], "type": kind}])
    assert kind in refused(folder)


# Tokenizers.


def test_a_vocabulary_with_duplicates(refused, folder: Path):
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in [*PIECES[:60], "word1", *PIECES[61:]]))
    assert "twice" in refused(folder)


def test_a_tokenizer_of_another_model(refused, folder: Path):
    more = [f"more{number}" for number in range(50)]
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in [*PIECES, *more]))
    assert "do not belong together" in refused(folder)


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        "{",
        '{"version": "1.0", "model": {"type": "Evil"}}',
        '{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}',
        '{"version": "1.0", "added_tokens": [{"id": 4000000000, "content": "x"}], '
        '"model": {"type": "BPE", "vocab": {}, "merges": []}}',
    ],
    ids=range(6),
)
def test_an_invalid_tokenizer_json(content: str, refused, folder: Path):
    (folder / "tokenizer.json").write_text(content)
    refused(folder)


# Inputs.


@pytest.mark.parametrize("verb", ["embed", "fill"])
@pytest.mark.parametrize("line", ["words", "one-word"])
def test_megabytes_on_one_line(verb: str, line: str, run, folder: Path):
    count = 500_000 if verb == "embed" else 100_000  # fill reads them as embed does, but takes twice as long
    text = b"[MASK] " + (b"word3 " * count if line == "words" else b"x" * 3_000_000)
    ran = run(verb, "-", "--model", folder, stdin=text)
    assert "Traceback" not in ran.err
    if ran.status:
        sentence(ran)
    else:
        assert ran.out.count("\n") == 1 and json.loads(ran.out)["input"].startswith("[MASK]")


# The same in a process of its own: nothing of Python's shows.


@pytest.mark.parametrize("damage", ["truncated", "payload", "list", "binary-name"])
def test_in_a_process_of_its_own(damage: str, folder: Path, tmp_path: Path):
    mark = tmp_path / "it-ran"
    if damage == "truncated":
        os.truncate(folder / "model.safetensors", 1000)
    elif damage == "payload":
        (folder / "model.safetensors").unlink()
        torch.save(Payload(mark), folder / "pytorch_model.bin")
    elif damage == "list":
        write(folder / "config.json", [])
    model = os.fsencode(folder) + (b"\xff" if damage == "binary-name" else b"")
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "default"}
    command = [sys.executable, "-m", "bertsmith", "embed", "a cab", "--model", model]
    ran = subprocess.run(command, capture_output=True, env={**os.environ, **paths})
    sentence(Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode(errors="replace")))
    assert not mark.exists()
