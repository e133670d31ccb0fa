"""HTTP server of the metrics.

    GET /metrics              Prometheus; 200 during an outage, with `archive_up 0`
    GET /queue[?study=NAME]   {"waiting": 12, "running": 3, "open": 15}, of all studies or one; 404 if it is
                              unknown, 503 during an outage
    GET /healthz              200 while the process serves

`/queue` is for autoscalers that read one number from JSON, such as KEDA's trigger `metrics-api`. An
autoscaler shows an error, and asks again: with 0 for a misspelt study it would start no trainer,
and nobody would see the reason. No login is needed, and nothing but numbers and names of studies is
served.

Metrics of Prometheus, one collection a scrape:

| metric `archive_…`                | labels       | meaning                                                 |
|-----------------------------------|--------------|---------------------------------------------------------|
| `up`                              |              | 1 while the database answers; without it, nothing below |
| `proposals`                       | study, state | open proposals: `waiting` or `running`                  |
| `oldest_waiting_proposal_seconds` | study        | age of the oldest waiting proposal                      |
| `trainers`                        | state        | trainers: `working`, `idle`, `resting` or `stale`       |
| `trainer_capacity`                |              | trials that live trainers can run at a time             |
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from archive import values
from archive.errors import SettingsError, UnknownNameError
from archive.metrics.reading import ArchiveReader, ArchiveReading

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PORT = 9465
"""Port of the metrics unless another one is given; trainers use 9464."""
PREFIX = "archive_"
TRAINER_STATES = ("working", "idle", "resting", "stale")
_NOTHING = ArchiveReading()


class MetricsServer:
    """The socket, and the server on it.

    Args:
        reader: Reader of the archive.
        address: Interface to listen on.
        port: TCP port; 0 picks a free one.

    Attributes:
        port: The port.
        url: Address of the metrics.

    Raises:
        SettingsError: The port or the address cannot be used.
    """

    def __init__(self, reader: ArchiveReader, address: str = "127.0.0.1", port: int = PORT) -> None:
        shown = values.in_url(address)
        try:
            self._server = make_server(
                address, port, application(reader), _ThreadingServer, _QuietHandler
            )
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise SettingsError(
                f"metrics cannot be served at {shown}:{port}: {why}; try another port or address"
            ) from None

        self.port = int(self._server.server_port)
        self.url = f"http://{shown}:{self.port}/metrics"

    def run(self) -> None:
        """Serve until `stop`."""
        with self._server:
            self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.shutdown()


def application(reader: ArchiveReader) -> WSGIApplication:
    """Return the WSGI application over a reader."""
    registry = CollectorRegistry()
    registry.register(ArchiveCollector(reader))
    metrics = make_wsgi_app(registry, disable_compression=True)
    routes: dict[str, Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]] = {
        "/metrics": metrics,
        "/queue": lambda environ, respond: _json(
            respond, *_queue(reader, environ.get("QUERY_STRING", ""))
        ),
        "/healthz": lambda environ, respond: _json(respond, HTTPStatus.OK, {"status": "ok"}),
    }

    def answer(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _json(respond, HTTPStatus.METHOD_NOT_ALLOWED, {"error": "only GET is served"})

        route = routes.get(environ.get("PATH_INFO", ""))
        if route is None:
            return _json(
                respond, HTTPStatus.NOT_FOUND, {"error": f"known paths: {', '.join(routes)}"}
            )

        return route(environ, respond)

    return answer


def _queue(reader: ArchiveReader, query: str) -> tuple[HTTPStatus, dict[str, Any]]:
    reading = reader.read()
    if reading.problem is not None:
        return HTTPStatus.SERVICE_UNAVAILABLE, {"error": reading.problem}

    studies = parse_qs(query, keep_blank_values=True).get("study")
    # A study without open proposals is no part of the reading.
    if unread := [study for study in studies or () if study not in reading.depths]:
        all_studies = reader.studies()
        if all_studies.problem is not None:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": all_studies.problem}

        if unknown := [study for study in unread if study not in all_studies.names]:
            return HTTPStatus.NOT_FOUND, {
                "error": str(UnknownNameError("study", unknown[0], all_studies.names))
            }

    waiting = 0
    running = 0
    for study, depth in reading.depths.items():
        if studies is None or study in studies:
            waiting += depth.waiting
            running += depth.running

    return HTTPStatus.OK, {"waiting": waiting, "running": running, "open": waiting + running}


def _json(respond: StartResponse, status: HTTPStatus, content: dict[str, Any]) -> Iterable[bytes]:
    body = json.dumps(content).encode()
    respond(
        f"{status.value} {status.phrase}",
        [("Content-Type", "application/json"), ("Content-Length", str(len(body)))],
    )
    return [body]


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    """A server that answers `/healthz` while another request waits for the database."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self.address_family = values.family_of(address[0])
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a failure, unless the client has left."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _QuietHandler(WSGIRequestHandler):
    """A handler without an access log, which would have one line per scrape."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing."""


class ArchiveCollector(Collector):
    """Collector of a registry of `prometheus_client`.

    Args:
        reader: Reader of the archive.
    """

    def __init__(self, reader: ArchiveReader) -> None:
        self._reader = reader

    def describe(self) -> list[Metric]:
        """Return the metrics without values: the registration does not wait for the database."""
        return [_up_metric(None), *_queue_metrics(_NOTHING), *_trainer_metrics(_NOTHING)]

    def collect(self) -> Iterator[Metric]:
        """Yield the present value of every metric."""
        reading = self._reader.read()
        yield _up_metric(reading.problem is None)
        if reading.problem is None:
            yield from _queue_metrics(reading)
            yield from _trainer_metrics(reading)


def _up_metric(answers: bool | None) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}up", "Whether the database answers.", answers)


def _queue_metrics(reading: ArchiveReading) -> Iterator[Metric]:
    proposals = GaugeMetricFamily(
        f"{PREFIX}proposals", "Open proposals.", labels=["study", "state"]
    )
    oldest = GaugeMetricFamily(
        f"{PREFIX}oldest_waiting_proposal_seconds",
        "Age of the oldest waiting proposal.",
        labels=["study"],
    )
    for study, depth in reading.depths.items():
        proposals.add_metric([study, "waiting"], depth.waiting)
        proposals.add_metric([study, "running"], depth.running)
        oldest.add_metric([study], depth.oldest_seconds)

    yield from (proposals, oldest)


def _trainer_metrics(reading: ArchiveReading) -> Iterator[Metric]:
    trainers = GaugeMetricFamily(f"{PREFIX}trainers", "Trainers by state.", labels=["state"])
    for state in TRAINER_STATES:
        trainers.add_metric([state], reading.trainers.get(state, 0))

    yield trainers
    yield GaugeMetricFamily(
        f"{PREFIX}trainer_capacity", "Trials that live trainers can run.", reading.slots
    )
