"""Tokenizer and corpus of the house model: raw text and benchmark files in, a corpus without the benchmarks out.

Files with a word a line (tags) are written as sentences first, so that runs of words can be found in them. Held-out
documents are written as plain text too: models of any tokenizer can be asked about them, and none was trained on them.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from bertsmith.data.shards import Corpus
from bertsmith.text.sources import Document, list_sources, read_documents

LEFT_OUT = ("multilingual", "ml", "words", "made", "translation", "lm")  # no English benchmark, or made of the others
FIRST, CHARACTERS = 24, 600  # tokens by which a document is known, characters that surely hold them
TAGGED = ("wikiann_en", "conll2003", "conll2000", "essays", "bio")


def list_benchmarks(data: Path, work: Path) -> list[Path]:
    """What is excluded: every set in the folder, those with a word a line as sentences in `work`."""
    found = []
    for folder in sorted(path for path in data.iterdir() if path.is_dir() and path.name not in LEFT_OUT):
        if folder.name not in TAGGED:
            found.append(folder)
            continue
        out = work / "exclude" / folder.name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = "-".join(path.relative_to(folder).parts) + ".txt"
            sentences = join_words(path.read_text(encoding="utf-8", errors="replace").splitlines())
            (out / name).write_text("\n".join(sentences) + "\n", encoding="utf-8")
        found.append(out)
    return found


def join_words(lines: Iterable[str]) -> Iterator[str]:
    """Sentences of a file with a word a line and its tags behind it, and a blank line between two."""
    words: list[str] = []
    for line in [*lines, ""]:
        cells = line.split()
        if not cells or cells[0] == "-DOCSTART-":
            if words:
                yield " ".join(words)
            words = []
        else:
            words.append(cells[0].removeprefix("en:"))


def write_held_out(corpus: Path, sources: Sequence[str], out: Path) -> int:
    """The held-out documents as they stand in the sources, a blank line between them; how many there are.

    A document is known by its first tokens, which cleaning leaves alone; one that begins as another does is left out.
    """
    held = Corpus.open(corpus, "held-out")
    tokenizer = held.tokenizer()
    assert tokenizer is not None
    wanted = beginnings(held) - beginnings(Corpus.open(corpus, "train"))
    found = 0
    with out.open("w", encoding="utf-8") as file:
        for some in blocks(read_documents(list_sources(list(sources))), 1024):
            encoded = tokenizer.encode_many([document.text[:CHARACTERS] for document in some])
            for document, row in zip(some, encoded, strict=True):
                if tuple(row.ids[1 : FIRST + 1]) in wanted:
                    file.write(document.text.strip() + "\n\n")
                    found += 1
    return found


def beginnings(corpus: Corpus) -> set[tuple[int, ...]]:
    return {tuple(corpus.document(number)[:FIRST].tolist()) for number in range(len(corpus))}


def blocks(documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
    walk = iter(documents)
    while some := list(islice(walk, size)):
        yield some
