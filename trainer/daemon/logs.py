"""Log format of the trainer: lines of text, or one JSON object per line.

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

_SPECIFIER = re.compile(r"(?:(?P<name>\w+)=)?%(?P<form>%|[-#0 +]*\d*(?:\.\d+)?[a-zA-Z])")


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
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z",
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
    """Return the event and its fields; an unnamed value makes the text a field `message`."""
    template = str(record.msg)
    values = record.args
    specifiers = [match for match in _SPECIFIER.finditer(template) if match["form"] != "%"]
    if not isinstance(values, tuple) or len(specifiers) != len(values):
        return record.getMessage(), {}

    event = template[: specifiers[0].start()].strip(" :,") if specifiers else template
    fields: dict[str, Any] = {}
    for specifier, value in zip(specifiers, values, strict=True):
        if specifier["name"]:
            fields[specifier["name"]] = value

    if len(fields) < len(specifiers):
        fields["message"] = record.getMessage()

    return event.replace("%%", "%"), fields


def _number_or_name(value: Any) -> Any:
    # Many log readers fail on NaN.
    return str(value) if is_non_finite(value) else value
