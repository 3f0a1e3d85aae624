"""`bertsmith.build_corpus` and `bertsmith.corpus_info`: raw text to a corpus that models are pretrained on.

    corpus = bertsmith.build_corpus("texts/", tokenizer="my-tokenizer", out="corpus")
    corpus.tokens, corpus.documents, corpus.sentences

The same call again goes on after a kill, says so when all is done, and refuses other settings.
"""

import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertsmith.arguments import checked
from bertsmith.data.corpus.building import ASKED, REPORT, Build, Say
from bertsmith.data.corpus.engines import ENGINES, Engine
from bertsmith.data.corpus.excluding import list_excluded
from bertsmith.data.corpus.settings import CorpusSettings, describe, name_difference
from bertsmith.data.shards import HEADER, SPLITS, Corpus, read_header, tokenizer_digest
from bertsmith.errors import BertsmithError
from bertsmith.models.files import take_folder
from bertsmith.tasks.texts import take_count
from bertsmith.text.sources import FIELD, Unit, list_sources, refuse_unread
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.lock import FolderLock
from bertsmith.workers import refuse_second_run


@checked()
def build_corpus(
    sources: str | Path | Sequence[str | Path],
    tokenizer: str | Path | Tokenizer | None = None,
    out: str | Path = "corpus",
    *,
    unit: Unit | None = None,
    field: str = "text",
    held_out: float = 0.01,
    duplicates: bool = True,
    near_duplicates: bool = True,
    similarity: float = 0.8,
    filters: bool = True,
    shortest: int = 50,
    tokens_per_character: float | None = None,
    repetition: float = 0.5,
    boilerplate: int = 20,
    exclude: str | Path | Sequence[str | Path] = (),
    gram: int = 13,
    codes: bool = False,
    vocabulary: int | None = None,
    processes: int = 1,
    engine: Engine = "local",
    overwrite: bool = False,
    say: Say | None = None,
) -> Corpus:
    """Cleans, compares and tokenizes `sources` into the folder `out`; gives the part to train on.

    `sources` are files, folders and globs: text, Markdown, JSON Lines, JSON, Parquet, also packed. With `codes` they
    are rows of integers, and there is no tokenizer. Processes are started anew (spawned), so a script that asks
    for several needs its `if __name__ == "__main__":`.
    """
    settings = CorpusSettings(
        unit, field, held_out, duplicates, near_duplicates, similarity, filters, shortest, tokens_per_character,
        repetition, boilerplate, gram, codes, vocabulary,
    )  # fmt: skip
    if engine not in ENGINES:
        raise BertsmithError(f"engine {engine!r} is not known; use one of {', '.join(ENGINES)}.")
    processes, target = take_count("processes", processes), take_folder(out)
    if processes > 1:
        refuse_second_run()
    unread: Counter[str] = Counter()
    listed = list_sources(sources, unread)
    refuse_unread(listed, unit, FIELD if codes else field)  # a row of codes may be a record in any file
    excluded = list_excluded([exclude] if isinstance(exclude, str | Path) else exclude)
    _refuse_idle(settings, bool(excluded))
    loaded = _load_tokenizer(tokenizer, codes)
    asked = {
        "settings": describe(settings), "tokenizer": None if loaded is None else tokenizer_digest(loaded),
        "sources": [_identify(source.path) for source in listed], "exclude": [_identify(path) for path in excluded],
    }  # fmt: skip
    say = say or (lambda sentence: None)
    if _is_finished(target, asked, overwrite):
        say(f"{target} is finished already; nothing was done.")
        return Corpus.open(target)
    target = target.absolute()
    if engine == "ray":  # its workers stand in a folder of their own
        listed = [replace(source, path=source.path.absolute()) for source in listed]
    building = target.parent / f".{target.name}.building"
    build = Build(asked, settings, listed, excluded, loaded, building, processes, engine, say, unread)
    _carry_out(build, target)
    return Corpus.open(target)


def _refuse_idle(settings: CorpusSettings, excludes: bool) -> None:
    if settings.codes and excludes:
        raise BertsmithError("exclude is for text, and codes are rows of numbers; leave one of the two away.")
    if settings.gram != CorpusSettings.gram and not excludes:
        raise BertsmithError("gram is for what is excluded; name that too (exclude), or leave it out.")


@checked()
def corpus_info(folder: str | Path, *, check: bool = False) -> dict[str, Any]:
    """What a corpus holds; `check` reads all of it and compares its checksums."""
    folder = Path(folder).expanduser()
    header = read_header(folder)
    for split in SPLITS:
        opened = Corpus.open(folder, split)
        if check:
            opened.verify()
    try:
        report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        report = {}
    facts = {name: header[name] for name in ("kind", "dtype", "vocabulary", "tokenizer", "specials")}
    splits = {split: {name: header["splits"][split][name] for name in ("documents", "sentences", "tokens")}
              for split in SPLITS}  # fmt: skip
    told = {
        name: report[name]
        for name in ("read", "unknown", "dropped", "exclude", "speed", "disk", "notes")
        if name in report
    }
    return {**facts, "splits": splits, **told}


def _carry_out(build: Build, target: Path) -> None:
    lock, is_ours = FolderLock(build.building), False
    try:
        build.building.mkdir(parents=True, exist_ok=True)
        lock.take()
        is_ours = True
        finished = build.carry_out()
        _move(finished, target)
        lock.release()
        shutil.rmtree(build.building, ignore_errors=True)
    except BertsmithError:
        if is_ours and not build.has_work():  # a mistake at the start leaves nothing behind
            shutil.rmtree(build.building, ignore_errors=True)
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BertsmithError(
                f"The disk of {target.parent} is full; make room, and the same command goes on from here."
            ) from error
        raise BertsmithError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        lock.release()


def _move(finished: Path, target: Path) -> None:
    """At once: whoever looks sees the old folder or the new one."""
    if target.exists():
        old = target.with_name(f".{target.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        os.rename(target, old)
        os.rename(finished, target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(finished, target)


def _is_finished(target: Path, asked: dict[str, Any], overwrite: bool) -> bool:
    """An error where the folder holds something else."""
    if target.is_file():
        raise BertsmithError(f"{target} is a file; give a folder to write the corpus to.")
    if not target.exists() or not any(target.iterdir()):
        return False
    if not (target / HEADER).exists():
        raise BertsmithError(f"{target} is not empty and is not a corpus; give another folder to write to.")
    if overwrite:
        return False
    try:
        before = json.loads((target / ASKED).read_text(encoding="utf-8"))
        difference = name_difference(before, asked)
    except (OSError, ValueError, KeyError, TypeError):
        difference = "what it was made from is not known"
    if difference is not None:
        raise BertsmithError(
            f"{target} holds a corpus that was made otherwise: {difference}; give another folder, or --overwrite."
        )
    return True


def _load_tokenizer(given: str | Path | Tokenizer | None, codes: bool) -> Tokenizer | None:
    if codes and given is not None:
        raise BertsmithError("codes have a vocabulary of their own; leave the tokenizer out.")
    if codes or isinstance(given, Tokenizer):
        return given  # type: ignore[return-value]
    if given is None:
        raise BertsmithError("give the folder of a tokenizer, or codes for rows of integers.")
    return Tokenizer.from_folder(given)


def _identify(path: Path) -> dict[str, Any]:
    """What tells whether a file is the one of before."""
    facts = path.stat()
    return {"path": str(path), "size": facts.st_size, "modified": facts.st_mtime_ns}
