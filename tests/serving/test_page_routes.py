"""The page's files: who gets them, how long a browser keeps them, and what they may do."""

import re
from importlib.resources import files

import pytest
from serving.pretend import Pretend
from starlette.testclient import TestClient

from bertsmith.serving.guide import EXAMPLES, NEEDS
from bertsmith.serving.http.app import create_app
from bertsmith.serving.jobs import JOBS
from bertsmith.serving.settings import Settings

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
FOLDER = files("bertsmith.serving") / "page"
BARE = ("embed", "hidden", "similar", "tokenize", "decode", "attention", "step", "senses")  # what every encoder can do
FILES = sorted(file.name for file in FOLDER.iterdir())


@pytest.fixture(scope="module")
def web():
    return TestClient(create_app(Pretend(), Settings()))


def test_a_browser_gets_the_page_and_a_client_what_it_always_got(web):
    page = web.get("/", headers=BROWSER)
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>bertsmith</title>" in page.text
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.5", ""):
        told = web.get("/", headers={"accept": accept})
        assert told.json()["models"] == ["pretend"], accept
        assert told.headers["vary"] == page.headers["vary"] == "accept"  # lest a cache mix them up


def test_head_tells_the_same_without_the_body(web):
    for path in ("/", "/page/page.css"):
        got, head = web.get(path, headers=BROWSER), web.head(path, headers=BROWSER)
        assert head.status_code == 200 and head.content == b""
        same = ("etag", "content-length", "content-type", "cache-control", "content-security-policy")
        assert {name: head.headers[name] for name in same} == {name: got.headers[name] for name in same}


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/page/picture_attention.js"])
def test_what_a_browser_has_is_not_sent_again(web, path):
    first = web.get(path, headers=BROWSER)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "no-cache"  # it asks each time, so that a new version is seen at once
    for known in (tag, f'"other", {tag}', f"W/{tag}"):
        again = web.get(path, headers=BROWSER | {"if-none-match": known})
        assert again.status_code == 304 and not again.content and again.headers["etag"] == tag
    assert web.get(path, headers=BROWSER | {"if-none-match": '"other"'}).content == first.content


def test_other_bytes_have_another_tag(web):
    tags = [web.get(f"/page/{name}").headers["etag"] for name in FILES if name != "index.html"]
    assert len(tags) == len(set(tags)) == len(FILES) - 1


def test_the_policy_lets_nothing_in_but_these_files(web):
    policy = web.get("/", headers=BROWSER).headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in policy and "http" not in policy


def test_every_file_that_the_page_names_is_there(web):
    html = (FOLDER / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert {name for name in named if name.startswith("page/")} > {"page/base.js", "page/look.css", "page/page.css"}
    for name in named:  # no slash before them, so that they are found behind a path prefix, too
        assert not name.startswith("/") and ":" not in name and web.get(f"/{name}").status_code == 200, name
    assert "<style" not in html and " style=" not in html and not re.search(r"<script(?! src=)", html)
    scripts = {name for name in FILES if name.endswith(".js")}
    assert scripts <= {name.removeprefix("page/") for name in named}


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_short_and_make_no_markup_of_texts(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) < 300
    assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|\beval\b|new Function|DOMParser", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|localStorage|document\.cookie", text)


@pytest.mark.parametrize(
    "path", ["/page/../settings.py", "/page/..%2fsettings.py", "/page/%2e%2e/%2e%2e/model.py", "/page/",
             "/page/shell.html", "/page/index.html", "/page/__init__.py", "/page/nothing.js", "/page//etc/passwd",
             "/page/page.js%00"],
)  # fmt: skip
def test_nothing_else_can_be_had(web, path):
    answer = web.get(path)
    assert answer.status_code == 404 and "error" in answer.json()


def test_other_methods_are_refused(web):
    assert web.post("/page/page.js", json={}).status_code == 405
    assert web.put("/page/page.js", json={}).headers["allow"] == "GET, HEAD"


def test_no_page_where_none_is_wanted():
    web = TestClient(create_app(Pretend(), Settings(page=False)))
    assert web.get("/", headers=BROWSER).json()["name"] == "bertsmith"
    assert web.get("/page/page.js").status_code == 404


def test_the_page_needs_no_key_and_what_it_asks_does():
    web = TestClient(create_app(Pretend(), Settings(keys=("hush",))))
    assert web.get("/", headers=BROWSER).status_code == web.get("/page/page.js").status_code == 200
    assert web.get("/v1/jobs").status_code == 401
    assert web.post("/page/page.js", json={}).status_code == 401
    assert web.get("/v1/jobs", headers={"authorization": "Bearer hush"}).status_code == 200


def test_every_job_says_what_it_needs_and_its_examples_fit(web):
    assert set(NEEDS) == set(JOBS) and set(EXAMPLES) <= set(JOBS)
    told = web.get("/v1/jobs").json()
    assert told["models"] == [{"id": "pretend", "labels": ["bad", "good"], "limit": 64, "family": "bert", "mask": ""}]
    for job in told["jobs"]:
        assert job["needs"]["head"] == (job["name"] not in BARE)
        assert job["needs"]["words"].endswith(".") and job["needs"]["command"].startswith("bertsmith ")
        for example in job["examples"]:
            assert web.post(f"/v1/jobs/{job['name']}", json=example).status_code == 200, example
