"""The short form of soak.py: gentle mixed traffic on a real server, every answer checked, memory that stays in bounds.

BERTSMITH_SOAK_SECONDS is how long it lasts, 30 unless set; `make soak` lasts longer and asks for more.
"""

import asyncio
import os
from pathlib import Path

import pytest
from serving.soak import drive, make, make_questions, serving
from serving.soak_report import describe

SECONDS = float(os.environ.get("BERTSMITH_SOAK_SECONDS", "30"))
USERS, PAUSE = 4, 0.05  # about 60 requests a second: room for the tests beside it
GROWTH = 32.0  # MiB from the middle to the end: what threads and arenas still take, far from what a leak would
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks for memory in /proc")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("soak"))


def test_every_answer_is_the_librarys_and_memory_stays(made):
    questions = make_questions(made)
    with serving(made, workers=2) as (port, process):
        tally = asyncio.run(drive(port, process, questions, SECONDS, USERS, PAUSE))
    report = describe(tally, SECONDS)
    assert not tally.wrong, tally.wrong[:5]
    assert tally.answered and tally.hung_up, report
    assert report["same_processes"], "a process of the server died"
    assert report["mib_last"] - report["mib_half"] < GROWTH, report
