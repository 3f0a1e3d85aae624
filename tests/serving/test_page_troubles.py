"""The page when something is amiss: no model, late answers, refusals, keys, a server busy or gone; and links to it."""

import json
from urllib.parse import quote

import pytest
from serving.page_served import meet
from serving.pretend import CARD, Pretend, listening
from serving.served import serving_models

import bertsmith
from bertsmith.serving.asks import Refusal

REFUSED = ("Failed to load resource",)
WORDS = "a [MASK]"


@pytest.fixture
def visit(open_page):
    return lambda address, **options: meet(open_page(address, **options))


@pytest.fixture(scope="module")
def pretend():
    """An answering backend without a model, and its address."""
    backend = Pretend()
    with listening(backend) as port:
        yield backend, f"http://127.0.0.1:{port}/"


def test_a_tab_that_no_model_serves_says_what_is_needed(visit, heads):
    with serving_models({"bare": bertsmith.load(heads["bare"], device="cpu")}) as address:
        person = visit(address)
        person.expect(person.page.get_by_role("tab", selected=True)).to_have_text("Pair")  # the first that can be used
        person.expect(person.result.locator(".figure")).to_be_visible()
        words = {"Fill": "masked words", "Answer": "questions", "Tag": "tag words", "Classify": "labels"}
        for tab, word in words.items():
            person.open(tab)
            person.expect(person.panel.get_by_role("heading")).to_have_text("No model here can do that yet")
            person.expect(person.panel.locator(".need")).to_contain_text(word)
            person.expect(person.panel.locator("pre")).to_contain_text("bertsmith serve --model")


def test_an_answer_that_comes_late_is_not_shown(visit, pretend):
    person = visit(f"{pretend[1]}#classify?text=first")
    person.sees(".score-label", ["good"])
    held = []

    def answer(route):
        text = json.loads(route.request.post_data)["text"]
        if text == "slow":
            return held.append(route)
        return route.fulfill(json=tell(text))

    def tell(label):
        return {"answers": [{"label": label, "score": 0.5}], "truncated": 0, "model": "pretend", "tokens": 1}

    person.page.route("**/v1/jobs/classify", answer)
    box = person.box("Text")
    box.fill("slow")
    person.expect(person.panel.locator(".came[aria-busy]")).to_be_visible()
    box.fill("fast")
    person.sees(".score-label", ["fast"])
    assert len(held) == 1
    held[0].fulfill(json=tell("slow"))
    box.fill("faster")
    person.sees(".score-label", ["faster"])


def test_many_keys_are_one_question(visit, pretend):
    backend, address = pretend
    person = visit(f"{address}#classify?text=a")
    person.sees(".score-label", ["good"])
    before = len(backend.asked)
    type_fast = "box => { for (const key of 'bcdefgh') { box.value += key; box.dispatchEvent(new Event('input')); } }"
    with person.page.expect_response("**/v1/jobs/classify"):
        person.box("Text").evaluate(type_fast)
    assert [ask.given["text"] for ask in backend.asked[before:]] == ["abcdefgh"]
    assert person.page.evaluate("location.hash").endswith("text=abcdefgh")
    person.box("Text").fill("long " * 8000)
    person.page.wait_for_function("() => location.hash === '#classify'")
    person.page.get_by_role("button", name="Copy link").click()
    person.expect(person.page.locator("#share")).to_have_text("This is too long for a link")


def test_refusals_are_told_in_the_servers_words_and_what_was_cut_is_told(visit, pretend):
    person = visit(f"{pretend[1]}#answer?question=who&context=ann", allow=REFUSED)
    person.expect(person.panel.locator(".facts")).to_contain_text("2 tokens were cut")
    person.panel.get_by_text("Options").click()
    person.box("Longest answer, in tokens").fill("1000")
    person.sees_problem("Answer: the field 'answer_length' must be a whole number from 1 to 100.")
    person.expect(person.result).to_be_empty()
    person.box("Longest answer, in tokens").fill("10")
    person.sees("mark", ["a"])
    assert person.panel.locator(".problem").inner_text() == ""
    person.box("Question").fill("")
    person.expect(person.result).to_have_text("Fill in: Question.")


def test_a_busy_server_is_asked_again(visit, pretend):
    backend, address = pretend
    backend.refusal = Refusal("overloaded", "too many requests are waiting; ask again later.", 1.0)
    try:
        person = visit(f"{address}#classify?text=a", allow=REFUSED)
        banner = person.page.locator("#banner")
        person.expect(banner).to_have_text("Too many requests are waiting; ask again later. Asking again in 1 s.")
    finally:
        backend.refusal = None
    person.sees(".score-label", ["good"])
    person.expect(banner).to_be_hidden()


def test_a_server_that_is_gone_and_comes_back(visit):
    lost = ("Failed to load resource", "ERR_")
    with listening(Pretend()) as port:
        person = visit(f"http://127.0.0.1:{port}/#classify?text=a", allow=lost)
        person.sees(".score-label", ["good"])
    person.box("Text").fill("b")
    banner = person.page.locator("#banner")
    person.expect(banner).to_have_text("The server does not answer. Trying again…")
    again = Pretend()
    with listening(again, at=port):
        person.expect(banner).to_be_hidden()
        person.sees(".score-label", ["good"])
        assert again.asked[-1].given["text"] == "b"
        person.page.goto("about:blank")  # lest it keeps a connection open


def test_a_server_that_wants_a_key(visit):
    with listening(Pretend(), keys=("hush-hush",)) as port:
        address = f"http://127.0.0.1:{port}/"
        person = visit(address + "#classify?text=a", allow=REFUSED)
        dialog = person.page.get_by_role("dialog", name="This server wants a key")
        key = dialog.get_by_label("Key", exact=True)
        key.fill("wrong")
        key.press("Enter")
        person.expect(dialog).to_contain_text("The server did not take that key.")
        key.press("Escape")
        person.page.get_by_role("button", name="Enter a key").click()
        key.fill("hush-hush")
        dialog.get_by_role("button", name="Use this key").click()
        person.sees(".score-label", ["good"])
        person.page.reload()
        person.sees(".score-label", ["good"])  # this tab remembers it
        kept = person.page.evaluate("[localStorage.length, document.cookie, location.href.includes('hush')]")
        assert kept == [0, "", False]
        other = visit(address, allow=REFUSED)  # and no other does
        other.expect(other.page.get_by_role("dialog")).to_be_visible()
        person.page.get_by_role("button", name="Forget key").click()
        person.expect(dialog).to_be_visible()


def test_a_link_brings_the_same(visit, pretend):
    backend, address = pretend
    text = "50 % & more? #1 <b>\nnext + line"
    person = visit(f"{address}#pair/entail")
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    person.box("First text").fill(text)
    person.box("Second text").fill("b")
    person.panel.get_by_text("Options").click()
    person.box("How many answers").fill("2")
    person.page.wait_for_function("() => location.hash.includes('top_k=2')")
    person.page.get_by_role("button", name="Copy link").click()
    person.expect(person.page.locator("#share")).to_have_text("Copied")
    link = person.page.evaluate("navigator.clipboard.readText()")
    other = visit(link)
    other.sees(".score-label", ["good"])
    other.expect(other.box("First text")).to_have_value(text)
    assert backend.asked[-1].job == "classify"
    given = {name: value for name, value in backend.asked[-1].given.items() if value is not None}
    assert given == {"text": text, "pair": "b", "top_k": 2} and backend.asked[-1].model == CARD.id
    other.open("Tokens")
    other.page.go_back()
    other.expect(other.box("First text")).to_have_value(text)


def test_a_link_that_is_not_right_opens_something(visit, pretend):
    person = visit(pretend[1] + "#nothing")
    for hash in ("#pair/nothing?x=1", "#fill?model=nobody&text=" + quote(WORDS), "#%E0%A4%A", "#?", "#attention"):
        person.expect(person.result.locator("> *").first).to_be_visible()
        person.page.evaluate("hash => { location.hash = hash; }", hash)


def test_behind_a_path_prefix(visit, pretend):
    """As a proxy serves it that takes the prefix away."""
    person = visit(pretend[1])
    paths = []

    def forward(route):
        paths.append(route.request.url.partition("/bert/")[2])
        route.fulfill(response=route.fetch(url=route.request.url.replace("/bert/", "/", 1)))

    person.page.route("**/bert/**", forward)
    person.page.goto(f"{pretend[1]}bert/#classify?text=a")
    person.sees(".score-label", ["good"])
    assert {"page/page.js", "page/look.css", "v1/jobs", "v1/jobs/classify"} <= set(paths)
