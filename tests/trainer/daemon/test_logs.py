"""The trainer's log as JSON."""

from __future__ import annotations

import io
import json
import logging
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.trainer.daemon.logs import JsonFormatter, configure


def line(
    message: str, *values: object, level: int = logging.INFO, worker: str | None = "w", **more
) -> dict:
    record = logging.LogRecord(
        "archive.trainer", level, __file__, 1, message, values, more.get("exc_info")
    )
    record.created = 1_700_000_000.25
    text = JsonFormatter(worker).format(record)
    assert "\n" not in text
    return json.loads(text)


def test_fields_keep_their_types_and_the_rest_is_the_event():
    assert line("claimed proposal=%s attempt=%d pid=%s", "digits#00007", 2, None) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "event": "claimed",
        "worker": "w",
        "proposal": "digits#00007",
        "study": "digits",
        "attempt": 2,
        "pid": None,
    }


@pytest.mark.parametrize(
    ("message", "values", "told"),
    [
        (
            "failed proposal=%s reason=%r",
            ("s#1", "x=3 y=%s"),
            {"event": "failed", "reason": "x=3 y=%s"},
        ),
        (
            "result not on disk reason=%r",
            ("full",),
            {"event": "result not on disk", "reason": "full"},
        ),
        (
            "complete value=%.6g first=%s",
            (0.25, True),
            {"event": "complete", "value": 0.25, "first": True},
        ),
        (
            "unreadable result file=%s",
            (Path("/a/b"),),
            {"event": "unreadable result", "file": "/a/b"},
        ),
        ("100%% of it slots=%d", (3,), {"event": "100% of it", "slots": 3}),
        ("nothing to add", (), {"event": "nothing to add"}),
    ],
)
def test_templates(message, values, told):
    assert told.items() <= line(message, *values).items()


def test_unnamed_value_is_in_the_message():
    told = line("store is unreachable, will retry: %s", "no server answers")
    assert told["event"] == "store is unreachable, will retry"
    assert told["message"] == "store is unreachable, will retry: no server answers"


def test_a_study_may_have_any_name_that_a_proposal_of_it_has():
    assert line("claimed proposal=%s", "a b#00001")["study"] == "a b"
    assert "study" not in line("claimed proposal=%s", "no number")
    assert line("started study=%s", "given")["study"] == "given"


def test_a_traceback_is_part_of_the_line():
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        told = line(
            "observer failed event=%s",
            "X",
            level=logging.ERROR,
            exc_info=(ValueError, error, error.__traceback__),
        )

    assert told["level"] == "error"
    assert told["exception"].endswith("ValueError: first\nsecond")


@given(st.text(), st.one_of(st.text(), st.floats(), st.integers(), st.none()))
def test_any_value_makes_one_line_that_json_can_read(text, value):
    told = line("event text=%s value=%s", text, value, worker=None)
    assert told["text"] == text
    finite = not isinstance(value, float) or math.isfinite(value)
    assert told["value"] == (value if finite else str(value))


def test_template_with_wrong_values_is_an_error_as_in_text():
    with pytest.raises(TypeError):
        line("claimed proposal=%s attempt=%d", "s#1")


def test_one_object_a_line_on_a_stream():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter("w"))
    logger = logging.Logger("own")
    logger.addHandler(handler)
    logger.info("claimed proposal=%s", "s#1")
    logger.warning("failed proposal=%s reason=%r", "s#1", "a\nb")
    assert [json.loads(each)["event"] for each in stream.getvalue().splitlines()] == [
        "claimed",
        "failed",
    ]


@pytest.fixture
def levels():
    """Put back what a test makes of the loggers."""
    root = logging.getLogger()
    ours = logging.getLogger("archive")
    levels = root.level, ours.level
    yield
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def test_warnings_of_other_packages_are_logged(levels, monkeypatch):
    # A new process has none; pytest has its own.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    stream = io.StringIO()
    configure("json", worker="w", stream=stream)
    logging.getLogger("archive.trainer").info("claimed proposal=%s", "s#1")
    logging.getLogger("botocore.credentials").info("Found credentials in environment variables.")
    logging.getLogger("botocore.retry").warning("retrying")
    events = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert events == ["claimed", "retrying"]
