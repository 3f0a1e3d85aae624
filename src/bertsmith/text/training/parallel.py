"""Counting in several processes. In: parts of sources, a recipe, how many processes. Out: the counts that one gives.

The processes are fresh interpreters that are told one part after the other, so a script without a main guard may train.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import bertsmith
from bertsmith.errors import BertsmithError
from bertsmith.text.sources import Part, Source, read_part
from bertsmith.text.training.counting import Counted, WordCounter, cut_slices
from bertsmith.text.training.recipes import Recipe

ALONE = 8_000_000  # bytes that one process counts sooner than others would start
Tell = Callable[[int, int], None]
_CODE = "from bertsmith.text.training.parallel import serve; serve()"


def count_parts(
    parts: Sequence[Part], recipe: Recipe, threads: int = 1, field: str = "text", tell: Tell | None = None
) -> Counted:
    """Counts in this process, or in several where the text is long enough to be worth it; `tell` hears the bytes."""
    sizes = [part.size for part in parts]
    threads = min(threads, len(parts))
    if threads > 1 and sum(sizes) >= ALONE:
        return _count_beside(parts, sizes, recipe, threads, field, tell)
    counter, done = WordCounter(recipe), 0
    for part, size in zip(parts, sizes, strict=True):
        _count_part(counter, part, field)
        done += size
        if tell is not None:
            tell(done, sum(sizes))
    return counter.finish()


def _count_part(counter: WordCounter, part: Part, field: str) -> None:
    for document in read_part(part, field=field):
        for text in cut_slices(document.text):
            counter.add(text)


def _count_beside(
    parts: Sequence[Part], sizes: list[int], recipe: Recipe, threads: int, field: str, tell: Tell | None
) -> Counted:
    waiting: Queue[tuple[int, Part]] = Queue()
    for numbered in enumerate(parts):
        waiting.put(numbered)
    heard: Queue[tuple[int, str | None]] = Queue()
    helpers = [_Helper(recipe, field, waiting, heard) for _ in range(threads)]
    try:
        errors, done = {}, 0
        for _ in parts:
            number, error = heard.get()
            done += sizes[number]
            if error is not None:
                errors[number] = error
                break
            if tell is not None:
                tell(done, sum(sizes))
        if errors:
            raise BertsmithError(errors[min(errors)])
        counted = Counted()
        for helper in helpers:
            counted.merge(helper.result())
        return counted
    finally:
        for helper in helpers:
            helper.stop()


class _Helper:
    """One process, and the thread that speaks with it."""

    def __init__(self, recipe: Recipe, field: str, waiting: "Queue[tuple[int, Part]]", heard: "Queue[Any]") -> None:
        path = [str(Path(bertsmith.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        settings = {"PYTHONPATH": os.pathsep.join(filter(None, path)), "TOKENIZERS_PARALLELISM": "false"}
        # A session of its own: Ctrl-C is for the first process, which ends the others.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CODE, json.dumps([asdict(recipe), field])], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, **settings}, start_new_session=True,
        )  # fmt: skip
        self.waiting, self.heard = waiting, heard
        self.counted: Counted | None = None
        self.lost = ""
        self.thread = threading.Thread(target=self._speak, daemon=True)
        self.thread.start()

    def _speak(self) -> None:
        number = 0
        try:
            while True:
                try:
                    number, part = self.waiting.get_nowait()
                except Empty:
                    break
                error = self._ask(_describe(part))
                self.heard.put((number, error))
            words, counts, *rest = self._ask(None)
            self.counted = Counted(Counter(dict(zip(words, counts, strict=True))), *rest)
        except (OSError, ValueError):
            self.process.kill()
            code = self.process.wait()
            self.lost = (
                f"A process that counted words ended with status {code} (when killed, often for want of memory); "
                f"give fewer --threads or less text."
            )
            self.heard.put((number, self.lost))

    def _ask(self, content: object) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(content).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def result(self) -> Counted:
        self.thread.join()
        if self.counted is None:
            raise BertsmithError(self.lost)
        return self.counted

    def stop(self) -> None:
        if self.counted is None:
            self.process.kill()
        self.thread.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # a process that died left something unread
                    pipe.close()
        self.process.wait()


def serve() -> None:
    """What a process does: counts the parts it is told, one a line, then writes all that it counted."""
    recipe, field = json.loads(sys.argv[1])
    counter = WordCounter(Recipe(**recipe))
    while line := sys.stdin.buffer.readline():  # it ends without a word when the first process was killed
        content = json.loads(line)
        if content is None:
            counted = counter.finish()
            counts = list(counted.words.values())
            _say([list(counted.words), counts, counted.chunks, counted.characters, counted.skipped])
            return
        try:
            _count_part(counter, _read(content), field)
            _say(None)
        except BertsmithError as error:
            _say(str(error))


def _say(content: object) -> None:
    try:
        sys.stdout.buffer.write(json.dumps(content).encode() + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # nobody listens any more
        os._exit(1)


def _describe(part: Part) -> dict[str, Any]:
    return {**asdict(part.source), "path": os.fspath(part.source.path), "start": part.start, "end": part.end}


def _read(content: dict[str, Any]) -> Part:
    start, end = content.pop("start"), content.pop("end")
    return Part(Source(**{**content, "path": Path(content["path"])}), start, end)
