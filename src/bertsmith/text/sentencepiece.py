"""An engine from a SentencePiece model file (ALBERT, XLM-R, CamemBERT, XLNet, DeBERTa-v2, BigBird).

In: what the file holds, the settings beside it and the family, which moves ids and cleans text in its own way. Out: an
engine that gives the ids SentencePiece itself gives.
"""

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine

from bertsmith.errors import BertsmithError
from bertsmith.text.families import Family
from bertsmith.text.sentencepiece_file import CONTROL, UNIGRAM, USER_DEFINED, SentencePieceModel, read_sentencepiece
from bertsmith.text.settings import Built, Settings

Scored = list[tuple[str, float]]


def sentencepiece_engine(path: Path, settings: Settings, family: Family, tokens: dict[str, str]) -> Built:
    """Builds the engine and names the file's own tokens; special tokens and post-processor are the caller's part."""
    model = read_sentencepiece(path)
    pieces, unknown = _lay_out(model, family, tokens)
    names = [piece for piece, _ in pieces]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BertsmithError(f"{path} holds the piece {twice!r} twice, so its ids are not certain; fetch it again.")
    engine = Engine(_algorithm(model, pieces, unknown))
    engine.normalizer = _normalizer(model, settings, family)
    scheme = "always" if settings.flag("add_prefix_space", model.leading_space) else "never"
    engine.pre_tokenizer = _splitter(model, settings, family, scheme)
    engine.decoder = _decoder(model, scheme)
    known = set(names)
    own = [(text, kind) for text, _, kind in model.pieces if kind in (CONTROL, USER_DEFINED) and text in known]
    return engine, [AddedToken(text, normalized=False, special=kind == CONTROL) for text, kind in own]


def _lay_out(model: SentencePieceModel, family: Family, tokens: dict[str, str]) -> tuple[Scored, int]:
    """The pieces in the order of their ids, and the id of the unknown piece."""
    pieces = [(text, score) for text, score, _ in model.pieces]
    if family.layout == "xlm-roberta":
        # fairseq's own four come first and replace the file's <unk>, <s>, </s>; the mask comes last.
        first = [(tokens[role], 0.0) for role in ("bos", "pad", "eos", "unk")]
        return [*first, *pieces[3:], (tokens["mask"], 0.0)], 3
    if family.layout == "camembert":
        # The file's <unk> keeps a place under a name that no text can reach; <s> and </s> are the file's own.
        first = [("<s>NOTUSED", 0.0), (tokens["pad"], 0.0), ("</s>NOTUSED", 0.0), (tokens["unk"], 0.0)]
        return [*first, ("<unk>NOTUSED", -100.0), *pieces[1:], (tokens["mask"], 0.0)], 3
    if family.layout == "mask behind" and tokens["mask"] not in (text for text, _ in pieces):
        return [*pieces, (tokens["mask"], 0.0)], model.unknown_id  # DeBERTa's file does not know it
    if family.cleaning == "albert":
        # ALBERT and XLNet cut "1990," into "1990" and ",": such pieces are made too dear to be chosen.
        pieces = [(text, score - 100 if _is_number_with_comma(text) else score) for text, score in pieces]
    return pieces, model.unknown_id


def _is_number_with_comma(text: str) -> bool:
    return len(text) > 1 and text[-1] == "," and text[-2].isdigit()


def _algorithm(model: SentencePieceModel, pieces: Scored, unknown: int) -> models.Model:
    if model.algorithm == UNIGRAM:
        return models.Unigram(pieces, unk_id=unknown, byte_fallback=model.byte_fallback)
    vocabulary = {text: id for id, (text, _) in enumerate(pieces)}
    return models.BPE(
        vocab=vocabulary, merges=_merges(pieces, vocabulary), unk_token=pieces[unknown][0], fuse_unk=True,
        byte_fallback=model.byte_fallback,
    )  # fmt: skip


def _merges(pieces: Scored, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """SentencePiece joins the neighbours whose joint piece scores highest; as a list of merges, best first."""
    merges = []
    for text, score in pieces:
        splits = [(text[:cut], text[cut:]) for cut in range(1, len(text))]
        known = [(left, right) for left, right in splits if left in vocabulary and right in vocabulary]
        merges += [(-score, vocabulary[left], vocabulary[right], left, right) for left, right in known]
    return [(left, right) for *_, left, right in sorted(merges)]


def _normalizer(model: SentencePieceModel, settings: Settings, family: Family) -> normalizers.Normalizer:
    steps: list[Any] = []
    if family.cleaning == "albert":
        steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if not settings.flag("keep_accents", False):
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if family.cleaning != "none" and settings.flag("do_lower_case", family.lower_case):
        steps.append(normalizers.Lowercase())
    if model.character_map:
        steps.append(normalizers.Precompiled(model.character_map))
    return normalizers.Sequence(steps)


def _splitter(
    model: SentencePieceModel, settings: Settings, family: Family, scheme: str
) -> pre_tokenizers.PreTokenizer:
    marks = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)
    steps: list[Any] = []
    if settings.flag("split_by_punct", False):
        steps.append(pre_tokenizers.Punctuation(behavior="isolated"))
    if family.cleaning == "albert" and settings.flag("remove_space", True):
        steps.append(pre_tokenizers.WhitespaceSplit())
    elif model.join_spaces:
        # The file's character map has made other whitespace to spaces; what it left divides no words.
        steps.append(pre_tokenizers.Split(" ", behavior="removed"))
    return pre_tokenizers.Sequence([*steps, marks])


def _decoder(model: SentencePieceModel, scheme: str) -> decoders.Decoder:
    spaces = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    if not model.byte_fallback:
        return spaces
    steps: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if scheme == "always" else steps)
