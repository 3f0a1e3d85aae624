"""What a server keeps to: where it listens, what it takes, how long it waits. In: flags. Out: checked values."""

from dataclasses import dataclass

from bertsmith.errors import BertsmithError

LEAST = {"workers": 1, "requests": 1, "inputs": 1, "body_bytes": 1024}
ABOVE_ZERO = ("timeout", "drain", "read_timeout")


@dataclass(frozen=True)
class Settings:
    host: str = "127.0.0.1"  # loopback: nobody outside this machine can ask unless somebody wants it so
    port: int = 8000
    workers: int = 1  # processes that speak HTTP; with more than one the models live in a process of their own
    default: str | None = None  # the id of the model that answers where none is named
    requests: int = 512  # at work or waiting at one time; those beyond are answered 429
    wait: float | None = None  # seconds: whoever would wait longer for an answer gets a 429; None: as the timeout
    inputs: int = 2048  # texts in a request
    body_bytes: int = 10 * 2**20
    timeout: float = 60.0  # seconds until a request that was not answered is given up (504)
    read_timeout: float = 20.0  # seconds that a client has to send its request
    drain: float = 30.0  # seconds that accepted requests have to end when the server is told to stop
    keys: tuple[str, ...] = ()  # one of them must come as `Authorization: Bearer KEY`; none: everybody may ask
    cors: tuple[str, ...] = ()  # origins whose pages may ask; "*" is all
    hosts: tuple[str, ...] = ()  # names in the header `Host` that mean this server; none: any
    truncate: str | None = None  # what is done with long inputs where a request says nothing; None: the job's own way
    log_texts: bool = False  # whether the log holds what was asked
    docs: bool = True  # whether /docs and /openapi.json are there
    page: bool = True  # whether a browser that opens / gets a page to play with

    @property
    def longest_wait(self) -> float:
        """Who would wait longer is told so at once: beyond the timeout there would be no answer anyway."""
        return self.timeout if self.wait is None else self.wait

    def __post_init__(self) -> None:
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                raise BertsmithError(f"{name} is {getattr(self, name)}; it must be at least {least}.")
        for name in ABOVE_ZERO:
            if not getattr(self, name) > 0:
                raise BertsmithError(f"{name} is {getattr(self, name)}; it must be a number of seconds above 0.")
        if self.wait is not None and not self.wait > 0:
            raise BertsmithError(f"wait is {self.wait}; it must be a number of seconds above 0.")
        if not 0 <= self.port <= 65535:
            raise BertsmithError(f"port is {self.port}; it must be from 0 (any free one) to 65535.")
        if any(not key or not key.isascii() or not key.isprintable() or " " in key for key in self.keys):
            raise BertsmithError("a key must be printable ASCII without spaces, and not empty.")
