"""Blocks answered on many machines. In: the rows of a file, from a place on. Out: a file for each block, in a folder.

The parts are what the local way would write, so they are put together by the same loop. A part that is there already is
not made again: its name holds what its rows are known by. The folder and the input must be seen by all machines.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.bulk_answers import Answered, Answering
from bertsmith.data.corpus.engines import run
from bertsmith.data.streaming import Block, Place
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.model import Model


@dataclass(frozen=True)
class Part:
    start: Place
    end: Place
    path: Path


@dataclass(frozen=True)
class PartWork:
    """Called with a part, it answers its rows; each machine loads the model once, from its folder."""

    answering: Answering
    model: "Model"

    def __call__(self, part: Part) -> None:
        answered: list[Answered] = []
        fault = ""
        chunk = self.answering.question.chunk
        for block in self.answering.rows.blocks(chunk, part.start, part.end):
            try:
                answered += self.answering.answer(self.model, block)
            except BertsmithError as error:
                fault = str(error)
        facts = [[*astuple(one.end), one.is_error, one.cut, len(one.data)] for one in answered]
        aside = part.path.with_suffix(".new")
        with open(aside, "wb") as file:
            file.write(json.dumps({"fault": fault, "rows": facts}).encode() + b"\n")
            file.writelines(one.data for one in answered)
        os.replace(aside, part.path)


def answer_parts(
    answering: Answering, model: "Model", start: Place, folder: Path, progress: Callable[[int, int], None]
) -> None:
    """Answers all blocks from `start` on by Ray."""
    if answering.rows.packing:
        raise BertsmithError(f"{answering.rows.name} is packed, so machines cannot share it; unpack it first.")
    folder.mkdir(exist_ok=True)
    parts = [
        Part(block.start, block.rows[-1].end, name_part(folder, block, answering.on_error))
        for block in answering.rows.blocks(answering.question.chunk, start)
    ]
    missing = [part for part in parts if not part.path.exists()]
    gpus = 1.0 if model.device.type == "cuda" else None
    for done in run(PartWork(answering, model), missing, 1, "ray", gpus) if missing else ():
        progress(done, len(missing))


def name_part(folder: Path, block: Block, on_error: str) -> Path:
    content = hashlib.sha256(block.raw).hexdigest()[:24]
    return folder / f"{block.start.byte}-{block.start.line}-{on_error}-{content}.part"


def read_part(path: Path) -> Iterator[Answered]:
    """What was answered there; an error where a row stopped it."""
    with open(path, "rb") as file:
        told = json.loads(file.readline())
        for byte, line, is_error, cut, size in told["rows"]:
            yield Answered(file.read(size), Place(byte, line), is_error, cut)
    if told["fault"]:
        path.unlink()  # the next run asks again: not every fault is in the rows
        raise BertsmithError(told["fault"])
