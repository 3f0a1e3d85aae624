"""The documentation is true: its examples run and say what it says, its links lead somewhere, its site builds."""

import functools
import http.server
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from docs_pages import (
    DOCS,
    ELSEWHERE,
    LOOK,
    ROOT,
    Example,
    Runner,
    differs,
    list_examples,
    list_pages,
    shorten,
    shorten_runs,
)
from ready import Starter

LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
FOREIGN = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")
MISSING = "mkdocs-material is not installed (pip install -e '.[docs]'): the documentation is NOT built"


@pytest.fixture(scope="module")
def runner(tmp_path_factory, demo_model):
    with Starter({**os.environ, **LOOK}) as starter:
        yield Runner(tmp_path_factory.mktemp("docs"), starter, shorten_runs())


@pytest.fixture(scope="module")
def examples(runner, one_thread):
    """All in blocks, and what they said; the commands in tables use their models."""
    return [(example, runner.run(example)) for page in list_pages() for example in list_examples(page)]


def test_the_examples_run_and_say_what_the_pages_say(examples):
    compared = [(example, said) for example, said in examples if example.is_compared]
    for example, said in compared:
        difference = differs(example.output, shorten(said, example.lines))
        assert difference is None, f"docs/{example.page}: {difference}\n{example.code}"
    assert len(examples) >= 50 and len(compared) >= 20


@pytest.mark.usefixtures("examples")
def test_the_commands_in_tables_run(runner):
    for page in list_pages():
        for line in re.findall(r"\| `(bertsmith inspect .+?)` \|$", (DOCS / page).read_text("utf-8"), re.MULTILINE):
            runner.run(Example(page, "bash", line + "\n", None, None))


def test_what_other_tests_run_is_still_run_there():
    assert all((ROOT / path).exists() and page in (ROOT / path).read_text() for page, path in ELSEWHERE.items())


def test_a_difference_is_seen():
    assert differs("│ 0.1528 │ duck │\n", "│ 0.1531 │ duck │\n") is None
    assert differs("│ 0.1528 │ duck │\n", "│ 0.3531 │ duck │\n")
    assert differs("│ 0.1528 │ duck │\n", "│ 0.1528 │ swan │\n")
    assert differs("one\n", "one\ntwo\n")
    assert differs("step 1: 900 tokens/s\n", "step 1: 100 tokens/s\n") is None


@pytest.fixture(scope="module")
def made():
    """The pages of the reference, which are made and not tracked."""
    return runpy.run_path(str(DOCS / "make_reference.py"))["make_pages"]()


def test_every_link_and_picture_is_there(made):
    broken = []
    for path in DOCS.rglob("*.md"):
        for target in LINK.findall(re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)):
            if re.match(r"https?:|#", target):
                continue
            found = (path.parent / target.partition("#")[0]).resolve()
            generated = found.is_relative_to(DOCS) and found.relative_to(DOCS).as_posix() in made
            if not found.exists() and not generated:
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken


def test_every_picture_is_shown_and_small():
    pages = "".join(path.read_text(encoding="utf-8") for path in [*DOCS.rglob("*.md"), ROOT / "mkdocs.yml"])
    pictures = list((DOCS / "pictures").iterdir())
    assert all(f"pictures/{path.name}" in pages for path in pictures)
    assert sum(path.stat().st_size for path in pictures) < 1.5e6
    assert not any(re.search(r"<script|(?:href|src)=.https?:", path.read_text()) for path in pictures)


def test_the_reference_has_every_verb_and_name(made):
    import bertsmith
    import bertsmith.inspect

    assert {"reference/fill.md", "reference/corpus-build.md", "reference/inspect-attention.md"} <= made.keys()
    assert "--top-k N" in made["reference/fill.md"] and "$ bertsmith fill" in made["reference/fill.md"]
    assert all(f"## bertsmith.{name}\n" in made["reference/python.md"]
               for name in bertsmith.__all__ if name not in ("Model", "inspect", "BertsmithError"))  # fmt: skip
    assert all(f"## inspect.{name}\n" in made["reference/inspect.md"] for name in bertsmith.inspect.__all__)
    assert "## Model.fill" in made["reference/model.md"] and "Model._" not in made["reference/model.md"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if shutil.which("mkdocs", path=str(Path(sys.executable).parent)) is None:
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(ROOT / "mkdocs.yml"),
         "--site-dir", str(folder)],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_needs_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert not FOREIGN.search(text), f"{path.name}: {FOREIGN.findall(text)}"
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"url\([\"']?(?:https?:)?//|@import", styles)


def test_the_search_knows_the_pages(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"lecture.html", "journey/layers.html", "reference/inspect-step.html", "how-to/tag.html"} <= places
    assert not any(place.startswith("source/") for place in places)


ASKED = "next sentence prediction"


def search_lecture(page):
    page.click(".md-search__input")
    page.keyboard.type(ASKED)
    page.wait_for_selector(".md-search-result__link")
    assert "lecture.html" in page.get_attribute(".md-search-result__link", "href")


def test_a_person_searches_the_site(site, open_page):
    with Server(("127.0.0.1", 0), functools.partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = open_page(f"http://127.0.0.1:{server.server_port}/index.html", wait="networkidle")
        search_lecture(page)
        page.goto(f"http://127.0.0.1:{server.server_port}/journey/layers.html", wait_until="networkidle")
        assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        server.shutdown()


def test_a_person_searches_the_site_on_disk(site, browser):
    """Where browsers start no workers and read no other files."""
    context = browser.new_context(viewport={"width": 1180, "height": 820})
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    search_lecture(page)
    context.close()
    assert all(url.startswith(("file:", "data:")) for url in asked)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # a browser asks for a page's files all at once


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""
