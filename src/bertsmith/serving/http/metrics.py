"""What the server counts, for Prometheus: names by its guide, labels from small closed sets.

In: a `Record` when its request ends. Out: the text that a scraper reads, summed over all processes that speak HTTP.
"""

import os
from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from bertsmith.serving.asks import Backend
from bertsmith.serving.http.records import Record

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where several processes keep their counts; prometheus_client's own name
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
# What `Backend.load` tells, and its name and help here; a counter is of all batches since the models were loaded.
GAUGES = {
    "waiting": ("bertsmith_queue_requests", "Requests that wait or are at work."),
    "tokens": ("bertsmith_queue_tokens", "Tokens that wait to be read."),
    "seconds": ("bertsmith_queue_wait_seconds", "How long a short request would take now."),
    "speed": ("bertsmith_inference_tokens_per_second", "How fast the last batches were read."),
}
COUNTERS = {
    "batches": ("bertsmith_batches", "Batches that were run."),
    "batch_rows": ("bertsmith_batch_rows", "Rows of these batches."),
    "batch_tokens": ("bertsmith_batch_tokens", "Tokens of these batches."),
}
REJECTED = frozenset({"overloaded", "large", "slow", "key", "media", "unavailable", "timeout", "gone"})


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ("route", "model")
        self.requests = Counter(
            "bertsmith_requests", "Requests by how they ended.", (*labels, "status"), registry=registry
        )
        self.rejected = Counter("bertsmith_rejected", "Requests that were turned away.", ("reason",), registry=registry)
        self.in_flight = Gauge(
            "bertsmith_requests_in_flight", "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )
        self.duration = Histogram(
            "bertsmith_request_duration_seconds", "From the first byte read to the last byte sent.", labels,
            registry=registry, buckets=SECONDS,
        )  # fmt: skip
        self.queue = Histogram(
            "bertsmith_request_queue_seconds", "How long the work of a request waited.", ("model",),
            registry=registry, buckets=SECONDS,
        )  # fmt: skip
        self.inference = Histogram(
            "bertsmith_request_inference_seconds", "How long its batches took.", ("model",),
            registry=registry, buckets=SECONDS,
        )  # fmt: skip
        self.inputs = Counter("bertsmith_inputs", "Texts that were asked about.", ("model",), registry=registry)
        self.tokens = Counter("bertsmith_tokens", "Tokens that were read.", ("model",), registry=registry)
        self.truncated = Counter(
            "bertsmith_truncated_tokens", "Tokens of inputs too long, not read.", ("model",), registry=registry
        )
        self.received = Counter("bertsmith_received_bytes", "Bytes of bodies.", registry=registry)
        self._children: dict[tuple[Any, ...], Any] = {}

    def _get(self, metric: Any, *labels: str) -> Any:
        """The series with these labels; prometheus_client takes longer to find it. The labels are of closed sets."""
        key = (metric, *labels)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = metric.labels(*labels)
        return found

    def count(self, record: Record, status: int, seconds: float) -> None:
        model = record.replies[0].model if record.replies else ""
        self._get(self.requests, record.route, model, str(status)).inc()
        self._get(self.duration, record.route, model).observe(seconds)
        self.received.inc(record.read)
        if record.complaint in REJECTED:
            self._get(self.rejected, record.complaint).inc()
        if not record.replies:
            return
        self._get(self.inputs, model).inc(record.inputs)
        for reply in record.replies:
            self._get(self.queue, reply.model).observe(reply.queued)
            self._get(self.inference, reply.model).observe(reply.worked)
            self._get(self.tokens, reply.model).inc(reply.tokens)
            self._get(self.truncated, reply.model).inc(sum(reply.truncated))

    def tell(self, backend: Backend) -> bytes:
        """Whichever process is asked, the counts are those of all; how busy the models are is theirs alone."""
        registry = self.registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        state = CollectorRegistry()
        state.register(_State(backend))
        if registry is self.registry:
            ProcessCollector(registry=state)
        return generate_latest(registry) + generate_latest(state)


class _State(Collector):
    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def collect(self) -> Iterable[Metric]:
        ready = self.backend.is_ready()
        yield GaugeMetricFamily("bertsmith_ready", "1 where a request would be answered now.", float(ready))
        load = self.backend.load() if ready else {}
        for name, (metric, sentence) in GAUGES.items():
            if name in load:
                yield GaugeMetricFamily(metric, sentence, float(load[name]))
        for name, (metric, sentence) in COUNTERS.items():
            if name in load:
                yield CounterMetricFamily(metric, sentence, float(load[name]))


_shared: list[Metrics] = []


def make_metrics() -> Metrics:
    """Each app's own; but one for all apps of a process whose counts lie in files, which know no apps."""
    if FOLDER not in os.environ:
        return Metrics()
    if not _shared:
        _shared.append(Metrics())
    return _shared[0]
