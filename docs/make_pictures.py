"""Makes the pictures of the documentation anew: each by a command of bertsmith, the same bytes on the same machine.

python docs/make_pictures.py           # into docs/pictures; two minutes, most of it training two small models
python docs/make_pictures.py step      # only those whose name begins so
"""

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
BERT = "sentence-transformers/all-MiniLM-L6-v2"  # with segments and learned positions
SENTENCE = '"The river bank was muddy."'
STREET = "The animal did not cross the street because"
MADE = {
    "my-bert": (
        "tokenizer train world/texts.txt --size 300 --out my-pieces",
        "corpus build world/texts.txt --tokenizer my-pieces --held-out 0.05 --no-filters --no-duplicates --out my-text",
        "pretrain --corpus my-text --settings examples/world.toml --out my-bert",
    ),
    "my-model": ("finetune --train examples/tickets.csv --out my-model",),
}
DRAWN = {
    "attention": f"attention {SENTENCE}",
    "lines": f'attention "{STREET} it was too tired." --layer 6 --head 4 --word it',
    "lines-wide": f'attention "{STREET} it was too wide." --layer 6 --head 4 --word it',
    "causal": f"attention {SENTENCE} --causal",
    "step": f"step {SENTENCE} --word bank --layer 2 --head 4",
    "step-causal": f"step {SENTENCE} --word river --layer 0 --head 5 --causal",
    "input": f'input "My dog is cute." "He likes playing." --pad-to 14 --model {BERT}',
    "sinusoids": "positions --kind sinusoid",
    "learned": f"positions --model {BERT}",
    "rotary": "positions --kind rotary",
    "senses": "senses --example bank",
    "lens": 'lens "Birds build their [MASK] in trees."',
    "masks": 'lens "The [MASK] swam in the river." "The [MASK] flew over the hills." "The [MASK] grazed in the field." '
    "--model my-bert",
    "attribution": f'attribution similar {SENTENCE} "A savings bank."',
    "parcel": 'attribution classify "Where is my parcel?" --model my-model',
    "heads": f'heads --job similar {SENTENCE} "A savings bank."',
    "probe": "probe --train examples/meanings-train.conll --dev examples/meanings-dev.conll",
    "curves": "",  # what pretraining draws itself
}
FAVICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#2166ac"/>
<g fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"><path d="M8 9C18 9 14 23 24 23"/>
<path d="M8 23C18 23 14 9 24 9" opacity=".55"/><path d="M8 16h16" opacity=".8"/></g></svg>
"""


def run(line: str) -> None:
    from typer.testing import CliRunner

    from bertsmith.cli.app import app

    done = CliRunner().invoke(app, shlex.split(line))
    if done.exit_code:
        raise SystemExit(f"bertsmith {line}\n{done.output}\n{done.exception}")


def draw(name: str, command: str) -> None:
    for model, lines in MADE.items():
        if f"--model {model}" in command or (name, model) == ("curves", "my-bert"):
            for line in lines:
                if not Path(shlex.split(line)[-1]).exists():
                    run(line)
    if command:
        run(f"inspect {command} --out {name}.svg")
        shutil.copyfile(f"{name}.svg", PICTURES / f"{name}.svg")
    else:
        shutil.copyfile(f"my-bert/{name}.svg", PICTURES / f"{name}.svg")


def main(wanted: list[str]) -> None:
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "favicon.svg").write_text(FAVICON)
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        shutil.copytree(ROOT / "examples", "examples")
        sys.path.insert(0, "examples")
        import world

        world.main(Path("world"))
        for name, command in DRAWN.items():
            if not wanted or any(name.startswith(one) for one in wanted):
                draw(name, command)
                print(f"{name}.svg", flush=True)
    total = sum(path.stat().st_size for path in PICTURES.iterdir())
    print(f"{len([*PICTURES.iterdir()])} files, {total / 1e6:.2f} MB")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: several threads may add up in another order
    main(sys.argv[1:])
