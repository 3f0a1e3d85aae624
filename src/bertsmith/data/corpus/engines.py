"""The same function over many jobs: here, in several processes, or on the machines of a Ray cluster."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from typing import Any, Literal, TypeVar

from bertsmith.errors import BertsmithError
from bertsmith.workers import GUARD, follow_parent, refuse_second_run

Engine = Literal["local", "ray"]
ENGINES = ("local", "ray")
J = TypeVar("J")


def run(
    function: Callable[[J], None], jobs: Sequence[J], processes: int, engine: Engine = "local",
    gpus: float | None = None,
) -> Iterator[int]:  # fmt: skip
    """Runs them all; gives how many are done after each. Results are files, so their order does not matter.

    `gpus`: what Ray keeps free for each job.
    """
    if engine == "ray":
        yield from _run_ray(function, jobs, gpus)
    elif processes == 1 or len(jobs) < 2:
        for number, job in enumerate(jobs, 1):
            function(job)
            yield number
    else:
        yield from _run_processes(function, jobs, processes)


def _run_processes(function: Callable[[J], None], jobs: Sequence[J], processes: int) -> Iterator[int]:
    refuse_second_run()
    context = get_context("spawn")
    has_begun = context.Event()
    pool = ProcessPoolExecutor(min(processes, len(jobs)), context, _begin, (has_begun,))
    try:
        for number, future in enumerate(as_completed([pool.submit(function, job) for job in jobs]), 1):
            future.result()
            yield number
    except BrokenProcessPool as error:
        if not has_begun.is_set():
            raise BertsmithError(
                f"the processes of the build ended before they could start; {GUARD}, or leave processes at 1."
            ) from None
        raise BertsmithError(
            "A process of the build was ended from outside, perhaps for lack of memory; the same command goes on from "
            "here, and fewer --processes take less."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(has_begun: Event) -> None:
    has_begun.set()
    # The pool's processes wait for work from each other's ends of its pipe, and would do so for ever once it is killed.
    follow_parent()
    _be_single()


def _be_single() -> None:
    # One thread a process: there are as many processes as there should be threads.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _run_ray(function: Callable[[J], None], jobs: Sequence[J], gpus: float | None) -> Iterator[int]:
    """A Ray Data job of one row a part. The folder of the results must be one that all machines see."""
    try:
        import ray
        import ray.data
    except ImportError:
        raise BertsmithError("--engine ray needs Ray; pip install 'bertsmith[ray]'.") from None

    def carry_out(row: dict[str, Any]) -> dict[str, Any]:
        _be_single()
        # What a function raises comes back inside Ray's own error; a sentence is easier to hand over as it is.
        try:
            function(jobs[row["number"]])
        except BertsmithError as error:
            return {"error": str(error)}
        return {"error": ""}

    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.from_items([{"number": number} for number in range(len(jobs))], override_num_blocks=len(jobs))
    for number, row in enumerate(rows.map(carry_out, num_gpus=gpus).iter_rows(), 1):
        if row["error"]:
            raise BertsmithError(row["error"])
        yield number
