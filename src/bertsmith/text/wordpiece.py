"""WordPiece from a vocab.txt, one piece a line (BERT, DistilBERT, ELECTRA, MPNet).

In: the vocabulary file and the settings beside it. Out: an engine that cleans, splits and cuts words as BERT does.
"""

from pathlib import Path

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine

from bertsmith.errors import BertsmithError
from bertsmith.text.families import Family
from bertsmith.text.settings import Built, Settings, read_text


def wordpiece_engine(path: Path, settings: Settings, family: Family, tokens: dict[str, str]) -> Built:
    """Builds the engine, names the words it never splits; special tokens and post-processor are the caller's part."""
    vocabulary = read_vocabulary(path)
    unknown = tokens["unk"]
    if unknown not in vocabulary:
        raise BertsmithError(f"{path} has no line {unknown!r}, the token for unknown words; add it or name another.")
    longest = settings.number("max_input_chars_per_word", 100)
    # Unsaid, accents go when case goes, as in the original BERT.
    accents = None if settings.options.get("strip_accents") is None else settings.flag("strip_accents", False)
    engine = Engine(
        models.WordPiece(
            vocabulary, unk_token=unknown, max_input_chars_per_word=longest, continuing_subword_prefix="##"
        )
    )
    engine.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.flag("tokenize_chinese_chars", True),
        strip_accents=accents,
        lowercase=settings.flag("do_lower_case", family.lower_case and not is_cased(path.parent)),
    )
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece(prefix="##")
    # A word that is never split is one whole piece wherever it stands alone, in its own case.
    unsplit = [word for word in settings.options.get("never_split") or [] if word in vocabulary]
    return engine, [AddedToken(word, single_word=True, normalized=False) for word in unsplit]


def is_cased(folder: Path) -> bool:
    """Whether the folder's name says so: the original releases had no other place for it ("cased_L-12_H-768_A-12")."""
    name = folder.resolve().name.lower()
    return "cased" in name and "uncased" not in name


def read_vocabulary(path: Path) -> dict[str, int]:
    """The pieces of a vocab.txt; the line number is the id."""
    vocabulary: dict[str, int] = {}
    # Only "\n" ends a line: some vocabularies hold pieces that Python's splitlines would cut at.
    for id, line in enumerate(read_text(path).rstrip("\r\n").split("\n")):
        piece = line.strip() or line.rstrip("\r")
        if piece in vocabulary:
            raise BertsmithError(
                f"{path} holds {piece!r} twice, on lines {vocabulary[piece] + 1} and {id + 1}, so its ids are not "
                f"certain; remove or rename one."
            )
        vocabulary[piece] = id
    return vocabulary
