"""A backend in another process: what it answers, refuses and forgets, told over a Unix socket."""

import asyncio
import socket
from contextlib import asynccontextmanager

import numpy as np
import pytest
from serving.pretend import CARD, Pretend

from bertsmith.serving.asks import Ask, Refusal, Reply
from bertsmith.serving.processes.listening import Listener
from bertsmith.serving.processes.remote import Remote
from bertsmith.serving.processes.sockets import listen_here
from bertsmith.serving.processes.wire import pack

DEADLINE = 20.0
EMBED = Ask("embed", {"texts": ["a", "b"]})


class Holding(Pretend):
    """Answers an ask when it is told to, with a vector that says which one it was."""

    def __init__(self, tokens=0.0):
        super().__init__()
        self.tokens = tokens
        self.waiting: dict[int, asyncio.Future] = {}
        self.dropped: list[int] = []

    async def ask(self, ask):
        number = ask.given["number"]
        self.waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self.waiting[number]
        except asyncio.CancelledError:
            self.dropped.append(number)
            raise
        return Reply(CARD.id, [number / 3], True, [np.full((2, number % 5), number, "float32")], [number], number, 0.1)

    def load(self):
        return {"waiting": float(len(self.waiting)), "tokens": self.tokens, "seconds": self.tokens / 100, "speed": 5.0}


async def until(condition):
    async with asyncio.timeout(DEADLINE):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def connected(folder, *backends, **options):
    """A `Remote` and the `Listener`s of its backends, each on a socket of its own."""
    paths = [str(folder / f"{number}.sock") for number in range(len(backends))]
    listeners = [Listener(backend, **options) for backend in backends]
    for path, listener in zip(paths, listeners, strict=True):
        await listener.open(listen_here(path))
    remote = Remote(paths)
    remote.open()
    try:
        await until(lambda: all(link.is_ready() for link in remote.links))
        yield remote, listeners
    finally:
        await remote.close()
        for listener in listeners:
            await listener.close()


def test_it_answers_as_the_other_process_does(tmp_path):
    async def check():
        backend = Pretend()
        async with connected(tmp_path, backend) as (remote, _):
            for job, given in (("embed", {"texts": ["a", "b"]}), ("embed", {"texts": "a"}), ("hidden", {"texts": "a"}),
                               ("classify", {"text": ["ä\u2028", "\0"]}), ("tokenize", {"text": "a"})):  # fmt: skip
                ask = Ask(job, given, CARD.id, 9.5)
                found, expected = await remote.ask(ask), await backend.ask(ask)
                assert backend.asked[-1] == backend.asked[-2] == ask
                vectors, others = found.vectors, expected.vectors
                found.vectors = expected.vectors = None
                assert found == expected
                assert (vectors is None) == (others is None)
                for one, other in zip(vectors or [], others or [], strict=True):
                    assert one.dtype == other.dtype and np.array_equal(one, other)
            assert remote.cards() == [CARD] and remote.load() == backend.load()
            assert await remote.wait(0.1)

    asyncio.run(check())


def test_many_are_in_flight_and_each_gets_its_own(tmp_path):
    async def check():
        backend = Holding()
        async with connected(tmp_path, backend) as (remote, _):
            asks = [asyncio.create_task(remote.ask(Ask("embed", {"number": n}))) for n in range(200)]
            await until(lambda: len(backend.waiting) == 200)
            for number in sorted(backend.waiting, key=lambda number: number * 37 % 200):
                backend.waiting[number].set_result(None)
            for number, reply in enumerate(await asyncio.gather(*asks)):
                assert reply.tokens == number and reply.results == [number / 3] and reply.queued == 0.1
                assert reply.vectors[0].shape == (2, number % 5) and (reply.vectors[0] == number).all()

    asyncio.run(check())


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal("input", "the text is too long: \ud800 “x”."),
        Refusal("overloaded", "later.", 2.5),
        Refusal("model", "there is no such model."),
    ],
)
def test_refusals_cross_intact(tmp_path, refusal):
    async def check():
        backend = Pretend()
        backend.refusal = refusal
        async with connected(tmp_path, backend) as (remote, _):
            with pytest.raises(Refusal) as raised:
                await remote.ask(EMBED)
            found = raised.value
            assert (found.kind, found.retry_after) == (refusal.kind, refusal.retry_after)
            assert found.message == refusal.message.replace("\ud800", r"\ud800")

    asyncio.run(check())


def test_a_fault_of_the_other_process_is_internal_and_it_goes_on(tmp_path, caplog):
    async def check():
        backend = Pretend()
        backend.refusal = RuntimeError("secret")
        async with connected(tmp_path, backend) as (remote, _):
            with pytest.raises(Refusal) as raised:
                await remote.ask(EMBED)
            assert raised.value.kind == "internal" and "secret" not in raised.value.message
            backend.refusal = None
            assert (await remote.ask(EMBED)).model == CARD.id

    asyncio.run(check())


@pytest.mark.parametrize("given", [{"texts": "\ud800"}, {"texts": "a", "dims": 2**70}])
def test_what_no_frame_can_hold_is_the_request_s_fault(tmp_path, given):
    async def check():
        async with connected(tmp_path, Pretend()) as (remote, _):
            with pytest.raises(Refusal, match="not Unicode") as raised:
                await remote.ask(Ask("embed", given))
            assert raised.value.kind == "input"
            assert (await remote.ask(EMBED)).model == CARD.id

    asyncio.run(check())


def test_an_answer_that_is_too_large_is_refused_alone(tmp_path):
    async def check():
        async with connected(tmp_path, Pretend(), most=600) as (remote, _):
            with pytest.raises(Refusal, match="too large") as raised:
                await remote.ask(Ask("hidden", {"texts": ["a"] * 40}))
            assert raised.value.kind == "input"
            assert (await remote.ask(EMBED)).model == CARD.id

    asyncio.run(check())


def test_who_is_cancelled_or_gone_is_taken_out_of_the_queue(tmp_path):
    async def check():
        backend = Holding()
        async with connected(tmp_path, backend) as (remote, (listener,)):
            asks = [asyncio.create_task(remote.ask(Ask("embed", {"number": n}))) for n in range(3)]
            await until(lambda: len(backend.waiting) == 3)
            asks[1].cancel()
            await until(lambda: backend.dropped == [1])
            backend.waiting[0].set_result(None)
            assert (await asks[0]).tokens == 0 and asks[1].cancelled()
            await remote.close()
            with pytest.raises(Refusal) as raised:
                await asks[2]
            assert raised.value.kind == "unavailable"
            await until(lambda: backend.dropped == [1, 2])
            await until(lambda: not listener.peers)

    asyncio.run(check())


def test_a_process_that_dies_costs_its_requests_and_its_successor_goes_on(tmp_path):
    async def check():
        backend = Holding()
        async with connected(tmp_path, backend) as (remote, (listener,)):
            ask = asyncio.create_task(remote.ask(Ask("embed", {"number": 1})))
            await until(lambda: backend.waiting)
            await listener.close()
            with pytest.raises(Refusal) as raised:
                await ask
            assert (raised.value.kind, raised.value.retry_after) == ("unavailable", 1.0)
            assert not remote.is_ready() and remote.admits(10) is None and remote.load()["waiting"] == 0
            assert remote.cards() == [CARD]  # the list of models does not vanish meanwhile
            with pytest.raises(Refusal, match="ask again"):
                await remote.ask(EMBED)
            (tmp_path / "0.sock").unlink(missing_ok=True)
            successor = Listener(Pretend())
            await successor.open(listen_here(str(tmp_path / "0.sock")))
            await until(remote.is_ready)
            assert (await remote.ask(EMBED)).model == CARD.id
            await successor.close()

    asyncio.run(check())


def test_of_several_the_one_with_the_least_waiting_is_asked(tmp_path):
    async def check():
        busy, idle = Holding(tokens=5000.0), Holding(tokens=10.0)
        async with connected(tmp_path, busy, idle) as (remote, listeners):
            asks = [asyncio.create_task(remote.ask(Ask("embed", {"number": n}))) for n in range(4)]
            await until(lambda: len(idle.waiting) == 4)
            assert not busy.waiting
            assert remote.load()["tokens"] == 5010 and remote.load()["seconds"] == 0.1 and remote.load()["speed"] == 10
            await listeners[1].close()
            assert [type(error) for error in await asyncio.gather(*asks, return_exceptions=True)] == [Refusal] * 4
            assert remote.is_ready()
            ask = asyncio.create_task(remote.ask(Ask("embed", {"number": 9})))
            await until(lambda: busy.waiting)
            busy.waiting[9].set_result(None)
            assert (await ask).tokens == 9

    asyncio.run(check())


def test_what_was_just_sent_counts_as_waiting(tmp_path):
    """Load is told a few times a second: without it a burst would go to one process."""

    async def check():
        backends = Holding(), Holding()
        async with connected(tmp_path, *backends) as (remote, _):
            asks = [asyncio.create_task(remote.ask(Ask("embed", {"number": n}))) for n in range(10)]
            await until(lambda: sum(len(backend.waiting) for backend in backends) == 10)
            assert [len(backend.waiting) for backend in backends] == [5, 5]
            for ask in asks:
                ask.cancel()

    asyncio.run(check())


def test_whether_a_request_is_admitted_is_known_without_asking(tmp_path):
    class Full(Pretend):
        def admits(self, size):
            return 3.0 if size >= 4**8 else None

    async def check():
        full, small = Full(), Pretend()
        small.retry = 1.5
        async with connected(tmp_path, full) as (remote, _):
            assert [remote.admits(size) for size in (0, 10, 4**7, 4**8, 10**12)] == [None, None, None, 3.0, 3.0]
        (tmp_path / "0.sock").unlink(missing_ok=True)
        async with connected(tmp_path, full, small) as (remote, _):
            assert [remote.admits(size) for size in (10, 4**9)] == [None, 1.5]
            full.ready = False
            await until(lambda: remote.admits(10) == 1.5)
            assert remote.is_ready()

    asyncio.run(check())


def test_one_that_is_silent_is_not_ready(tmp_path, monkeypatch):
    async def check():
        async with connected(tmp_path, Pretend()) as (remote, (listener,)):
            monkeypatch.setattr("bertsmith.serving.processes.remote.SILENCE", 0.05)
            monkeypatch.setattr(listener, "peers", set())
            await until(lambda: not remote.is_ready())
            with pytest.raises(Refusal) as raised:
                await remote.ask(EMBED)
            assert raised.value.kind == "unavailable"

    asyncio.run(check())


GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n",
    pack({"is": "ask"}),
    pack({"is": "nothing", "id": 1}),
    pack({"is": "ask", "id": 1, "job": 3, "given": {}, "model": "", "timeout": None}),
    pack({"is": "cancel", "id": {}}),
]


@pytest.mark.parametrize("sent", GARBAGE)
def test_garbage_ends_its_connection_and_no_other(tmp_path, sent):
    def talk():
        with socket.socket(socket.AF_UNIX) as wrong:
            wrong.settimeout(DEADLINE)
            wrong.connect(str(tmp_path / "0.sock"))
            wrong.sendall(sent)
            try:
                while wrong.recv(65536):
                    pass
            except ConnectionResetError:
                pass

    async def check():
        async with connected(tmp_path, Pretend()) as (remote, (listener,)):
            await asyncio.to_thread(talk)
            await until(lambda: len(listener.peers) == 1)
            assert (await remote.ask(EMBED)).model == CARD.id

    asyncio.run(check())
