"""The queue behind the models: what is asked alone, at once, in vain or too late."""

import asyncio
import os
import random
import threading
import time

import numpy as np
import orjson
import pytest
from serving.asking import EVERY_JOB, ask_library, same

import bertsmith
from bertsmith.serving import engine as engines
from bertsmith.serving.asks import Ask, Refusal
from bertsmith.serving.local import Local
from bertsmith.serving.passes import Together
from bertsmith.serving.queue import Ticket
from bertsmith.serving.residents import Residents, name_models

PATIENCE = 60.0


@pytest.fixture(scope="module")
def library(heads, adapters):
    """The same models, asked without a queue."""
    found = {name: bertsmith.load(folder, device="cpu") for name, folder in heads.items()}
    apart = {f"bare:{name}": bertsmith.load(folder, device="cpu") for name, folder in adapters.items()}
    return found | apart


@pytest.fixture
def backend(models):
    made = Local(Residents(models))
    yield made
    made.close()


def refused(backend, *asked, **more):
    with pytest.raises(Refusal) as caught:
        asyncio.run(backend.ask(Ask(*asked, **more)))
    return caught.value


@pytest.mark.parametrize("model, job, given", EVERY_JOB)
def test_alone_an_ask_gets_what_the_library_gives(backend, library, model, job, given):
    reply = asyncio.run(backend.ask(Ask(job, given, model)))
    assert reply.model == model
    same(reply, ask_library(library[model], job, given))
    assert job in ("tokenize", "decode") or reply.tokens > 0


def test_at_once_everybody_gets_his_own(backend, library):
    asked = EVERY_JOB * 6
    random.Random(0).shuffle(asked)

    async def all_at_once():
        return await asyncio.gather(*(backend.ask(Ask(job, given, model)) for model, job, given in asked))

    for reply, (model, job, given) in zip(asyncio.run(all_at_once()), asked, strict=True):
        same(reply, ask_library(library[model], job, given))
    assert backend.load()["waiting"] == backend.load()["tokens"] == 0
    assert backend.engine.batches < backend.engine.rows  # they did share passes


class Gate:
    """Holds the engine inside a batch until it is opened."""

    def __init__(self, backend, monkeypatch):
        self.inside, self.open, self.read = threading.Event(), threading.Event(), []
        plain = Together.score

        def score(together, wanted):
            self.inside.set()
            assert self.open.wait(PATIENCE)
            self.read += [len(one.row.ids) for one in wanted]
            return plain(together, wanted)

        monkeypatch.setattr(Together, "score", score)


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_who_leaves_costs_nothing(backend, monkeypatch):
    gate = Gate(backend, monkeypatch)

    async def leave():
        first = asyncio.create_task(backend.ask(Ask("embed", {"texts": "the film"}, "bare")))
        await asyncio.to_thread(gate.inside.wait, PATIENCE)
        second = asyncio.create_task(backend.ask(Ask("embed", {"texts": ["a very long text " * 9] * 50}, "bare")))
        await asyncio.to_thread(until, lambda: backend.engine.queue.rows == 50)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.open.set()
        return await first

    reply = asyncio.run(leave())
    assert reply.vectors[0].shape == (32,)
    until(lambda: not backend.tickets)
    assert len(gate.read) == 1  # the row of the one who stayed


def test_a_short_request_overtakes_a_long_one(backend, monkeypatch):
    gate, done = Gate(backend, monkeypatch), []

    async def ask(name, texts):
        await backend.ask(Ask("embed", {"texts": texts}, "bare"))
        done.append(name)

    async def both():
        first = asyncio.create_task(ask("first", "the film"))
        await asyncio.to_thread(gate.inside.wait, PATIENCE)
        long = asyncio.create_task(ask("long", ["very " * 60] * 200))
        await asyncio.to_thread(until, lambda: backend.engine.queue.rows == 200)
        short = asyncio.create_task(ask("short", "a song"))
        await asyncio.to_thread(until, lambda: backend.engine.queue.rows == 201)
        gate.open.set()
        await asyncio.gather(first, long, short)

    asyncio.run(both())
    assert sorted(done[:2]) == ["first", "short"] and done[2] == "long"  # of those two either may be told first


def test_a_batch_that_does_not_end_is_noticed(backend, monkeypatch):
    gate = Gate(backend, monkeypatch)

    async def ask():
        first = asyncio.create_task(backend.ask(Ask("embed", {"texts": "a film"}, "bare")))
        await asyncio.to_thread(gate.inside.wait, PATIENCE)
        assert backend.is_ready()
        monkeypatch.setattr(engines, "STUCK", 0.0)
        assert not backend.is_ready()
        gate.open.set()
        await first

    asyncio.run(ask())
    until(backend.is_ready)


def test_too_late_is_said(backend, monkeypatch):
    gate = Gate(backend, monkeypatch)
    found = refused(backend, "embed", {"texts": "the film"}, "bare", timeout=0.05)
    assert found.kind == "timeout"
    gate.open.set()
    assert asyncio.run(backend.ask(Ask("embed", {"texts": "the film"}, "bare"))).vectors


def test_what_is_too_late_is_not_read(backend, monkeypatch):
    gate = Gate(backend, monkeypatch)

    async def both():
        first = asyncio.create_task(backend.ask(Ask("embed", {"texts": "the film"}, "bare")))
        await asyncio.to_thread(gate.inside.wait, PATIENCE)
        rest = [asyncio.create_task(backend.ask(Ask("embed", {"texts": "a"}, "bare"))) for _ in backend.engine.threads]
        await asyncio.to_thread(until, lambda: len(backend.tickets) == len(rest) + 1)
        with pytest.raises(Refusal) as caught:
            await backend.ask(Ask("embed", {"texts": ["very " * 60] * 9}, "bare", timeout=0.2))
        gate.open.set()
        await asyncio.gather(first, *rest)
        return caught.value

    assert asyncio.run(both()).kind == "timeout"
    until(lambda: not backend.tickets)
    assert max(gate.read) < 9  # those of the one who gave up are longer


def test_cancelled_before_it_waits(backend):
    """A request that is given up while its text is cut into pieces does not wait for its scores."""
    ticket = Ticket()
    ticket.gone.set()
    with pytest.raises(Refusal, match="gone"):
        ticket.check()
    ticket.check = lambda: None  # it is cancelled just behind the check
    engines.here.ticket = ticket
    try:
        with pytest.raises(Refusal, match="gone"):
            backend.residents.models["bare"].embed("the film")
    finally:
        engines.here.ticket = None


def test_too_many_are_sent_away(models, monkeypatch):
    backend = Local(Residents(models), requests=2)
    gate = Gate(backend, monkeypatch)

    async def three():
        two = [asyncio.create_task(backend.ask(Ask("embed", {"texts": "a film"}, "bare"))) for _ in range(2)]
        await asyncio.to_thread(gate.inside.wait, PATIENCE)
        assert backend.admits(100) >= 1
        with pytest.raises(Refusal, match="too many requests") as caught:
            await backend.ask(Ask("embed", {"texts": "a film"}, "bare"))
        gate.open.set()
        await asyncio.gather(*two)
        return caught.value

    found = asyncio.run(three())
    assert found.kind == "overloaded" and found.retry_after == 1.0
    until(lambda: backend.admits(100) is None)
    backend.close()


def test_a_wait_that_would_be_too_long_is_refused(models, monkeypatch):
    backend = Local(Residents(models), wait=1.0)
    gate = Gate(backend, monkeypatch)

    async def ask():
        task = asyncio.create_task(backend.ask(Ask("embed", {"texts": ["very " * 60] * 100}, "bare")))
        await asyncio.to_thread(until, lambda: backend.engine.queue.tokens > 4000)
        await asyncio.to_thread(until, lambda: len(backend.engine.reading) == len(backend.engine.threads))
        backend.engine.speed = 1e9  # tokens a second
        assert backend.admits(240) is None
        backend.engine.speed = 100.0 / len(backend.engine.threads)
        short, long = backend.admits(240), backend.admits(16000)
        assert short > 1  # all are at work, on batches of the other's
        assert long > 4000 / 100  # all of the other's
        with pytest.raises(Refusal, match="too many requests") as caught:
            await backend.ask(Ask("embed", {"texts": "very " * 48}, "bare"))
        assert caught.value.retry_after == pytest.approx(short, abs=1.0)
        gate.open.set()
        await task

    asyncio.run(ask())
    backend.close()


def test_one_request_is_read_by_all_threads(models, monkeypatch):
    monkeypatch.setattr(engines, "share_cores", lambda device: (3, 1))
    backend = Local(Residents(models))
    backend.engine.speed = 1000.0  # tokens a second, so that a batch has but a row
    gate = Gate(backend, monkeypatch)

    async def ask():
        task = asyncio.create_task(backend.ask(Ask("embed", {"texts": ["very " * 60] * 9}, "bare")))
        await asyncio.to_thread(until, lambda: len(backend.engine.reading) == 3)
        gate.open.set()
        return await task

    assert len(asyncio.run(ask()).vectors) == 9
    backend.close()


def test_batches_are_short_where_waits_are_to_be(models):
    for wait, moment in ((None, engines.MOMENT), (60.0, engines.MOMENT), (0.02, 0.01)):
        backend = Local(Residents(models), wait=wait)
        assert backend.engine.moment == moment
        backend.close()


def test_one_bad_row_fails_alone(backend, monkeypatch):
    """A batch that fails is parted until who is at fault stands alone."""
    plain = Together.score

    def score(together, wanted):
        if any(len(one.row.ids) == 5 for one in wanted):
            raise RuntimeError("five")
        return plain(together, wanted)

    monkeypatch.setattr(Together, "score", score)

    async def ask():
        texts = ["a film", "the film was", "a song", "it"]
        asked = (backend.ask(Ask("embed", {"texts": text}, "bare")) for text in texts)
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(ask())
    assert [isinstance(one, Refusal) for one in found] == [False, True, False, False]
    assert found[1].kind == "internal" and "five" not in found[1].message


def test_whose_fault_it_is(backend):
    assert refused(backend, "embed", {"texts": "a"}, "nobody").kind == "model"
    assert refused(backend, "fill", {"text": "a [MASK]"}, "bare").kind == "job"
    assert "fill, follows can" in refused(backend, "fill", {"text": "a [MASK]"}, "bare").message
    assert refused(backend, "fill", {"text": "no mask"}, "fill").kind == "input"
    assert refused(backend, "embed", {"texts": "a " * 99, "truncate": "error"}, "bare").kind == "input"
    assert "its fields are" in refused(backend, "embed", {"text": "a"}, "bare").message
    assert "needs the field 'texts'" in refused(backend, "embed", {}, "bare").message
    for given in ({"texts": 5}, {"texts": [1.5]}, {"texts": [["a"]]}, {"texts": "a", "dims": 0}):
        assert refused(backend, "embed", given, "bare").kind == "input"
    assert "9999" in refused(backend, "decode", {"ids": [9999]}, "bare").message


def test_token_ids_do_for_a_text(backend):
    async def ask():
        pieces = (await backend.ask(Ask("tokenize", {"text": "the film"}, "bare"))).results[0]["ids"]
        by_ids = await backend.ask(Ask("embed", {"texts": [pieces, pieces[1:-1]]}, "bare"))
        one = await backend.ask(Ask("embed", {"texts": pieces}, "bare"))
        return by_ids, one, await backend.ask(Ask("embed", {"texts": "the film"}, "bare"))

    by_ids, one, by_text = asyncio.run(ask())
    assert not by_ids.single and one.single
    for vector in (*by_ids.vectors, *one.vectors):
        np.testing.assert_allclose(vector, by_text.vectors[0], atol=1e-6)


def test_models_are_named(tmp_path):
    assert name_models(["a=x/y", "/home/me/b", "c.d"]) == {"a": "x/y", "b": "/home/me/b", "c.d": "c.d"}
    for wrong in (["a=x", "z/a"], ["..=x"], ["/"], ["a b=x"]):
        with pytest.raises(bertsmith.BertsmithError):
            name_models(wrong)


def test_found_texts_that_are_no_unicode_can_be_sent(models, tmp_path):
    (tmp_path / os.fsdecode(b"odd\xff.txt")).write_text("Eve lives at the river.")
    (tmp_path / "lines.jsonl").write_text('{"text": "The river \\ud800 is long."}\n')
    model = models["bare"]
    made = Local(Residents({"bare": model}, indexes={"bare": bertsmith.index(tmp_path, model)}))
    try:
        for query in ("the river", ["the river", "Eve"]):
            reply = asyncio.run(made.ask(Ask("search", {"query": query})))
            found = {answer["document"]: answer["text"] for answer in reply.results[0]["answers"]}
            assert found == {"odd\ufffd.txt": "Eve lives at the river.", "lines.jsonl:1": "The river \ufffd is long."}
            orjson.dumps(reply.results)
    finally:
        made.close()


@pytest.mark.parametrize(
    "given", [{"texts": "a river", "layers": [0] * 200}, {"texts": ["the river bank " * 4] * 9, "layers": "all"},
              {"texts": ["the river bank " * 40] * 20}]
)  # fmt: skip
def test_vectors_that_no_answer_can_hold_are_refused(backend, given, monkeypatch):
    """The width is 32 and a row has at most 64 tokens; by the shapes that the library would give."""
    monkeypatch.setattr("bertsmith.serving.sizes.NUMBERS", 10_000)
    refusal = refused(backend, "hidden", given, "bare")
    assert refusal.kind == "input" and "give fewer texts or layers" in refusal.message
    few = {"texts": ["a river", "a bank"], "layers": [0, -1]}
    assert [row.shape[0] for row in asyncio.run(backend.ask(Ask("hidden", few, "bare"))).vectors] == [2, 2]


def test_masks_that_no_answer_can_hold_are_refused(backend, library, monkeypatch):
    """Each filling comes with its text: 28 KB of masks were 11 GB of answers."""
    monkeypatch.setattr("bertsmith.serving.sizes.BYTES", 50_000)
    for given in ({"text": "[MASK] " * 20, "top_k": 10}, {"text": ["[MASK] " * 10] * 3},
                  {"text": "[MASK] " * 10, "targets": ["good", "film"] * 10}):  # fmt: skip
        refusal = refused(backend, "fill", given, "fill")
        assert refusal.kind == "input" and "give fewer masks or texts at once" in refusal.message
    every = {"text": "the [MASK] was good", "top_k": 10**9}  # of a vocabulary that is small
    monkeypatch.setattr("bertsmith.serving.sizes.BYTES", 100_000)
    same(asyncio.run(backend.ask(Ask("fill", every, "fill"))), library["fill"].fill(**every))


def test_as_many_answers_as_anybody_reads(backend):
    """A text has as many parts as pairs of places in it: all of 160 KB were 1.2 GB."""
    given = {"question": "who", "context": "the film was good " * 50}
    refusal = refused(backend, "answer", {**given, "top_k": 1001}, "answer")
    assert refusal.kind == "input" and "'top_k' must be a whole number from 1 to 1000" in refusal.message
    reply = asyncio.run(backend.ask(Ask("answer", {**given, "top_k": 1000}, "answer")))
    assert len(reply.results[0]["answers"]) == 1000
