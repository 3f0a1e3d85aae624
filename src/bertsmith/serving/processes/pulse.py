"""Whether a process with models is still at work: what it says over its socket, several times a second.

In: the path of its socket. Out: the moment at which it has been silent, or not ready, for too long: it hangs.
"""

import asyncio
from typing import Any

from bertsmith.serving.processes.wire import Array, Channel

TICK = 1.0  # seconds between two looks


async def until_silent(path: str, patience: float) -> None:
    """Until it has not said for so many seconds that it is ready."""
    heard = 0
    channel: Channel | None = None

    def hear(header: dict[str, Any], _: list[Array] | None) -> None:
        nonlocal heard
        heard += header["is"] == "load" and header["ready"]

    silent = 0.0
    try:
        while silent < patience:
            if channel is None or channel.transport is None:
                channel = await _connect(path, Channel(hear, lambda: None))
            before = heard
            await asyncio.sleep(TICK)
            # Ticks are counted, not time: where this process itself was held up it could hear nobody.
            silent = silent + TICK if heard == before else 0.0
    finally:
        if channel is not None:
            channel.close()


async def _connect(path: str, channel: Channel) -> Channel | None:
    try:
        await asyncio.get_running_loop().create_unix_connection(lambda: channel, path)
    except OSError:  # it has just ended: whoever watches it hears of that without us
        return None
    return channel
