"""The examples in docs/**/*.md: found, run as a person would on a terminal of 80 columns, and what they say compared.

    python tests/docs_pages.py    # runs all and writes what they say into the pages: the ```text block behind each

What a model says that was trained on the spot is another machine's, and left as it is unless the block holds but "?".

A ```bash block holds commands of bertsmith and scripts of examples/, a line each; a ```python block goes on from those
before it on its page. `<!-- first 8 lines -->` (or last) before an output shortens it. A block below a line that begins
with "*Not run by the tests" is left out. Pages run in an order in which what one makes the next can use.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ready import Starter

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FIRST = ("how-to/pretrain.md", "how-to/classify.md", "how-to/tag.md", "how-to/answer.md")  # they make the models
ELSEWHERE = {"serving.md": "tests/serving/test_serving_page.py", "own-task.md": "tests/whole/test_own_task.py",
             "bad-data.md": "tests/whole/test_bad_data.py"}  # fmt: skip
LOOK = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
# What a small model learns in a minute hangs on how the CPU rounds its sums: its answers are run, and not compared.
LEARNT = re.compile(r"\bmy-(?:bert|small-bert|model|tagger|reader|text)\b|\bmine\b")
BLOCK = re.compile(
    r"(?P<why>^\*Not run by the tests[^\n]*\n\n)?^```(?P<kind>bash|python)\n(?P<code>.*?)^```\n"
    r"(?:\n(?:<!-- (?P<lines>(?:first|last) \d+) lines -->\n)?```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
# Lines whose numbers are another machine's, or the size of a file.
TIMED = re.compile(r"tokens/s|MB/s|\bkB;|\bMB;|\bs left|Measured in|to be scored here|memory: about| words, [\d.]+ s$")
# The one training that takes a minute and more.
SHORT = "bertsmith finetune --train examples/tickets.csv --out my-model"
SHORTER = {SHORT: f"{SHORT} --max-steps 2"}
TRAINS = re.compile(r"bertsmith (?:pretrain|finetune) (?!.*(?:--max-steps|--plan))")
FRAME = re.compile(r"[━─┏┓┗┛┡┩┳┻╇┴└┘]+")
NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass
class Example:
    page: str
    kind: str
    code: str
    output: str | None
    lines: str | None  # such as "first 8"

    @property
    def is_compared(self) -> bool:
        return self.output is not None and not LEARNT.search(self.code)

    @property
    def commands(self) -> list[str]:
        joined = self.code.replace("\\\n", " ")
        return [line.split("  #")[0].strip() for line in joined.splitlines() if line.strip() and line[0] != "#"]


def list_pages() -> list[str]:
    found = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    return [*FIRST, *(page for page in found if page not in FIRST and page not in ELSEWHERE)]


def list_examples(page: str) -> list[Example]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [
        Example(page, found["kind"], found["code"], found["output"], found["lines"])
        for found in BLOCK.finditer(text)
        if not found["why"]
    ]


def shorten_runs() -> dict[str, str]:
    """Command -> itself, but over after some steps: what such a model says is not compared, however well it learnt."""
    lines = [line for page in list_pages() for example in list_examples(page) for line in example.commands]
    return {**{line: f"{line} --max-steps 8" for line in lines if TRAINS.match(line)}, **SHORTER}


class Runner:
    """Runs examples in one folder; a command that comes again is not run again."""

    def __init__(self, folder: Path, starter: Starter, shorter: dict[str, str]) -> None:
        self.folder, self.starter, self.shorter = folder, starter, shorter
        self.said: dict[str, str] = {}
        self.names: dict[str, dict[str, object]] = {}
        shutil.copytree(ROOT / "examples", folder / "examples")

    def run(self, example: Example) -> str:
        """What it prints; an error where it fails."""
        if example.kind == "python":
            return self._run_python(example)
        return "".join(self._run_command(line, example.page) for line in example.commands)

    def _run_command(self, line: str, page: str) -> str:
        if line not in self.said:
            words = shlex.split(self.shorter.get(line, line))
            bare = re.sub(r'"[^"]*"', "", line)
            assert not re.search(r"[|<>$&;`]", bare), f"{page}: a line that needs a shell: {line}"
            if words[0] == "python":
                done = subprocess.run([sys.executable, *words[1:]], cwd=self.folder, capture_output=True, text=True)
            else:
                done = self.starter.run(words, self.folder, terminal=True)
            assert done.returncode == 0, f"{page}: {line}\n{done.stderr}"
            self.said[line] = done.stderr + done.stdout
        return self.said[line]

    def _run_python(self, example: Example) -> str:
        names = self.names.setdefault(example.page, {})
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(example.code, f"docs/{example.page}", "exec"), names)
        return said.getvalue()


def shorten(said: str, lines: str | None) -> str:
    rows = [row.rstrip() for row in said.rstrip().splitlines()]
    side, count = (lines or f"first {len(rows)}").split()
    if len(rows) > int(count):
        rows = [*rows[: int(count)], "…"] if side == "first" else ["…", *rows[-int(count) :]]
    return "\n".join(rows) + "\n"


def differs(told: str, found: str) -> str | None:
    """The first line of a page that is not as found: other words, or numbers that are not nearly the same."""
    one, other = ([row.split() for row in FRAME.sub("", text).splitlines() if row.strip()] for text in (told, found))
    if len(one) != len(other):
        return f"{len(one)} lines on the page, {len(other)} found"
    for left, right in zip(one, other, strict=True):
        a, b = " ".join(left), " ".join(right)
        if NUMBER.sub("0", a) != NUMBER.sub("0", b):
            return f"{a!r} on the page, {b!r} found"
        if TIMED.search(a):
            continue
        for x, y in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True):
            p, q = (float(z.replace(",", "").replace("−", "-")) for z in (x, y))
            if abs(p - q) > 0.02 + 0.02 * abs(p):
                return f"{a!r} on the page, {b!r} found"
    return None


def fill(folder: Path) -> None:
    with Starter({**os.environ, **LOOK}) as starter:
        runner = Runner(folder, starter, SHORTER)
        for page in list_pages():
            path = DOCS / page
            text = path.read_text(encoding="utf-8")

            def put(found: re.Match[str], page: str = page) -> str:
                if found["why"]:
                    return found[0]
                example = Example(page, found["kind"], found["code"], found["output"], found["lines"])
                said = runner.run(example)
                if not example.is_compared and (found["output"] or "").strip() != "?":
                    return found[0]
                start = found.start("output") - found.start()
                return found[0][:start] + shorten(said, found["lines"]) + "```\n"

            path.write_text(BLOCK.sub(put, text), encoding="utf-8")
            print(page, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        fill(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            fill(Path(place))
