"""The house model from raw text to what is shipped, one stage a call; what is done is not done again.

    python house/make.py tokenizer --text DIR --work DIR              # WordPiece on the text
    python house/make.py corpus    --text DIR --work DIR --data DIR   # cleaned, cut, without any benchmark's text
    python house/make.py pretrain  --work DIR --device cuda           # 20 minutes; cut off, the same call goes on
    python house/make.py heads     --work DIR --data DIR --device cuda --jobs 7 --ways lora,together --out FILE
    python house/make.py measure   --work DIR --data DIR --device cuda --jobs 12 --out FILE
    python house/make.py assemble  --work DIR --way lora              # the form that is shipped

--list says what a stage would run. In --work lie tokenizer-KIND, corpus-KIND, held-out.txt, encoder, made, heads and at
the end shipped; KIND is cased-16384 and so on. Figures go to --out, those of heads and measure as they come.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cleaning import list_benchmarks, write_held_out
from run_options import add_run_options
from telling import tell_corpus, tell_encoder, write_record

ROOT = Path(__file__).parent.parent
MINUTES = 20.0
TINY = "--depth 2 --width 64 --heads 4 --inner 128 --tokens 2048 --max-steps 8 --lengths 32:0.5,128:0.5"


def run(words: list[str], options: argparse.Namespace, program: tuple[str, ...] = ("-m", "bertsmith")) -> None:
    """Said, and then done."""
    print("bertsmith" if program[0] == "-m" else f"python {program[0]}", shlex.join(words), flush=True)
    if not options.list:
        done = subprocess.run([sys.executable, *program, *words])
        if done.returncode:
            sys.exit(done.returncode)


def make_tokenizer(options: argparse.Namespace) -> None:
    out = options.work / f"tokenizer-{options.kind}"
    if (out / "tokenizer.json").exists():
        return print(f"{out} is there already.")
    case = "--cased" if options.cased else "--uncased"
    run(["tokenizer", "train", *map(str, options.text), "--size", str(options.size), case, "--out", str(out)], options)


def make_corpus(options: argparse.Namespace) -> None:
    """The same documents are held out whatever the tokenizer, as long as the same text is excluded."""
    out, words = options.work / f"corpus-{options.kind}", []
    for path in list_benchmarks(options.data, options.work):
        words += ["--exclude", str(path)]
    words += ["--processes", str(options.processes), "--out", str(out)]
    home = ["--tokenizer", str(options.work / f"tokenizer-{options.kind}")]
    run(["corpus", "build", *map(str, options.text), *home, *words], options)
    held = options.work / "held-out.txt"
    if not options.list and not held.exists():
        start = time.perf_counter()
        count = write_held_out(out, [str(path) for path in options.text], held)
        print(f"{count:,} documents in {held}, {time.perf_counter() - start:.0f} s")
    if options.out and not options.list:
        write_record(options.out, tell_corpus(out), f"python house/make.py corpus {'--cased ' * options.cased}…")


def make_encoder(options: argparse.Namespace) -> None:
    corpus = options.work / f"corpus-{options.kind}"
    how = shlex.split(TINY) if options.tiny else ["--minutes", f"{options.minutes:g}"]
    words = ["--recipe", "smith", *how, *options.flags, "--device", options.device]
    run(["pretrain", "--corpus", str(corpus), *words, "--out", str(options.work / "encoder")], options)
    if options.out and not options.list:
        command = shlex.join(["bertsmith", "pretrain", "--corpus", corpus.name, *words])
        write_record(options.out, tell_encoder(options.work / "encoder"), command)


def make_heads(options: argparse.Namespace) -> None:
    from heads import HEADS, TOGETHER, make_heads

    if options.list:
        for name, head in HEADS.items():
            ways = ", ".join(way for way in options.ways if way != "together" or name in TOGETHER)
            print(f"{name:11} {head.kind:9} {head.train}, {head.epochs} epochs; {head.metric} of {head.dev}; by {ways}")
        return
    sys.exit(make_heads(options))


def measure(options: argparse.Namespace) -> None:
    words = [f"house={options.work / 'encoder'}", *options.beside, "--data", str(options.data), "--held-out",
             str(options.work / "held-out.txt"), "--device", options.device, "--jobs", str(options.jobs), "--keep",
             str(options.work / "runs")]  # fmt: skip
    words += ["--out", str(options.out)] if options.out else []
    words += ["--only", ",".join(options.only)] if options.only else []
    words += ["--commit", options.commit] if options.commit else []
    run([*words, *(["--tiny"] if options.tiny else [])], options, (str(ROOT / "benchmarks" / "house.py"),))


def assemble(options: argparse.Namespace) -> None:
    """Adapters beside the encoder, each the default for its jobs; of a shared encoder its heads lie there already."""
    from heads import BESIDE, HEADS, TOGETHER

    own = options.way == "lora"
    base = options.work / ("encoder" if own else "heads/together")
    words = ["export", str(base), str(options.work / "shipped"), "--to", "compact", "--overwrite"]
    for name, head in HEADS.items():
        if own or name not in TOGETHER:
            words += ["--adapter", f"{name}={options.work / 'heads' / ('lora' if own else BESIDE) / name}"]
        words += [word for job in head.jobs for word in ("--default", f"{job}={name}")]
    run([*words, "--adapter-store", "int8"], options)


STAGES = {
    "tokenizer": make_tokenizer,
    "corpus": make_corpus,
    "pretrain": make_encoder,
    "heads": make_heads,
    "measure": measure,
    "assemble": assemble,
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--text", type=Path, nargs="+", help="files or folders of raw text")
    parser.add_argument("--data", type=Path, help="the folder of benchmarks and labelled sets")
    parser.add_argument("--work", type=Path, default=Path("house-work"), help="where everything is made")
    parser.add_argument("--size", type=int, default=16_384, help="pieces of the tokenizer")
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--processes", type=int, default=2, help="corpus: how many work at a time")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="pretrain: of training")
    parser.add_argument("--flags", type=shlex.split, default=[], help="pretrain: more of its flags")
    parser.add_argument("--ways", type=lambda text: text.split(","), default=["lora", "together"], help="of heads")
    parser.add_argument("--epochs", type=float, default=2.0, help="heads: of all jobs together")
    parser.add_argument("--rank", type=int, default=8, help="heads: of an adapter")
    parser.add_argument("--way", choices=("lora", "together"), default="lora", help="assemble: the way that was better")
    parser.add_argument("--beside", nargs="*", default=[], metavar="NAME=DIR", help="measure: neighbours")
    add_run_options(
        parser, 1, only="heads, measure: some of them", out="the file of figures, of whatever stage",
        again="heads: make anew what the file holds", listing="say what would be run, and run nothing",
    )  # fmt: skip
    options = parser.parse_args()
    options.threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    options.kind = f"{'cased' if options.cased else 'uncased'}-{options.size}"
    return options


def main() -> None:
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    STAGES[options.stage](options)


if __name__ == "__main__":
    main()
