"""The reference, made while the site is built: a page a verb from its `--help`, and the Python API from its docstrings.

MkDocs calls the functions at the end (`hooks` in mkdocs.yml). Nothing is written to docs/: the pages are handed to it.
Links that leave docs/, as to a file of the code, lead to a page that shows that file; pictures from there come along,
and the house model's card is a page of its own.

    python docs/make_reference.py FOLDER    # the same pages as files, to look at
"""

import inspect
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file by its path
from verbs import list_verbs

ROOT = Path(__file__).resolve().parents[1]
LOOK = {"COLUMNS": "96"}  # of what --help prints
LINK = re.compile(r"(?P<before>\]\()(?P<target>\.\.?/[^)#\s]+)(?P<after>#[^)\s]*)?\)")
CARD = ROOT / "house" / "CARD.md"
PICTURES = (".svg", ".png")
LANGUAGES = {".py": "python", ".js": "javascript", ".css": "css", ".html": "html", ".json": "json", ".toml": "toml",
             ".csv": "text", ".txt": "text", ".yml": "yaml", ".md": "markdown", ".service": "ini"}  # fmt: skip


def make_verb_page(name: str, command: Any) -> str:
    """What it does, examples, and all flags as the terminal shows them."""
    from bertsmith.cli.app import app

    flags = CliRunner().invoke(app, [*name.split(), "--help"], prog_name="bertsmith", env=LOOK).stdout
    said = inspect.cleandoc((command.help or "").replace("\b", ""))
    prose, _, _ = said.partition("Examples:")
    examples = re.findall(r"^\s*(bertsmith .+)$", said, re.MULTILINE)
    start = min(place for part in ("Arguments:", "Options:") if (place := flags.find(part)) >= 0)
    usage = flags.splitlines()[0].removeprefix("Usage: ")
    return "\n".join(
        [f"# {name}", "", prose.strip(), "", "```console", *(f"$ {line}" for line in examples), "```", "",
         f"`{usage}`", "", "```text", flags[start:].rstrip(), "```", ""]
    )  # fmt: skip


def make_function(name: str, thing: Any, level: int = 2) -> str:
    """Its signature and its docstring."""
    lines = ["#" * level + f" {name.split('(')[0]}", "", "```python", f"{name}{shorten(thing)}", "```", ""]
    return "\n".join([*lines, inspect.getdoc(thing) or "", ""])


def shorten(thing: Any) -> str:
    """The signature, a parameter a line where it is long."""
    signature = inspect.signature(thing)
    kept = [one for name, one in signature.parameters.items() if name != "self"]
    flat = trim(str(signature.replace(parameters=kept)))
    if len(flat) <= 90:
        return flat
    parts: list[str] = []
    for one in kept:
        if one.kind is one.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(trim(str(one)))
    return "(\n    " + ",\n    ".join(parts) + f",\n){trim(flat[flat.rindex(')') + 1 :])}"


def trim(signature: str) -> str:
    """Types by their short names."""
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", signature)


def make_python_page() -> str:
    import bertsmith

    parts = [
        "# Python",
        "",
        "```python",
        "import bertsmith",
        "```",
        "",
        "Names are imported when first used. A person's mistake is a `bertsmith.BertsmithError`.",
        "",
    ]
    for name in sorted(bertsmith.__all__, key=str.lower):
        if name in ("Model", "inspect", "BertsmithError"):
            continue
        parts.append(make_function(f"bertsmith.{name}", getattr(bertsmith, name)))
    return "\n".join(parts)


def make_model_page() -> str:
    from bertsmith import Model

    parts = ["# Model", "", "What `bertsmith.load` gives. A method given one input returns one result, given a list a "
             "list of them; a result has `.answers`, and `.truncated` says how many tokens were cut.", ""]  # fmt: skip
    for name, thing in vars(Model).items():
        if not name.startswith("_") and inspect.isfunction(thing) and inspect.getdoc(thing):
            parts.append(make_function(f"Model.{name}", thing))
    return "\n".join(parts)


def make_inspect_page() -> str:
    import bertsmith.inspect
    from bertsmith.inspection.picture import Picture

    parts = ["# bertsmith.inspect", "", inspect.cleandoc(bertsmith.inspect.__doc__ or "").partition("\n\n")[2], ""]
    for name in bertsmith.inspect.__all__:
        parts.append(make_function(f"inspect.{name}", getattr(bertsmith.inspect, name)))
    parts += ["## Picture", "", inspect.getdoc(Picture) or "", ""]
    for name, thing in vars(Picture).items():
        if not name.startswith("_") and inspect.isfunction(thing) and inspect.getdoc(thing):
            parts.append(make_function(f"Picture.{name}", thing, 3))
    return "\n".join(parts)


def make_pages() -> dict[str, str]:
    """Every page of the reference, and the card, by address."""
    pages = {"reference/python.md": make_python_page(), "reference/model.md": make_model_page(),
             "reference/inspect.md": make_inspect_page()}  # fmt: skip
    rows = []
    for name, command in list_verbs():
        page = f"reference/{name.replace(' ', '-')}.md"
        pages[page] = make_verb_page(name, command)
        rows.append(f"| [`{name}`]({PurePosixPath(page).name}) | {(command.help or '').strip().splitlines()[0]} |")
    index = ["# Reference", "", "Made from docstrings and `--help` whenever the site is built.", "",
             "In Python: [functions](python.md), [Model](model.md), [bertsmith.inspect](inspect.md). As commands:", "",
             "| verb | what it does |", "|---|---|", *rows, ""]  # fmt: skip
    return {"reference/index.md": "\n".join(index), "card.md": CARD.read_text(encoding="utf-8"), **pages}


def make_nav(pages: dict[str, str]) -> list[Any]:
    named = {"reference/index.md": "Overview", "reference/python.md": "Functions", "reference/model.md": "Model",
             "reference/inspect.md": "bertsmith.inspect"}  # fmt: skip
    verbs = [{f"bertsmith {page[2:].splitlines()[0]}": name} for name, page in pages.items()
             if name.startswith("reference/") and name not in named]  # fmt: skip
    return [*({title: name} for name, title in named.items()), {"Verbs": verbs}]


def find_source(target: str, page: str) -> Path | None:
    """The file of the project that a link on a page of docs/ leads to, where it leads out of docs/."""
    found = (ROOT / "docs" / page).parent.joinpath(target).resolve()
    outside = found.is_relative_to(ROOT) and not found.is_relative_to(ROOT / "docs")
    return found if outside and found.exists() else None


def show_source(path: Path) -> str:
    """A page with a file, or with the names in a folder."""
    name = path.relative_to(ROOT).as_posix()
    head = f"---\nsearch:\n  exclude: true\nhide: [toc]\n---\n# {name}\n\n"
    if path.is_dir():
        kept = (one for one in sorted(path.iterdir()) if one.name != "__pycache__" and not one.name.startswith("."))
        return head + "\n".join(f"- {one.name}{'/' * one.is_dir()}" for one in kept) + "\n"
    text = path.read_text(encoding="utf-8").rstrip()
    return f"{head}``````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n``````\n"


def address_source(path: Path) -> str:
    if path == CARD:
        return "card.md"
    return f"source/{path.relative_to(ROOT).as_posix()}{'' if path.suffix in PICTURES else '.md'}"


# What MkDocs calls.


def on_config(config: Any) -> Any:
    config.bertsmith_pages = make_pages()
    config.nav = [*config.nav, {"Reference": make_nav(config.bertsmith_pages)}]
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, page in config.bertsmith_pages.items():
        files.append(File.generated(config, name, content=page))
    linked = {}
    for file in list(files.documentation_pages()):
        for link in LINK.finditer(file.content_string):
            if source := find_source(link["target"], file.src_uri):
                linked[address_source(source)] = source
    linked.pop("card.md", None)
    for name, source in linked.items():
        content = source.read_bytes() if source.suffix in PICTURES else show_source(source)
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    def turn(link: re.Match[str]) -> str:
        source = find_source(link["target"], page.file.src_uri)
        if source is None:
            return link[0]
        up = "../" * page.file.src_uri.count("/")
        return f"{link['before']}{up}{address_source(source)})"

    if "\n## " not in markdown:  # no column for a list of parts that there are none of
        page.meta.setdefault("hide", []).append("toc")
    return LINK.sub(turn, markdown)


if __name__ == "__main__":
    for name, page in make_pages().items():
        path = Path(sys.argv[1]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
