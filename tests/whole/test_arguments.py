"""An argument of a wrong type is one sentence that names it, for every public function and every job of a model."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from whole.tiny import make_encoder

import bertsmith
from bertsmith.arguments import checked
from bertsmith.errors import BertsmithError
from bertsmith.tasks.classify import Classify

FUNCTIONS = [
    name for name in bertsmith.__all__ if inspect.isfunction(getattr(bertsmith, name)) and name != "models_table"
]
JOBS = ["fill", "follows", "classify", "score", "choose", "tag", "answer", "embed", "similar", "rerank", "hidden"]
GRAMMAR = Path(__file__).parents[2] / "examples" / "grammar"
STARRED = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
ODD = [
    5, 2.5, True, b"x", {"a": 1}, {}, [["a"]], ["a", None], np.array(["a", "b"]), np.array([1, 2]), Path("x"), object(),
    str, len, "a\0b", "x" * 5000, "\ud800", "", None,
]  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return bertsmith.load(make_encoder(tmp_path_factory.mktemp("model"), "ForPreTraining"), device="cpu")


def fill_in(function: Any, tmp_path: Path) -> dict[str, Any]:
    """Something for each argument that must be given; nothing of it is there, so that no work begins."""
    given = inspect.signature(function).parameters.values()
    needed = [one.name for one in given if one.default is one.empty and one.kind not in STARRED]
    return dict.fromkeys([*needed, *(["source"] if function is bertsmith.load else [])], str(tmp_path / "none"))


def try_odd(function: Any, given: dict[str, Any], without: tuple[str, ...] = (), values: list[Any] = ODD) -> None:
    """Each value for each argument in turn: it is taken, or refused in one line."""
    for one in inspect.signature(function).parameters.values():
        for value in values if one.kind not in STARRED and one.name not in without else ():
            try:
                function(**{**given, one.name: value})
            except BertsmithError as error:
                assert "\n" not in str(error)
            except Exception as error:
                pytest.fail(f"{function.__name__}({one.name}={value!r:.40}): {type(error).__name__}: {error}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_ends_in_an_error_of_its_own(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = getattr(bertsmith, name)
    values = ODD if name != "load" else ODD[:-1]  # None is the model that comes along
    try_odd(function, fill_in(function, tmp_path), ("say", "tell", "progress"), values)


@pytest.mark.parametrize("name", [*JOBS, "use", "save", "need", "predict", "tokenize"])
def test_no_job_ends_in_an_error_of_its_own(model, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = getattr(model, name)
    kind: dict[str, Any] = {"kind": Classify, "examples": []} if name == "predict" else {}
    try_odd(job, {**fill_in(job, tmp_path), **kind})


@pytest.mark.parametrize("name", bertsmith.inspect.__all__)
def test_no_look_inside_ends_in_an_error_of_its_own(model, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    look = getattr(bertsmith.inspect, name)
    try_odd(look, {**fill_in(look, tmp_path), "model": model})


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda m: bertsmith.load(5), "source is 5; it must be a string or a path."),
        (lambda m: bertsmith.load(adapters=["a"]), "adapters is ['a']; it must be a mapping of names."),
        (lambda m: bertsmith.load(adapters={"a": 1}), "adapters is {'a': 1}; it must be a mapping of names."),
        (lambda m: bertsmith.load(threads=10**6), "threads is 1,000,000; it must be at most 1,024, best as many as"),
        (lambda m: bertsmith.finetune("tag", [], out="a", watchers=None), "watchers is None; it must be a list of Wat"),
        (lambda m: bertsmith.train_tokenizer("a", "b", special=None), "special is None; it must be a list of names."),
        (lambda m: bertsmith.pretrain("a", "b", watchers=[5]), "watchers is [5]; it must be a list of Watchers."),
        (lambda m: bertsmith.evaluate_blimp(GRAMMAR, m, sets=5), "sets is 5; it must be a list of names."),
        (lambda m: bertsmith.inspect.attention("a", "b"), "model is 'a'; it must be a model that bertsmith.load gave."),
        (lambda m: bertsmith.inspect.ablate_answer(m, "fill", "a [MASK]", heads=5), "5 names no head; write lay"),
        (lambda m: bertsmith.inspect.attention(m, "b", causal=None), "causal is None; it must be True or False."),
        (lambda m: m.use(None), "adapter is None; it must be a string or a path."),
        (lambda m: m.save("a\0b"), "'a\\x00b' is a name that no file or folder can have."),
        (lambda m: m.save("x" * 300), f"'{'x' * 60}' … is too long for the name of a file or folder."),
        (lambda m: m.embed("a", normalize="no"), "normalize is 'no'; it must be True or False."),
        (lambda m: m.embed("a", truncate=3), "truncate is 3; it must be one of 'error', 'head', 'tail', 'head+tail', "),
        (lambda m: m.fill("[MASK]", targets={"a": 1}), "targets is a list of words, not dict."),
        (lambda m: m.similar([1, 2], ["a"]), "text 1 must be a string, not int."),
        (lambda m: m.predict(5, []), "kind is 5; it must be a class."),
        (lambda m: m.predict(Classify, ["a"]), "example 1 of classify must be a TextExample, not str."),
        (lambda m: m.predict(Classify, "a"), "give a list of examples, not str."),
        (lambda m: bertsmith.predict_file("fill", "a", "", m), "out is empty; give the name of a file to write to."),
        (lambda m: bertsmith.predict_file("fill", "a", "b", m, options=[1]), "options is [1]; it must be a mapping of"),
        (lambda m: bertsmith.build_corpus("a", held_out="1"), "held_out is '1'; it must be a number."),
        (lambda m: bertsmith.build_corpus([["a"]]), "sources is [['a']]; it must be a string or a path or a list"),
        (lambda m: bertsmith.train_tokenizer("a", "b", size=2.5), "size is 2.5; it must be a whole number."),
    ],
)  # fmt: skip
def test_the_sentence(model, ask, told):
    with pytest.raises(BertsmithError) as error:
        ask(model)
    assert str(error.value).startswith(told)


def test_what_is_right_goes_through(tmp_path):
    """NumPy's numbers and truths, any path, any iterable; and Python's own words for an argument that is not there."""

    @checked("own")
    def take(
        name: str | Path, sources: str | Path | list[str] = "", count: int = 1, share: float | None = None,
        flag: bool = False, own: str = "", **more: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        return name, count, share, flag, own, more

    assert take(tmp_path, count=np.int64(3), share=1, flag=np.bool_(True), own=5, other=object)[1:3] == (3, 1)
    with pytest.raises(TypeError, match=r"take\(\) missing 1 required positional argument: 'name'"):
        take()
    assert inspect.signature(take).parameters.keys() >= {"name", "count", "more"}
