"""What a user types becomes a folder: their own, the cache's, or (only when asked) a download."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from bertsmith.errors import BertsmithError
from bertsmith.models import hub

OLD, NEW = "0" * 40, "1" * 40
FILES = ("config.json", "tokenizer.json", "model.safetensors")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, an empty working folder, and a huggingface_hub that cannot be imported."""
    for name in ("HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "cache"


def put(cache: Path, name: str, commit: str = NEW, files=FILES, ref: str | None = "main") -> Path:
    """A model as huggingface_hub lays it out: links in the snapshot, bytes in the blobs."""
    folder = cache / ("models--" + name.replace("/", "--"))
    snapshot = folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir(exist_ok=True)
    for file in files:
        blob = folder / "blobs" / f"{file}-{commit[:6]}"
        blob.write_text("{}")
        (snapshot / file).symlink_to(os.path.relpath(blob, snapshot))
    if ref:
        (folder / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (folder / "refs" / ref).write_text(commit)
    return snapshot


@pytest.mark.parametrize("source", [3, True, None, b"m", ["m"]])
def test_what_is_no_name_is_a_sentence(source):
    assert refusal(source) == f"the model is {source!r}: give a folder or the name of a model."


def refusal(source: str | Path, **options) -> str:
    with pytest.raises(BertsmithError) as caught:
        hub.locate(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_name_in_the_cache(cache: Path):
    snapshot = put(cache, "owner/name")
    assert hub.find("owner/name") == snapshot
    assert hub.locate("owner/name") == snapshot
    assert hub.find("owner/other") is None
    assert hub.find("name") is None  # another owner's model of the same name is another model


def test_old_and_new_names_of_one_model(cache: Path):
    new = put(cache, "google-bert/bert-base-uncased")
    assert hub.find("bert-base-uncased") == new
    old = put(cache, "bert-base-uncased")
    assert hub.find("bert-base-uncased") == old
    assert hub.find("google-bert/bert-base-uncased") == new
    assert hub.find("stranger/bert-base-uncased") is None


def test_new_name_finds_the_old_one(cache: Path):
    snapshot = put(cache, "gpt2")
    assert hub.find("openai-community/gpt2") == snapshot


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"HF_HUB_CACHE": "{0}/a", "HUGGINGFACE_HUB_CACHE": "{0}/b", "HF_HOME": "{0}/c"}, "a"),
        ({"HUGGINGFACE_HUB_CACHE": "{0}/b", "HF_HOME": "{0}/c"}, "b"),
        ({"HF_HOME": "{0}/c", "XDG_CACHE_HOME": "{0}/d"}, "c/hub"),
        ({"XDG_CACHE_HOME": "{0}/d"}, "d/huggingface/hub"),
        ({"HF_HOME": ""}, "home/.cache/huggingface/hub"),
        ({"HF_HOME": "~/e"}, "home/e/hub"),
        ({}, "home/.cache/huggingface/hub"),
    ],
)
def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: str):
    monkeypatch.delenv("HF_HUB_CACHE")
    for name, value in given.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert hub.cache_folder() == tmp_path / expected


def test_revisions(cache: Path):
    old = put(cache, "owner/name", OLD, ref="refs/pr/1")
    new = put(cache, "owner/name", NEW)
    assert hub.find("owner/name") == new
    assert hub.find("owner/name", "refs/pr/1") == old
    assert hub.find("owner/name", OLD) == old
    assert hub.find("owner/name", "v2") is None
    assert 'at revision "v2"' in refusal("owner/name", revision="v2")
    for odd in ("../main", "", "/main", "a b"):
        assert "cannot be a revision" in refusal("owner/name", revision=odd)


def test_without_refs_the_newest_snapshot_with_a_config(cache: Path):
    first = put(cache, "m", OLD, ref=None)
    second = put(cache, "m", NEW, ref=None)
    third = put(cache, "m", "2" * 40, files=["tokenizer.json"], ref=None)
    for seconds, folder in enumerate((second, first, third)):
        os.utime(folder, (seconds, seconds))
    assert hub.find("m") == first


def test_a_ref_leads_nowhere_else(cache: Path):
    snapshot = put(cache, "m", ref=None)
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    for text in ("../../../here", "", "3" * 40):
        (refs / "main").write_text(text)
        assert hub.find("m") is None
    (refs / "main").write_bytes(b"\xff\xfe")
    assert "refs" in refusal("m")


def test_a_part_of_a_model(cache: Path):
    snapshot = put(cache, "m", files=["tokenizer.json"])
    assert hub.find("m") is None
    message = refusal("m")
    assert str(snapshot) in message
    assert "without config.json" in message


@pytest.mark.parametrize("file", FILES)
def test_a_blob_that_is_gone(cache: Path, file: str):
    snapshot = put(cache, "m")
    (snapshot / file).resolve().unlink()
    assert f"{snapshot / file} is a link to a file that is no longer in the cache" in refusal("m")
    with pytest.raises(BertsmithError, match="no longer in the cache"):
        hub.find("m")


def test_a_missing_blob_that_nobody_reads(cache: Path):
    snapshot = put(cache, "m", files=[*FILES, "pytorch_model.bin", "model.onnx"])
    (snapshot / "pytorch_model.bin").resolve().unlink()
    (snapshot / "model.onnx").resolve().unlink()
    assert hub.locate("m") == snapshot


def test_an_existing_folder_wins(cache: Path, tmp_path: Path):
    put(cache, "m")
    Path("m").mkdir()
    (tmp_path / "home" / "mine").mkdir(parents=True)
    assert hub.locate("m") == Path("m")
    assert hub.locate("m", download=True) == Path("m")
    assert hub.locate(Path("m").resolve()) == Path("m").resolve()
    assert hub.locate("~/mine") == tmp_path / "home" / "mine"
    assert "has no revision 'v2'" in refusal("m", revision="v2")


def test_a_file_instead_of_a_folder():
    Path("m").mkdir()
    Path("m/model.safetensors").touch()
    assert "m/model.safetensors is a file: give a folder that holds" in refusal("m/model.safetensors")
    Path("m/config.json").touch()
    assert refusal("m/model.safetensors") == "m/model.safetensors is a file: give the folder it is in, m."
    Path("m/bert_model.ckpt.index").touch()
    assert "give the folder, m" in refusal("m/bert_model.ckpt")


def test_not_found_says_what_to_do(cache: Path):
    assert refusal("bert-base-uncased") == (
        'no folder "bert-base-uncased" here and no such model in the local Hugging Face cache '
        f"({cache}): give a folder, or add --download (download=True in Python)."
    )
    assert "no folder" in refusal(Path("bert-base-uncased"))


@pytest.mark.parametrize(
    "odd",
    ["", "  ", "../x", "a/b/c", "/not/there", "a b", "-x", "x.", "a--b", "a..b", "ü", "a\nb", "a/", "x\0", "~nobody"],
)
def test_odd_names(odd: str):
    refusal(odd)
    refusal(odd, download=True)
    for function in (hub.find, hub.fetch):
        with pytest.raises(BertsmithError, match="no model can have the name"):
            function(odd)


def test_links_that_lead_nowhere():
    Path("circle").symlink_to("circle")
    Path("gone").symlink_to("nothing")
    assert "circle" in refusal("circle")
    assert "circle" in refusal("circle/x")
    assert "link to nothing" in refusal("gone")
    assert "too long" in refusal("x" * 300).lower()


class Stub(ModuleType):
    """A huggingface_hub that keeps what it was asked; `fails` is raised instead of a download."""

    def __init__(self, cache: Path, files: tuple[str, ...] = FILES, fails: Exception | None = None):
        super().__init__("huggingface_hub")
        self.cache, self.files, self.fails, self.asked = cache, files, fails, []
        self.errors = ModuleType("huggingface_hub.errors")
        self.errors.RepositoryNotFoundError = type("RepositoryNotFoundError", (Exception,), {})
        self.errors.GatedRepoError = type("GatedRepoError", (self.errors.RepositoryNotFoundError,), {})
        self.errors.RevisionNotFoundError = type("RevisionNotFoundError", (Exception,), {})

    def model_info(self, name, *, revision):
        if self.fails:
            raise self.fails
        return SimpleNamespace(siblings=[SimpleNamespace(rfilename=file) for file in self.files])

    def snapshot_download(self, name, *, revision, cache_dir, allow_patterns):
        self.asked.append((name, revision, cache_dir, allow_patterns))
        return str(put(self.cache, name, files=self.files, ref=revision))


def install(monkeypatch: pytest.MonkeyPatch, stub: Stub) -> Stub:
    monkeypatch.setitem(sys.modules, "huggingface_hub", stub)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", stub.errors)
    return stub


def test_download_only_when_asked(cache: Path, monkeypatch: pytest.MonkeyPatch):
    stub = install(monkeypatch, Stub(cache))
    refusal("owner/name")
    assert stub.asked == []
    folder = hub.locate("owner/name", download=True, revision="v1")
    assert folder == hub.locate("owner/name", revision="v1")
    patterns = ["*.json", "*.txt", "*.safetensors", "*.model"]
    assert stub.asked == [("owner/name", "v1", str(cache), patterns)]
    hub.locate("owner/name", download=True, revision="v1")
    assert len(stub.asked) == 1  # what is whole is not asked for again


def test_the_index_of_pickles_does_not_matter_beside_safetensors(cache: Path):
    snapshot = put(cache, "m")
    (snapshot / "pytorch_model.bin.index.json").write_text('{"weight_map": {"x": "pytorch_model-1.bin"}}')
    assert hub.locate("m", download=True) == snapshot


def test_pickles_only_where_there_are_no_safetensors(cache: Path, monkeypatch: pytest.MonkeyPatch):
    stub = install(monkeypatch, Stub(cache, ("config.json", "pytorch_model.bin")))
    hub.fetch("m")
    assert stub.asked[0][3][-1] == "pytorch_model*.bin"


@pytest.mark.parametrize("weights", ["", "model.safetensors", "pytorch_model.bin"])
def test_a_graph_only_where_there_are_no_weights(cache: Path, monkeypatch: pytest.MonkeyPatch, weights: str):
    """One of many that say the same in other precisions."""
    graphs = ["onnx/model.onnx", "onnx/model.onnx_data", "onnx/model_fp16.onnx", "onnx/model_quantized.onnx"]
    stub = install(monkeypatch, Stub(cache, ("config.json", *([weights] if weights else []), *graphs)))
    monkeypatch.setattr(
        stub, "snapshot_download", lambda name, **options: stub.asked.append(options) or str(put(cache, name))
    )
    hub.fetch("m")
    asked = [pattern for pattern in stub.asked[0]["allow_patterns"] if "onnx" in pattern]
    assert asked == ([] if weights else graphs[:2])


def test_the_pickle_of_a_dense_module(cache: Path, monkeypatch: pytest.MonkeyPatch):
    """Older sentence-transformers models have safetensors for the encoder alone."""
    files = ("config.json", "model.safetensors", "2_Dense/pytorch_model.bin", "3_Dense/model.safetensors")
    stub = install(monkeypatch, Stub(cache, (*files, "3_Dense/pytorch_model.bin", "old/pytorch_model.bin")))
    monkeypatch.setattr(
        stub, "snapshot_download", lambda name, **options: stub.asked.append(options) or str(put(cache, name))
    )
    hub.fetch("m")
    assert stub.asked[0]["allow_patterns"] == [*hub.READ, "2_Dense/pytorch_model.bin"]


@pytest.mark.parametrize("lacking", ["weights", "blob", "shard", "index", "modules", "pooling"])
def test_a_download_completes_what_is_there(cache: Path, monkeypatch: pytest.MonkeyPatch, lacking: str):
    snapshot = put(cache, "m", OLD, files=FILES[:2] if lacking == "weights" else FILES)
    if lacking == "blob":
        (snapshot / "model.safetensors").resolve().unlink()
    if lacking == "shard":
        (snapshot / "model.safetensors.index.json").write_text('{"weight_map": {"x": "model-2.safetensors"}}')
    if lacking == "index":
        (snapshot / "model.safetensors.index.json").write_text("[")
    if lacking == "modules":
        (snapshot / "modules.json").write_text("[{}]")
    if lacking == "pooling":
        (snapshot / "modules.json").write_text('[{"type": "models.Pooling", "path": "1_Pooling"}]')
    stub = install(monkeypatch, Stub(cache))
    hub.locate("m", download=True)
    assert len(stub.asked) == 1


def test_downloads_that_fail(cache: Path, monkeypatch: pytest.MonkeyPatch):
    stub = install(monkeypatch, Stub(cache))
    for fails, says in (
        (stub.errors.RepositoryNotFoundError("404"), 'has no model "m"'),
        (stub.errors.GatedRepoError("403"), "accept"),
        (stub.errors.RevisionNotFoundError("404"), 'no revision "v9"'),
        (ConnectionError("no route\nto host"), r'cannot download "m" \(no route to host\): check the network'),
        (TimeoutError(), "TimeoutError"),
    ):
        stub.fails = fails
        with pytest.raises(BertsmithError, match=says) as caught:
            hub.locate("m", download=True, revision="v9")
        assert "\n" not in str(caught.value)
    stub.fails, stub.files = None, ("README.md",)
    assert "no config.json" in refusal("m", download=True)


def test_download_without_the_extra():
    assert refusal("m", download=True) == "downloading needs huggingface_hub: pip install 'bertsmith[hub]'."


REAL = """
import sys
from huggingface_hub import try_to_load_from_cache
from bertsmith.errors import BertsmithError
from bertsmith.models import hub

print(try_to_load_from_cache("owner/name", "config.json", cache_dir=sys.argv[1]))
print(hub.locate("owner/name"))
try:
    hub.locate("m", download=True)
except BertsmithError as error:
    print(error)
"""


def test_the_real_huggingface_hub_agrees(cache: Path):
    """Its own lookup finds the made cache in the same place, and its offline error becomes one sentence.

    In a process of its own: a second import of huggingface_hub beside one that others hold is not whole.
    """
    snapshot = put(cache, "owner/name")
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", REAL, cache], env=offline, capture_output=True, text=True, check=True)
    theirs, ours, refused = ran.stdout.splitlines()
    assert theirs == str(snapshot / "config.json")
    assert ours == str(snapshot)
    assert refused.startswith('cannot download "m"')
