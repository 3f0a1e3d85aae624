"""Texts to build corpora from, and tokenizers to build them with."""

import json
import random

from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, pre_tokenizers

_TEXT = (
    "the a river bank runs by old house green field small town people who lived near water always spoke of long winter "
    "and short summer when children went down to market early light came over hills birds sang in trees"
)
WORDS = _TEXT.split()
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_tokenizer(folder, more=()):
    """WordPiece, uncased, of the words above and the letters."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?:;'\"()-"
    inner = [f"##{letter}" for letter in letters if letter.isalnum()]
    pieces = dict.fromkeys([*SPECIALS, *WORDS, *letters, *inner, *more])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    return folder


def make_bytelevel(folder):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine = Engine(models.BPE({piece: id for id, piece in enumerate([*SPECIALS, *alphabet])}, []))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens(SPECIALS)
    folder.mkdir(parents=True, exist_ok=True)
    engine.save(str(folder / "tokenizer.json"))
    return folder


def write_sentence(draw, length=12):
    return " ".join(draw.choices(WORDS, k=length)).capitalize() + "."


def make_documents(count, seed=0, paragraphs=3):
    draw = random.Random(seed)
    return [
        "\n".join(" ".join(write_sentence(draw) for _ in range(draw.randint(1, 4))) for _ in range(paragraphs))
        for _ in range(count)
    ]


def read_all(folder):
    """Every file below a folder, but for how long it took."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.name == "report.json":
            report = json.loads(path.read_text())
            del report["speed"]
            found[path.name] = report
        elif path.is_file() and path.name != "report.md":
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found
