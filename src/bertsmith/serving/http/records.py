"""What is known of one request while it is answered, for its headers, the log and the metrics.

In: what each step learns. Out: one `Record`, found by a handler at `request.state.record`.
"""

from dataclasses import dataclass, field

from bertsmith.serving.asks import Reply


@dataclass
class Record:
    id: str
    method: str
    route: str  # the template, never the path that was asked: `/models/{id}`
    style: str  # in which complaints are told; a handler that serves two kinds of client may change it
    started: float  # of `time.perf_counter`
    replies: list[Reply] = field(default_factory=list)
    inputs: int = 0
    job: str = ""
    texts: object = None  # what was asked, kept only where the log may hold it
    complaint: str = ""  # the kind of the complaint that was sent
    read: int = 0  # bytes of the body

    def total(self, name: str) -> float:
        """The sum of `tokens`, `queued` or `worked` over what was asked for this request."""
        return sum(float(getattr(reply, name)) for reply in self.replies)

    def truncated(self) -> int:
        return sum(sum(reply.truncated) for reply in self.replies)
