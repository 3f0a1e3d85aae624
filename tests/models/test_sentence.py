"""sentence-transformers folders: the same vectors as that library, and saved folders that it opens to the same ones."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from oracle import make_reference
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Dropout,
    LayerNorm,
    Normalize,
    Pooling,
    Transformer,
)
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Engine

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.models.sentence import SWITCHES

MODES = list(SWITCHES.values())
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXTS = [
    "a cab",
    "",
    "   ",
    "the words stand in a row, and the row is rather long: " + "over and over again " * 9,
    "A Cab With Capitals",
    "x",
    "one, two; three!",
    "ünïcode 汉字 😀 ­zero​width",
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders without modules.json: a BERT and an MPNet with word pieces, a RoBERTa with bytes; MPNet's lower case."""
    home = tmp_path_factory.mktemp("plain")
    make_reference("bert", "").save_pretrained(home / "bert")
    make_bert_tokenizer().save_pretrained(home / "bert")
    make_reference("roberta", "", vocab_size=264).save_pretrained(home / "roberta")
    make_roberta_tokenizer().save_pretrained(home / "roberta")
    make_reference("mpnet", "").save_pretrained(home / "mpnet")
    make_mpnet_tokenizer().save_pretrained(home / "mpnet")
    return {name: home / name for name in ("bert", "roberta", "mpnet")}


def make_bert_tokenizer():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS)]
    pieces += [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ,;!:", "the", "and", "row", "##er"]
    engine = Engine(models.WordPiece({piece: id for id, piece in enumerate(pieces)}, unk_token="[UNK]"))
    engine.normalizer, engine.pre_tokenizer = (
        normalizers.BertNormalizer(lowercase=False),
        pre_tokenizers.BertPreTokenizer(),
    )
    engine.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{role}_token": f"[{role.upper()}]" for role in ("unk", "pad", "cls", "sep", "mask")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=engine, model_max_length=50, **names)


def make_mpnet_tokenizer():
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>", "the", *LETTERS, *(f"##{c}" for c in LETTERS), *",;"]
    return transformers.MPNetTokenizer(vocab={piece: id for id, piece in enumerate(pieces)}, model_max_length=50)


def make_roberta_tokenizer():
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: id for id, piece in enumerate([*names, *alphabet, "Ġa", "an", "th"])}
    engine = Engine(models.BPE(vocabulary, [("Ġ", "a"), ("a", "n"), ("t", "h")], unk_token="<unk>"))
    engine.pre_tokenizer, engine.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    engine.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    engine.add_special_tokens([AddedToken(name, special=True) for name in names])
    roles = dict(zip(("cls", "pad", "sep", "unk", "mask"), names, strict=True))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine, model_max_length=60, **{f"{role}_token": name for role, name in roles.items()}
    )


def make(folder: Path, base: Path, *modules, **options) -> SentenceTransformer:
    """A folder as sentence-transformers saves it, read back by that library; random in all that it adds."""
    parts = [Transformer(str(base)), *modules]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for part in modules:
            for parameter in part.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    SentenceTransformer(modules=parts, device="cpu", **options).save(str(folder), create_model_card=False)
    return SentenceTransformer(str(folder), device="cpu")


def agree(theirs: SentenceTransformer, folder: Path, texts=TEXTS, prompt=None, **options) -> bool:
    expected = theirs.encode(texts, **options)
    found = bertsmith.load(folder).embed(texts, prompt=prompt)
    assert found.shape == expected.shape and found.dtype == np.float32
    return bool(np.abs(found - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max()))


def agree_when_saved(theirs: SentenceTransformer, folder: Path, again: Path, **options) -> bool:
    """We load and save; sentence-transformers opens what we saved to the same vectors and the same length."""
    bertsmith.load(folder).save(again)
    reopened = SentenceTransformer(str(again), device="cpu")
    assert reopened.max_seq_length == theirs.max_seq_length
    assert reopened.prompts == theirs.prompts and reopened.default_prompt_name == theirs.default_prompt_name
    assert reopened.similarity_fn_name == theirs.similarity_fn_name
    found, expected = reopened.encode(TEXTS, **options), theirs.encode(TEXTS, **options)
    return bool(np.abs(found - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max()))


COMBINED = [("cls", "mean"), ("mean", "cls"), ("max", "mean", "lasttoken"), ("weightedmean", "mean_sqrt_len_tokens")]


@pytest.mark.parametrize("base", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("mode", [*MODES, *COMBINED], ids=str)
def test_poolings(base: str, mode, plain, tmp_path: Path):
    theirs = make(tmp_path / "theirs", plain[base], Pooling(48, mode))
    assert agree(theirs, tmp_path / "theirs")
    assert agree_when_saved(theirs, tmp_path / "theirs", tmp_path / "ours")


@pytest.mark.parametrize(
    "modules",
    [
        [Normalize()],
        [Dense(48, 20)],
        [Dense(48, 20, activation_function=torch.nn.Identity()), Normalize()],
        [Dense(48, 20, bias=False, activation_function=torch.nn.ReLU()), Dense(20, 60)],
        [Dense(48, 20, activation_function=torch.nn.GELU()), Dropout(0.1), Normalize()],
        [Dense(48, 48, activation_function=torch.nn.SiLU()), Dense(48, 5, activation_function=torch.nn.Sigmoid())],
    ],
    ids=["normalize", "dense", "identity", "no-bias", "gelu", "silu"],
)
@pytest.mark.parametrize("base", ["bert", "mpnet"])
def test_dense_layers_and_unit_length(base, modules, plain, tmp_path: Path):
    theirs = make(tmp_path / "theirs", plain[base], Pooling(48, "mean"), *modules)
    assert agree(theirs, tmp_path / "theirs")
    assert agree_when_saved(theirs, tmp_path / "theirs", tmp_path / "ours")


def test_a_dense_layer_in_a_pickle(plain, tmp_path: Path):
    theirs = make(tmp_path / "theirs", plain["bert"], Pooling(48), Dense(48, 20))
    weights = tmp_path / "theirs" / "2_Dense" / "model.safetensors"
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    assert agree(theirs, tmp_path / "theirs")


@pytest.mark.parametrize("base", ["bert", "roberta"])
def test_spaces_around_a_text(base: str, plain, tmp_path: Path):
    theirs = make(tmp_path / "theirs", plain[base], Pooling(48, "mean"))
    assert agree(theirs, tmp_path / "theirs", ["  a cab", "a cab  ", " a  cab ", "\ta\n", " ", ""])


@pytest.mark.parametrize("base", ["bert", "roberta"])
def test_prompts(base: str, plain, tmp_path: Path):
    prompts = {"query": "find: ", "passage": "text: ", "bare": "z"}
    theirs = make(tmp_path / "theirs", plain[base], Pooling(48, "mean"), prompts=prompts)
    texts = ["a cab", "the row"]
    assert agree(theirs, tmp_path / "theirs", texts)
    for name in prompts:
        assert agree(theirs, tmp_path / "theirs", texts, prompt=name, prompt_name=name)
    theirs_free = theirs.encode(texts, prompt="as you like: ")
    assert np.allclose(bertsmith.load(tmp_path / "theirs").embed(texts, prompt="as you like: "), theirs_free, atol=1e-5)
    assert agree_when_saved(theirs, tmp_path / "theirs", tmp_path / "ours", prompt_name="passage")


def test_a_default_prompt(plain, tmp_path: Path):
    options = {"prompts": {"query": "find: ", "none": ""}, "default_prompt_name": "query"}
    theirs = make(tmp_path / "theirs", plain["bert"], Pooling(48), **options)
    assert agree(theirs, tmp_path / "theirs", ["a cab"])
    assert agree(theirs, tmp_path / "theirs", ["a cab"], prompt="none", prompt_name="none")
    assert agree(theirs, tmp_path / "theirs", ["a cab"], prompt="", prompt_name="none")
    assert agree_when_saved(theirs, tmp_path / "theirs", tmp_path / "ours")
    model = bertsmith.load(tmp_path / "theirs")
    assert not np.allclose(model.embed("a cab"), model.embed("a cab", prompt=""))


def test_how_vectors_are_compared_is_kept(plain, tmp_path: Path):
    theirs = make(tmp_path / "theirs", plain["bert"], Pooling(48), similarity_fn_name="dot")
    assert agree_when_saved(theirs, tmp_path / "theirs", tmp_path / "ours")


def age(folder: Path, old: Path, reading: dict, *, sub: str = "0_Transformer", file: str = "sentence_bert_config.json"):
    """The folder as the library's second version would have laid it out: encoder below, switches, old names."""
    shutil.copytree(folder, old)
    pooling = json.loads((old / "1_Pooling" / "config.json").read_text())["pooling_mode"]
    switches = {switch: mode in pooling for switch, mode in list(SWITCHES.items())[:4]}
    (old / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 48, **switches}))
    (old / sub).mkdir(exist_ok=True)
    modules = json.loads((old / "modules.json").read_text())
    for module in modules:
        module["type"] = "sentence_transformers.models." + module["type"].rpartition(".")[2]
    modules[0]["path"] = sub
    (old / "modules.json").write_text(json.dumps(modules))
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        if sub:
            (old / name).rename(old / sub / name)
    (old / "sentence_bert_config.json").unlink()
    (old / sub / file).write_text(json.dumps(reading))
    version = {"__version__": {"sentence_transformers": "2.0.0"}}
    (old / "config_sentence_transformers.json").write_text(json.dumps(version))
    return old


@pytest.mark.parametrize(
    ("sub", "file"),
    [
        ("", "sentence_bert_config.json"),
        ("0_Transformer", "sentence_bert_config.json"),
        ("0_T", "sentence_roberta_config.json"),
    ],
)
@pytest.mark.parametrize("length", [12, 64, None])
def test_the_old_layout(sub: str, file: str, length, plain, tmp_path: Path):
    """The length in the settings counts, even where it is more than the tokenizer's own 50."""
    make(tmp_path / "new", plain["bert"], Pooling(48, "mean"), Normalize())
    reading = {"max_seq_length": length, "do_lower_case": False}
    old = age(tmp_path / "new", tmp_path / "old", reading, sub=sub, file=file)
    theirs = SentenceTransformer(str(old), device="cpu")
    assert bertsmith.load(old).limit == theirs.max_seq_length == (length or 50)
    assert agree(theirs, old)
    assert agree_when_saved(theirs, old, tmp_path / "ours")


@pytest.mark.parametrize("base", ["bert", "roberta"])
def test_lower_case(base: str, plain, tmp_path: Path):
    make(tmp_path / "new", plain[base], Pooling(48, "cls"))
    old = age(tmp_path / "new", tmp_path / "old", {"max_seq_length": 30, "do_lower_case": True})
    theirs = SentenceTransformer(str(old), device="cpu")
    texts = ["A CAB", "a cab", "İstanbul ΟΔΟΣ ẞ", "THE " * 40, "AN ÅNGSTRÖM"]
    assert agree(theirs, old, texts)
    assert agree_when_saved(theirs, old, tmp_path / "ours")


def test_lengths_set_by_the_user(plain, tmp_path: Path):
    parts = Transformer(str(plain["bert"])), Pooling(48)
    model = SentenceTransformer(modules=list(parts), device="cpu")
    model.max_seq_length = 9
    model.save(str(tmp_path / "theirs"), create_model_card=False)
    theirs = SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
    assert bertsmith.load(tmp_path / "theirs").limit == theirs.max_seq_length == 9
    assert agree(theirs, tmp_path / "theirs")
    assert agree_when_saved(theirs, tmp_path / "theirs", tmp_path / "ours")


@pytest.mark.parametrize("base", ["bert", "roberta"])
def test_a_plain_folder_is_read_as_the_library_reads_it(base: str, plain):
    assert agree(SentenceTransformer(str(plain[base]), device="cpu"), plain[base])


def test_saved_loaded_saved_are_the_same_bytes(plain, tmp_path: Path):
    make(
        tmp_path / "theirs", plain["bert"], Pooling(48, ("mean", "cls")), Dense(96, 7), Normalize(), prompts={"q": "ü "}
    )
    bertsmith.load(tmp_path / "theirs").save(tmp_path / "one")
    bertsmith.load(tmp_path / "one").save(tmp_path / "two")
    files = {str(p.relative_to(tmp_path / "one")) for p in (tmp_path / "one").rglob("*")}
    assert "2_Dense/model.safetensors" in files
    for file in files:
        if (tmp_path / "one" / file).is_file():
            assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


# What is refused.


@pytest.fixture
def made(plain, tmp_path: Path) -> Path:
    make(tmp_path / "made", plain["bert"], Pooling(48, "mean"), Dense(48, 20), Normalize())
    return tmp_path / "made"


def refusal(folder: Path) -> str:
    with pytest.raises(BertsmithError) as caught:
        bertsmith.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change(path: Path, **settings) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def change_modules(folder: Path, change) -> Path:
    modules = change(json.loads((folder / "modules.json").read_text()))
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


@pytest.mark.parametrize(
    "kind", ["sentence_transformers.models.LSTM", "evil.Pooling", "Pooling", "os.system", "sentence_transformers"]
)
def test_unknown_modules(kind: str, made: Path):
    change_modules(made, lambda modules: [modules[0], {**modules[1], "type": kind}, *modules[2:]])
    assert f"a module of type {kind}" in refusal(made)


def test_a_real_module_that_is_not_read(plain, tmp_path: Path):
    make(tmp_path / "theirs", plain["bert"], Pooling(48, "mean"), LayerNorm(48))
    assert "LayerNorm" in refusal(tmp_path / "theirs")


@pytest.mark.parametrize(
    "order", [[0, 1, 3, 2], [0, 2, 1, 3], [1, 2, 3], [0, 2, 3], [0, 0, 1], [0, 1, 1], [0, 1, 3, 3], []]
)
def test_modules_in_an_order_that_is_not_read(order: list[int], made: Path):
    """Unit length before a dense layer, or a dense layer before the pooling, would give other numbers."""
    assert "in this order" in refusal(change_modules(made, lambda modules: [modules[i] for i in order]))


@pytest.mark.parametrize("path", ["../../x", "/etc", "1_Pooling/../..", "..", "C:\\x", "..\\x"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_paths_out_of_the_folder(path: str, number: int, made: Path):
    def lead_out(modules):
        modules[number]["path"] = path
        return modules

    assert "out of the folder" in refusal(change_modules(made, lead_out))


@pytest.mark.parametrize("content", ["{}", '{"a": 1}', "[1]", '["x"]', '[{"type": "a"}]', "7", "null", "[", ""])
def test_odd_lists_of_modules(content: str, made: Path):
    (made / "modules.json").write_text(content)
    assert "modules.json" in refusal(made)


@pytest.mark.parametrize(
    ("file", "settings", "says"),
    [
        ("2_Dense/config.json", {"activation_function": "os.system"}, "os.system"),
        ("2_Dense/config.json", {"activation_function": "evil.Tanh"}, "evil.Tanh"),
        ("2_Dense/config.json", {"activation_function": None}, "activation_function"),
        ("2_Dense/config.json", {"activation_function": "torch.nn.Linear"}, "torch.nn.Linear"),
        ("2_Dense/config.json", {"in_features": 49}, "do not fit"),
        ("2_Dense/config.json", {"in_features": "many"}, "do not fit"),
        ("2_Dense/config.json", {"out_features": -20}, "do not fit"),
        ("2_Dense/config.json", {"bias": False}, "do not fit"),
        ("2_Dense/config.json", {"use_residual": True}, "use_residual"),
        ("2_Dense/config.json", {"module_input_name": "token_embeddings"}, "module_input_name"),
        ("1_Pooling/config.json", {"pooling_mode": "attention"}, "attention"),
        ("1_Pooling/config.json", {"pooling_mode": ["mean", ["cls"]]}, "['cls']"),
        ("1_Pooling/config.json", {"pooling_mode": {"mean": 1}}, "mean"),
        ("1_Pooling/config.json", {"pooling_mode": 3}, "3"),
        ("1_Pooling/config.json", {"include_prompt": False}, "include_prompt"),
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "cls"]}, "takes vectors of width 48"),
        ("config_sentence_transformers.json", {"prompts": ["a"]}, "prompts"),
        ("config_sentence_transformers.json", {"prompts": {"a": 1}}, "prompts"),
        ("config_sentence_transformers.json", {"default_prompt_name": "nobody"}, "nobody"),
        ("config_sentence_transformers.json", {"truncate_dim": 8}, "truncate_dim"),
        ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, "fill-mask"),
    ],
)
def test_settings_that_are_not_read(file: str, settings: dict, says: str, made: Path):
    change(made / file, **settings)
    assert says in refusal(made)


def test_dense_layers_that_do_not_fit_each_other(plain, tmp_path: Path):
    make(tmp_path / "theirs", plain["bert"], Pooling(48), Dense(48, 20), Dense(20, 5))
    change(tmp_path / "theirs/3_Dense/config.json", in_features=21)
    save_file(
        {"linear.weight": torch.ones(5, 21), "linear.bias": torch.ones(5)},
        tmp_path / "theirs/3_Dense/model.safetensors",
    )
    assert "dense layer 2 takes vectors of width 21" in refusal(tmp_path / "theirs")


@pytest.mark.parametrize(("pooling", "dense"), [("cls", 0), (("cls", "mean"), 0), ("mean", 8)])
def test_info_tells_how_many_numbers_a_vector_has(pooling, dense: int, plain, tmp_path: Path):
    """Poolings side by side and dense layers make it another number than the width of the encoder."""
    reads = Transformer(str(plain["bert"]))
    parts = [reads, Pooling(48, pooling)]
    if dense:
        parts.append(Dense(48, dense))
    theirs = SentenceTransformer(modules=parts, device="cpu")
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    told = bertsmith.load(tmp_path / "theirs", device="cpu").info()
    assert told["vector_width"] == theirs.encode("a cab").shape[0]
