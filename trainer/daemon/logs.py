"""Log format of the trainer: lines of text, or one JSON object a line.

    log.info("claimed proposal=%s attempt=%d", id, attempt)

    text    2026-03-01 12:00:00,123 INFO claimed proposal=s#00003 attempt=1
    json    {"time": "2026-03-01T12:00:00.123Z", "level": "info", "event": "claimed", "worker": …,
             "proposal": "s#00003", "study": "s", "attempt": 1}

Fields come from the template, each `name=%…`, never from the formatted text: a value may hold any
character, and keeps its type. The text before the first field is the event.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from archive.values import is_non_finite, mapped

LogFormat = Literal["text", "json"]

_PLACE = re.compile(r"(?:(?P<name>\w+)=)?%(?P<form>%|[-#0 +]*\d*(?:\.\d+)?[a-zA-Z])")


def configure(
    form: LogFormat = "text", *, worker: str | None = None, stream: TextIO | None = None
) -> None:
    """Send the log of this process to a stream.

    Args:
        form: `text` or `json`.
        worker: Id of the worker in each JSON line.
        stream: Destination; stderr if None.
    """
    handler = logging.StreamHandler(stream)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter(worker) if form == "json" else text)
    # Other packages log each of their requests at INFO; their warnings concern the trainer's
    # operator.
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("archive").setLevel(logging.INFO)
    # The driver warns of every outage, which the trainer survives and logs itself.
    logging.getLogger("neo4j").setLevel(logging.ERROR)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON.

    Args:
        worker: Id of the worker in every line.
    """

    def __init__(self, worker: str | None = None) -> None:
        super().__init__()
        self.worker = worker

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one JSON object without line breaks."""
        event, fields = _event_of(record)
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[
                :-6
            ]
            + "Z",
            "level": record.levelname.lower(),
            "event": event,
        }
        if self.worker is not None:
            line["worker"] = self.worker

        line |= fields
        if isinstance(proposal := fields.get("proposal"), str) and "#" in proposal:
            line.setdefault("study", proposal.rpartition("#")[0])

        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)

        return json.dumps(mapped(line, _number_or_name), ensure_ascii=False, default=str)


def _event_of(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Return the event and its fields; with an unnamed value, the whole text is the field
    `message`.
    """
    template = str(record.msg)
    values = record.args
    places = [place for place in _PLACE.finditer(template) if place["form"] != "%"]
    if not isinstance(values, tuple) or len(places) != len(values):
        return record.getMessage(), {}

    event = template[: places[0].start()].strip(" :,") if places else template
    fields = {
        place["name"]: value for place, value in zip(places, values, strict=True) if place["name"]
    }
    if len(fields) < len(places):
        fields["message"] = record.getMessage()

    return event.replace("%%", "%"), fields


def _number_or_name(value: Any) -> Any:
    # Many log readers fail on NaN.
    return str(value) if is_non_finite(value) else value
