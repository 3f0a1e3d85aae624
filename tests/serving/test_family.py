"""A child process that is always there, and when to give up on it; what ends a supervisor."""

import asyncio
import signal
import socket
import sys

import pytest
from serving.pretend import Pretend

from bertsmith.errors import BertsmithError
from bertsmith.serving.processes import family, listening, pulse, supervisor
from bertsmith.serving.processes.family import Child, Keeper
from bertsmith.serving.processes.plan import Plan
from bertsmith.serving.processes.sockets import listen_here
from bertsmith.serving.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="file descriptors are not inherited there")
READ = "import json, os, sys; order = json.loads(sys.stdin.readline()); "
REPORT = READ + "os.write(order['report'], {!r}); "
READY = REPORT.format(b"{}\n")


class Scripted(Keeper):
    """Keeps processes that do what each script says, the last one for ever."""

    def __init__(self, folder, *scripts):
        super().__init__(Child("http", "HTTP process 1", socket.socket(), {}), folder)
        self.scripts, self.started = list(scripts), 0

    def command(self):
        self.started += 1
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        return [sys.executable, "-I", "-S", "-c", script]

    def run(self):
        try:
            asyncio.run(asyncio.wait_for(self.keep(), 60))
        finally:
            self.child.socket.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(family, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(family, "LONGEST_PAUSE", 0.001)


@pytest.mark.parametrize(
    "script, said",
    [
        ("raise SystemExit(3)", "HTTP process 1 ended with status 3 before it could begin."),
        (READ + "os.kill(os.getpid(), 9)", "HTTP process 1 was killed by SIGKILL (often: not enough memory) before"),
        (REPORT.format(b'{"error": "there is no folder."}\n'), "there is no folder."),
    ],
)
def test_one_that_never_begins_is_given_up_at_once(tmp_path, script, said):
    keeper = Scripted(tmp_path, script)
    with pytest.raises(BertsmithError) as raised:
        keeper.run()
    assert str(raised.value).startswith(said) and keeper.started == 1


def test_one_that_began_once_is_replaced_until_there_is_no_point(tmp_path):
    keeper = Scripted(tmp_path, READY, "raise SystemExit(1)", READY + "raise SystemExit(2)", "raise SystemExit(4)")
    with pytest.raises(BertsmithError, match="ended with status 4 before it could begin"):
        keeper.run()
    assert keeper.started == 3 + family.TRIES  # one that begins makes up for those that did not


def test_one_that_hangs_is_ended_and_replaced(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(family, "PATIENCE", 0.02)
    monkeypatch.setattr(pulse, "TICK", 0.005)
    hanging = READY + "import time; time.sleep(1000)"
    keeper = Scripted(tmp_path, hanging, hanging, "raise SystemExit(4)")
    keeper.child.path = str(tmp_path / "models.sock")
    keeper.child.socket.close()
    keeper.child.socket = listen_here(keeper.child.path)  # whoever connects waits in line for one who never comes
    with pytest.raises(BertsmithError, match="ended with status 4"):
        keeper.run()
    assert keeper.started == 2 + family.TRIES
    said = [record.getMessage() for record in caplog.records]
    assert said.count("HTTP process 1 did not answer for 0.02 seconds and was ended; another takes its place.") == 2


def test_one_that_says_it_is_ready_is_not_taken_to_hang(tmp_path, monkeypatch):
    """Until it says no longer that it is."""
    monkeypatch.setattr(pulse, "TICK", 0.005)
    monkeypatch.setattr(listening, "PULSE", 0.001)
    backend = Pretend()

    async def check():
        with listen_here(str(tmp_path / "models.sock")) as bound:
            listener = listening.Listener(backend)
            await listener.open(bound)
            watching = asyncio.create_task(pulse.until_silent(str(tmp_path / "models.sock"), 0.5))
            done, _ = await asyncio.wait([watching], timeout=1.5)  # three times its patience
            assert not done
            backend.ready = False
            await asyncio.wait_for(watching, 60)
            await listener.close()

    asyncio.run(check())


def test_one_that_is_told_to_stop_is_not_replaced(tmp_path):
    class Stopped(Scripted):
        def command(self):
            asyncio.get_running_loop().create_task(self.stop())
            return super().command()

        async def stop(self):
            await self.ready.wait()
            self.stopping.set()
            self.tell_end()

    keeper = Stopped(tmp_path, READY + "assert sys.stdin.readline() == 'end\\n'; raise SystemExit(7)")
    keeper.run()
    assert keeper.started == 1 and keeper.process.returncode == 7


def test_a_second_signal_ends_a_supervisor_at_once(monkeypatch):
    class Ended(Exception):
        pass

    def end(status):
        raise Ended(status)

    monkeypatch.setattr(supervisor, "end_now", end)

    async def check():
        with socket.socket() as listening:
            found = supervisor.Supervisor(Plan(), Settings(), listening, print)
            found.stop(signal.SIGTERM)
            assert found.stopped.is_set() and found.folder.is_dir()
            with pytest.raises(Ended, match="143"):
                found.stop(signal.SIGTERM)
            assert not found.folder.exists()

    asyncio.run(check())
