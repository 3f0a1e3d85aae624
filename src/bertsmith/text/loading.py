"""Loads the tokenizer of a released folder, whichever files it holds.

In: a folder with tokenizer.json, or a SentencePiece model, or vocab.json and merges.txt, or vocab.txt, and the settings
beside them. Out: a `Tokenizer`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenizers import AddedToken, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Engine

from bertsmith.errors import BertsmithError
from bertsmith.text.bytelevel import bytelevel_engine
from bertsmith.text.families import FAMILIES, Family, find_family, post_processor
from bertsmith.text.sentencepiece import sentencepiece_engine
from bertsmith.text.settings import Built, Settings, read_json, read_settings, read_text
from bertsmith.text.templates import read_template
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.text.wordpiece import wordpiece_engine

SENTENCEPIECE_FILES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
NAMES = ("tokenizer.json", *SENTENCEPIECE_FILES, "vocab.json", "vocab.txt")  # the first of them counts


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """Loads the folder's tokenizer; tokenizer.json is preferred when several forms are there."""
    if not isinstance(folder, str | Path):
        raise BertsmithError(f"{folder!r} is not a folder; give one that holds tokenizer files.")
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise BertsmithError(f"{folder} is not a folder; give one that holds tokenizer files.")
    path = _find_file(folder)
    settings = read_settings(folder)
    with _engine_errors(path):
        (engine, own), family, tokens = _build(path, settings)
        roles = _register(engine, settings, tokens, own)
        if engine.post_processor is None and family is not None:
            engine.post_processor = _post_processor(engine, family, roles, settings)
        template = read_template(engine)
        inputs = settings.options.get("model_input_names")
        if isinstance(inputs, list) and "token_type_ids" not in inputs:
            template = template.in_one_segment()
        return Tokenizer(engine, template, roles, settings.limit)


def has_tokenizer(folder: Path) -> bool:
    """Whether a tokenizer is there, sound or damaged; a model of codes has none."""
    return any((folder / name).exists() for name in NAMES)


def _find_file(folder: Path) -> Path:
    for name in NAMES:
        path = folder / name
        if name == "vocab.json" and not (folder / "merges.txt").exists():
            continue
        if path.exists():
            return path
    alone = " (vocab.json is there, but its merges.txt is not)" if (folder / "vocab.json").exists() else ""
    raise BertsmithError(
        f"{folder} holds no tokenizer{alone}: looked for tokenizer.json, {', '.join(SENTENCEPIECE_FILES)}, "
        f"vocab.json with merges.txt, and vocab.txt."
    )


def _build(path: Path, settings: Settings) -> tuple[Built, Family | None, dict[str, AddedToken]]:
    """The engine of the file, the family that rules it, and the tokens of each role that the family has by default."""
    if path.name == "tokenizer.json":
        engine = _read_engine(path)
        _follow_settings(engine, settings)
        family = settings.family()
        tokens = _default_tokens(family or _guess_family(engine))
        return (engine, []), family, tokens
    form = {"vocab.txt": "wordpiece", "vocab.json": "bytes"}.get(path.name, "sentencepiece")
    family = settings.family(form) or FAMILIES[_default_family(path, form)]
    tokens = _default_tokens(family) | settings.tokens
    names = {role: token.content for role, token in tokens.items()}
    if form == "wordpiece":
        built = wordpiece_engine(path, settings, family, names)
    elif form == "bytes":
        built = bytelevel_engine(path.parent, settings, names)
    else:
        built = sentencepiece_engine(path, settings, family, names)
    return built, family, _default_tokens(family)


def _default_family(path: Path, form: str) -> str:
    if form == "sentencepiece":
        return {"sentencepiece.bpe.model": "xlmroberta", "spm.model": "debertav2"}.get(path.name, "albert")
    return "bert" if form == "wordpiece" else "roberta"


def _read_engine(path: Path) -> Engine:
    content = read_text(path)
    read_json(path)  # names the line of a JSON mistake, which the engine does not
    engine = Engine.from_str(content)
    # Cutting and padding belong to the call, not to the file: settings left in there would cut in silence.
    engine.no_truncation()
    engine.no_padding()
    return engine


def _follow_settings(engine: Engine, settings: Settings) -> None:
    """What tokenizer_config.json says outright goes over the file, as people who edit it by hand are used to.

    A tokenizer of the generic class is as its file has it.
    """
    named = settings.options.get("tokenizer_class")
    family = find_family(named) if named else settings.family()
    if family is None:
        return
    normalizer, splitter = engine.normalizer, engine.pre_tokenizer
    if family.form == "wordpiece" and isinstance(normalizer, normalizers.BertNormalizer):
        normalizer.lowercase = settings.flag("do_lower_case", normalizer.lowercase)
        normalizer.handle_chinese_chars = settings.flag("tokenize_chinese_chars", normalizer.handle_chinese_chars)
        if "strip_accents" in settings.options:  # null: they go when case goes
            said = settings.options["strip_accents"] is not None
            normalizer.strip_accents = settings.flag("strip_accents", False) if said else None
    if family is FAMILIES["roberta"] and isinstance(splitter, pre_tokenizers.ByteLevel):
        splitter.add_prefix_space = settings.flag("add_prefix_space", splitter.add_prefix_space)


def _guess_family(engine: Engine) -> Family:
    known = {"[CLS]": "bert", "<cls>": "xlnet", "<s>": "roberta", "<|endoftext|>": "gpt2"}
    return FAMILIES[next((name for token, name in known.items() if engine.token_to_id(token) is not None), "bert")]


def _default_tokens(family: Family) -> dict[str, AddedToken]:
    tokens = {role: AddedToken(token, special=True, normalized=False) for role, token in family.tokens.items()}
    if family.mask_takes_space and "mask" in tokens:
        tokens["mask"] = AddedToken(family.tokens["mask"], special=True, normalized=False, lstrip=True)
    return tokens


def _register(
    engine: Engine, settings: Settings, defaults: dict[str, AddedToken], own: list[AddedToken]
) -> dict[str, str]:
    """Makes the special and added tokens known to the engine, so that they are found in text; returns them by role."""
    roles = {role: token for role, token in defaults.items() if engine.token_to_id(token.content) is not None}
    for role, token in settings.tokens.items():
        same = defaults.get(role)
        # A bare string says nothing of spaces, so the family's way with them stays.
        roles[role] = same if same and same.content == token.content and not _is_detailed(settings, role) else token
    by_content = {token.content: token for token in [*own, *settings.extra, *roles.values()]}
    for content, id in sorted(settings.added_ids.items(), key=lambda item: item[1]):
        token = settings.added.get(id) or by_content.get(content) or AddedToken(content, normalized=True)
        _add_at(engine, token, id, settings.folder / "added_tokens.json")
    for id, token in sorted(settings.added.items()):
        _add_at(engine, token, id, settings.folder / "tokenizer_config.json")
    _add(engine, [*roles.values(), *settings.extra, *own])
    return {role: token.content for role, token in roles.items()}


def _is_detailed(settings: Settings, role: str) -> bool:
    return isinstance(settings.options.get(f"{role}_token"), dict) or settings.tokens[role].lstrip


def _add_at(engine: Engine, token: AddedToken, id: int, path: Path) -> None:
    _add(engine, [token])
    found = engine.token_to_id(token.content)
    if found != id:
        raise BertsmithError(
            f"{path} gives {token.content!r} the id {id}, but beside the vocabulary it gets {found}; "
            f"the files do not belong together."
        )


def _add(engine: Engine, tokens: list[AddedToken]) -> None:
    # The engine would give a token that is there the ways of the new one; what the file says of it stays.
    known = {token.content for token in engine.get_added_tokens_decoder().values()}
    for token in tokens:
        if token.content in known:
            continue
        if token.special:
            engine.add_special_tokens([token])
        else:
            engine.add_tokens([token])


def _post_processor(
    engine: Engine, family: Family, roles: dict[str, str], settings: Settings
) -> processors.TemplateProcessing | processors.RobertaProcessing:
    template = post_processor(family, engine, {**family.tokens, **roles})
    if family.form != "bytes" or "sep sep" not in family.pair:
        return template
    # Does what the template does, and leaves the spaces out of offsets for those who read the saved file elsewhere.
    sep, cls = ((roles[role], engine.get_vocab()[roles[role]]) for role in ("sep", "cls"))
    return processors.RobertaProcessing(
        sep, cls, settings.flag("trim_offsets", True), settings.flag("add_prefix_space", False)
    )


@contextmanager
def _engine_errors(path: Path) -> Iterator[None]:
    """Turns what the engine raises on a broken file, a Rust panic too, into one sentence."""
    try:
        yield
    except (BertsmithError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split())
        raise BertsmithError(f"{path} cannot be used as a tokenizer: {reason}.") from error
