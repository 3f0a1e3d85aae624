"""What objectives are made from. In: a corpus, a file of phrases, the folder of a teacher. Out: ids and a network."""

from pathlib import Path

import torch

from bertsmith.data.rows_words import begins_word
from bertsmith.data.shards import Corpus, tokenizer_digest
from bertsmith.errors import BertsmithError
from bertsmith.models.adapters import open_checkpoint
from bertsmith.models.hub import locate
from bertsmith.models.network import Network
from bertsmith.objectives.objective import Vocabulary
from bertsmith.text.loading import load_tokenizer

LONGEST = 64  # tokens in a phrase: each length costs a look at every token


def read_vocabulary(corpus: Corpus, has_words: bool) -> Vocabulary:
    """What the corpus says of its ids; `has_words`: which of them begin a word, too."""
    specials = corpus.specials
    if "mask" not in specials:
        raise BertsmithError(f"{corpus.folder} names no mask token; build the corpus with a tokenizer that has one.")
    tokenizer = corpus.tokenizer() if has_words else None
    begins = None
    if tokenizer is not None:
        found = torch.from_numpy(begins_word(tokenizer))[: corpus.vocabulary]
        begins = torch.ones(corpus.vocabulary, dtype=torch.bool)  # ids that no piece has begin words
        begins[: len(found)] = found
    known = sorted({*specials.values(), *corpus.header.get("special_ids", ())})
    return Vocabulary(corpus.vocabulary, specials["mask"], tuple(known), begins)


def read_phrases(path: Path, corpus: Corpus) -> list[list[int]]:
    """The ids of each line: as it stands in a text, and where other vocabularies want it so, behind a space."""
    tokenizer = corpus.tokenizer()
    if tokenizer is None:
        raise BertsmithError(f"{corpus.folder} holds codes, in which there are no phrases; leave phrases out.")
    try:
        lines = path.expanduser().read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "it is not UTF-8 text"
        raise BertsmithError(f"the phrases in {path} cannot be read: {why}.") from None
    found: dict[tuple[int, ...], None] = {}
    for number, line in enumerate(lines, 1):
        phrase = line.strip()
        for text in (phrase, f" {phrase}") if phrase else ():
            ids = tuple(tokenizer.encode(text, specials=False).ids)
            if len(ids) > LONGEST:
                told = f"line {number} of {path} is a phrase of {len(ids)} tokens"
                raise BertsmithError(f"{told}; give one phrase a line, of at most {LONGEST}.")
            found |= {ids: None} if tokenizer.unk_id not in ids else {}
    if not any(len(ids) > 1 for ids in found):
        raise BertsmithError(f"{path} holds no phrase of several known tokens; give one phrase a line.")
    return [list(ids) for ids in found if ids]


def open_teacher(name: str, corpus: Corpus, download: bool = False) -> Network:
    """A teacher reads the very ids that the student reads, so they must mean the same."""
    folder = locate(name, download=download)
    checkpoint = open_checkpoint(folder)
    try:
        tokenizer = load_tokenizer(folder)
    except BertsmithError:  # a model of codes has none
        tokenizer = None
    if (None if tokenizer is None else tokenizer_digest(tokenizer)) != corpus.header["tokenizer"]:
        raise BertsmithError(
            f"the teacher {name} has another tokenizer than {corpus.folder}; build the corpus with the teacher's."
        )
    return checkpoint.network
