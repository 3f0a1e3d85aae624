"""A block of rows becomes bytes of an output file. In: rows of a file, a model, a question. Out: each row's bytes.

The same on this machine and on many: `Answering` holds no state and may travel.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bertsmith.asking import Input, Question, answer_each, write_line
from bertsmith.data.streaming import Block, Place, Rows
from bertsmith.errors import BertsmithError

if TYPE_CHECKING:
    from bertsmith.model import Model

OnError = Literal["stop", "skip"]
ON_ERROR = ("stop", "skip")


@dataclass(frozen=True, slots=True)
class Answered:
    """What goes out for one row, and the place in the input behind it."""

    data: bytes
    end: Place
    is_error: bool = False
    cut: int = 0


@dataclass(frozen=True)
class Answering:
    question: Question
    rows: Rows
    columns: Mapping[str, str]
    on_error: OnError
    width: int | None = None  # of the vectors of a NumPy file; None: JSON lines

    def answer(self, model: "Model", block: Block) -> Iterator[Answered]:
        """One for each row, in order; a row at fault is an error line or, where it stops the work, an error."""
        read = self.question.read(self.rows, block.rows, self.columns)
        if self.on_error == "stop":  # what stands behind a fault would be asked for nothing
            first = next((i for i, one in enumerate(read) if isinstance(one, BertsmithError)), len(read))
            read = read[: first + 1]
        asked = [given for given in read if isinstance(given, Input)]
        answers = answer_each(asked, lambda chunk: self._put(model, chunk)) if asked else iter(())
        for row, given in zip(block.rows, read, strict=False):
            fault, cut = given if isinstance(given, BertsmithError) else None, 0
            if isinstance(given, Input):
                _, found = next(answers)
                if isinstance(found, BertsmithError):
                    fault = found
                else:
                    body, cut = found
                    yield Answered(self._encode(given, body), row.end, False, cut)
            if fault is not None:
                if self.on_error == "stop":
                    raise fault
                yield Answered(self._encode_error(row.number, given, str(fault)), row.end, True)

    def start(self, count: int = 0) -> bytes:
        """What the file begins with when it holds the answers to so many rows."""
        if self.width is None:
            return b""
        import numpy as np

        # NumPy pads its header for a first axis of up to 21 digits, so the final one has the place of this first one.
        file = io.BytesIO()
        described = {"descr": "<f4", "fortran_order": False, "shape": (count, self.width)}
        np.lib.format.write_array_header_1_0(file, described)
        return file.getvalue()

    def _put(self, model: "Model", chunk: Sequence[Input]) -> list[tuple[dict[str, Any], int]]:
        return self.question.put(model, chunk)

    def _encode(self, given: Input, body: Mapping[str, Any]) -> bytes:
        if self.width is not None:
            data: bytes = body["vector"].astype("<f4").tobytes()
            return data
        return write_line({**given.describe(self.question.job.second), **body})

    def _encode_error(self, number: int, given: Input | BertsmithError, sentence: str) -> bytes:
        if self.width is not None:  # a row of NaN, so that rows and vectors stay beside each other
            import numpy as np

            return np.full(self.width, np.nan, "<f4").tobytes()
        known = {"id": given.id} if isinstance(given, Input) and given.id not in (None, "") else {}
        return write_line({"row": number, **known, "error": sentence})
