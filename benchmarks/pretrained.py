"""What the scripts share that pretrain many times: runs through the command line, figures kept as they come, and what
is measured of the folder that a run leaves.

A row of figures is written as soon as it is known, and one that the file holds is not made again: a script that was
stopped goes on where it was.
"""

import argparse
import atexit
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from origins import find_commit, name_machine

RESULTS = Path(__file__).parent / "results"
POINTS = 60  # of a curve that are kept
STREAM_ROWS = 2048  # [CLS] and 127 tokens of running text, bounds of documents ignored: what the plain script read


def make_parser(about: str | None, modes: Sequence[str] = ()) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if modes:
        parser.add_argument("mode", choices=modes, nargs="?", help="what to do")
    parser.add_argument("corpus", type=Path, nargs="?", help="the folder that `bertsmith corpus build` wrote")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", type=lambda text: text.split(","), help="rows to make, with commas between")
    parser.add_argument("--again", action="store_true", help="make rows anew that the file holds")
    parser.add_argument("--out", type=Path, help="the file of figures, written after every row")
    parser.add_argument("--keep", type=Path, default=Path("pretrained"), help="folder for the encoders of the rows")
    parser.add_argument("--flags", type=shlex.split, default=[], help="more flags of pretrain, as in '--rate 1e-3'")
    parser.add_argument("--commit", help="named in the file where git is not there to tell")
    parser.add_argument(
        "--cold",
        action="store_true",
        help="every run starts and compiles anew; else the next one's process is ready and finds what others compiled",
    )
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, seconds a row: does it run")
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
    return parser


class Figures:
    """The rows of a file by name."""

    def __init__(self, options: argparse.Namespace, command: str) -> None:
        self.options, self.command, self.lock = options, command, threading.Lock()
        held = json.loads(options.out.read_text(encoding="utf-8")) if options.out and options.out.exists() else {}
        # A row that names no commit is of the file's, which the next one to write into it will replace.
        rows = [{"name": row["name"], "commit": held.get("commit"), **row} for row in held.get("rows", [])]
        self.rows: dict[str, dict[str, Any]] = {row["name"]: row for row in rows}
        self.facts: dict[str, Any] = {name: held[name] for name in held if name not in ("rows", "command")}

    def make(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The row of this name, made unless it is there; one that fails holds its error and is made anew next time."""
        if self.has(name):
            print(f"{name}: is in {self.options.out} already", flush=True)
            return self.rows[name]
        try:
            row = {"name": name, "commit": self.options.commit or find_commit(), **work()}
        except Exception:
            row = {"name": name, "error": traceback.format_exc()[-2000:]}
        with self.lock:  # rows may be made side by side
            self.rows[name] = row
            self.write()
        print(f"{name}: {row['error'][-500:]}" if "error" in row else json.dumps(brief(row)), flush=True)
        return row

    def has(self, name: str) -> bool:
        """Whether the row is known, whole, and not to be made again."""
        known = self.rows.get(name)
        return known is not None and not find_errors(known) and not self.options.again

    def write(self) -> None:
        if self.options.out is None:
            return
        import torch

        head = {
            "about": f"{name_machine(self.options)}, torch {torch.__version__}",
            "date": str(date.today()),
            "commit": self.options.commit or find_commit(),
            "command": self.command,
        }
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**self.facts, **head, "rows": list(self.rows.values())}, indent=1) + "\n"
        aside = self.options.out.with_name(f".{self.options.out.name}.part")  # a kill leaves the old file or the new
        aside.write_text(text, encoding="utf-8")
        aside.replace(self.options.out)

    def finish(self, summary: dict[str, Any]) -> NoReturn:
        """Writes and prints what came of all rows, and ends the script."""
        self.facts["summary"] = summary
        self.write()
        print(json.dumps(summary), flush=True)
        sys.exit(self.status())

    def status(self) -> int:
        """Of the script: 1 where a row failed."""
        return int(any(find_errors(row) for row in self.rows.values()))


def find_errors(row: Mapping[str, Any]) -> list[str]:
    """Of the row as a whole, or of what was measured behind its run: made again, the run itself is left as it is."""
    parts = [row, *(part for part in row.values() if isinstance(part, dict))]
    return [part["error"] for part in parts if "error" in part]


def measure_parts(parts: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What is measured of a run, part by part; one that fails leaves its error, so that the run was not for nothing."""
    found: dict[str, Any] = {}
    for name, measure in parts.items():
        try:
            found[name] = measure()
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"[-1000:]}
    return found


def brief(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without its long parts, for the terminal."""
    parts = {key: value for key, value in row.items() if key not in ("curve", "command", "sets", "phenomena")}
    return {key: brief(value) if isinstance(value, dict) else value for key, value in parts.items()}


class Waiting:
    """A process that has everything imported and waits for the words of its run: of many short runs behind one another
    each costs what it trains. One waits at a time, while the one before it trains."""

    ready: ClassVar[dict[tuple[str, ...], Any]] = {}  # by program
    script = """if True:
        import json, runpy, sys
        import torch._inductor.compile_fx, bertsmith.cli.app, bertsmith.pretraining
        line = sys.stdin.readline()
        if line:
            program, words = sys.argv[1:], json.loads(line)
            sys.argv = [program[-1], *words]
            run, target = (runpy.run_module, program[1]) if program[0] == "-m" else (runpy.run_path, program[0])
            run(target, run_name="__main__")
    """

    def __init__(self, program: Sequence[str], env: Mapping[str, str], compiles: bool) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.caches = tempfile.TemporaryDirectory() if compiles else None
        env = {**env, **(empty_caches(self.caches.name) if self.caches else {})}
        self.process = subprocess.Popen([sys.executable, "-c", self.script, *program], text=True, env=env, **pipes)  # type: ignore[call-overload]

    @classmethod
    def run(
        cls, program: Sequence[str], words: Sequence[str], env: Mapping[str, str], compiles: bool
    ) -> tuple[int, str]:
        """Its status, and what it said of itself; the next one begins to get ready. `compiles`: it has an empty cache
        of its own, and compiles everything anew."""
        mine = cls.ready.pop(tuple(program), None) or cls(program, env, compiles)
        cls.ready[tuple(program)] = cls(program, env, compiles)
        out, err = mine.finish(json.dumps(words) + "\n")
        return mine.process.returncode, err or out

    def finish(self, given: str) -> tuple[str, str]:
        said = self.process.communicate(given)
        if self.caches:
            self.caches.cleanup()
        return said

    @classmethod
    def leave(cls) -> None:
        for one in cls.ready.values():
            one.finish("")
        cls.ready.clear()


atexit.register(Waiting.leave)


def empty_caches(folder: str) -> dict[str, str]:
    """Where torch and Triton keep what they compiled."""
    return dict.fromkeys(("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), folder)


def pretrain(
    words: Sequence[str], folder: Path, options: argparse.Namespace, program: Sequence[str] = ("-m", "bertsmith")
) -> dict[str, Any]:
    """Run `bertsmith pretrain WORDS` into `folder`: its metrics, speed and curve. One that was cut off goes on."""
    line = ["pretrain", "--corpus", str(options.corpus), *words]
    line += ["--device", options.device, "--threads", str(options.threads), *options.flags, "--out", str(folder)]
    line += ["--overwrite"] if options.again else []
    start = time.perf_counter()
    if options.cold:
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([sys.executable, *program, *line], capture_output=True, text=True,
                                  env={**environment(options), **empty_caches(empty)})  # fmt: skip
        status, said = done.returncode, done.stderr or done.stdout
    else:
        status, said = Waiting.run(program, line, environment(options), getattr(options, "compile_anew", False))
    if status:
        raise RuntimeError(said[-1500:])
    wall = time.perf_counter() - start
    report = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    speed, settings = report["speed"], report["settings"]
    return {
        "command": f"bertsmith pretrain --corpus CORPUS {shlex.join([hide(w) for w in [*words, *options.flags]])}",
        "steps": settings["steps"],
        "tokens_per_second": round(speed["tokens_per_second"]),
        "tokens": round(speed["tokens_per_second"] * speed["seconds"]),
        "seconds": round(speed["seconds"], 1),
        **({} if "nothing to do" in said else {"wall_s": round(wall, 1)}),
        "parameters": count_parameters(folder),
        "held_out": {name: one["value"] for name, one in report["metrics"].get("held-out", {}).items()},
        "curve": read_curve(folder / "log.jsonl", settings["steps"]),
    }


def environment(options: argparse.Namespace) -> dict[str, str]:
    threads = str(options.threads)
    return {**os.environ, "OMP_NUM_THREADS": threads, "RAYON_NUM_THREADS": threads}


def hide(word: str) -> str:
    """A word of a command without the folders of whoever ran it."""
    return "DIR" if "/" in word else word


def count_parameters(folder: Path) -> int:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "np") as file:
        return sum(int(np.prod(file.get_slice(name).get_shape())) for name in file.keys())  # noqa: SIM118


def read_curve(log: Path, steps: int) -> dict[str, list[list[float]]]:
    """Shares of the run, and there the loss of training and what held-out rows said."""
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    training = [[round(r["step"] / steps, 4), round(r["loss" if "loss" in r else "masked"], 4)]
                for r in records if "rate" in r]  # fmt: skip
    every = max(1, len(training) // POINTS)
    held_out = [[round(r["step"] / steps, 4), round(next(iter(r["metrics"].values())), 4)]
                for r in records if r.get("split") == "dev"]  # fmt: skip
    return {"training": training[::every], "held_out": held_out}


def measure_masked(folder: Path, options: argparse.Namespace, way: str = "rows", length: int = 128) -> dict[str, float]:
    """Masked tokens at 15 % (80/10/10, pieces) of held-out text: the same rows and masks for every folder.

    `way` "rows" are a document's pieces as pretraining reads them; "stream" is running text without any bounds.
    """
    import torch

    from bertsmith.data.shards import Corpus
    from bertsmith.models.checkpoint import load_checkpoint
    from bertsmith.objectives.making import make_objective
    from bertsmith.training.devices import cast
    from bertsmith.training.recipes import Asking

    device, corpus = torch.device(options.device), Corpus.open(options.corpus, "held-out")
    objective = make_objective(Asking(), corpus, 0).objective
    network = load_checkpoint(folder).network.to(device).eval()
    sums = {"accuracy": [0.0, 0.0], "loss": [0.0, 0.0]}
    batches = held_out_batches(corpus, way, length, device)
    with torch.no_grad(), cast("bf16" if options.device == "cuda" else "fp32", device):
        for number, (batch, ordinary) in enumerate(batches):
            torch.manual_seed(number)
            asked = objective.ask(batch, {}, ordinary, 1.0)
            hidden = network(asked.batch)
            for name, found in (("loss", objective.losses), ("accuracy", objective.measures)):
                (total, count), = found(network, hidden, asked.batch, asked.given).values()  # fmt: skip
                sums[name] = [sums[name][0] + float(total), sums[name][1] + float(count)]
    return {name: total / count for name, (total, count) in sums.items()} | {"places": sums["loss"][1]}


def held_out_batches(corpus: Any, way: str, length: int, device: Any) -> Iterator[tuple[Any, int]]:
    """Batches, and how many of their tokens are no specials."""
    from bertsmith.data.batch import Batch
    from bertsmith.data.rows_plan import Phase, open_passes

    tokens = len(corpus.tokens)
    if way == "rows":
        size = max(length, min(16_384, tokens))
        (passes,) = open_passes(corpus, [Phase(length)], size)
        for number in range(max(1, min(64, tokens // size))):
            rows = passes.rows_of(number)
            yield Batch.of_flat(rows.ids, rows.segments, rows.lengths, device), rows.ordinary
        return
    room, special = length - 1, [*corpus.specials.values()]
    count = min(STREAM_ROWS, tokens // room)
    text = np.asarray(corpus.tokens[: count * room]).astype(np.int64).reshape(count, room)
    rows_ = np.concatenate([np.full((count, 1), corpus.specials["cls"]), text], axis=1)
    for some in np.array_split(rows_, max(1, count // 128)):
        ids = some.ravel()
        ordinary = int((~np.isin(ids, special)).sum())
        yield Batch.of_flat(ids, np.zeros_like(ids), (length,) * len(some), device), ordinary


def measure_blimp(folder: Path, blimp: Path, options: argparse.Namespace, limit: int | None = None) -> dict[str, Any]:
    """What `bertsmith evaluate --benchmark blimp` says; in this process, as starting another takes as long."""
    import torch

    import bertsmith

    torch.set_float32_matmul_precision("high")  # TF32 on CUDA: a fraction of the time, the same ranks of sentences
    found = bertsmith.evaluate_blimp(blimp, bertsmith.load(folder, device=options.device), limit=limit)
    overall = found["accuracy"]
    return {
        "accuracy": overall["value"], "low": overall["low"], "high": overall["high"], "pairs": found["pairs"],
        "subset": found["subset"], "seconds": round(found["seconds"], 1),
        "phenomena": {one["phenomenon"]: round(one["value"], 4) for one in found["phenomena"]},
        "sets": {one["set"]: round(one["value"], 4) for one in found["sets"]},
    }  # fmt: skip
