"""Messages on the pipe of a trial: read as they arrive; other data are refused at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.store.records import Result, Weights
from archive.trainer.trial import messages
from archive.trainer.trial.messages import (
    EpochReport,
    FrameReader,
    Heartbeat,
    TrialFailed,
    TrialFinished,
    TrialInterrupted,
    UnreadableFrameError,
    encode,
)

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
RESULTS = st.builds(
    Result,
    value=FLOATS,
    metrics=st.dictionaries(st.text(), FLOATS, max_size=3),
    curve=st.dictionaries(st.text(), st.lists(FLOATS, max_size=3), max_size=3),
    epochs=st.none() | st.integers(0, 9),
    environment=st.dictionaries(st.text(), st.text() | st.integers(), max_size=3),
    weights=st.none() | st.builds(Weights, st.text(), st.text(), st.integers(0)),
)
MESSAGES = st.one_of(
    st.builds(EpochReport, st.dictionaries(st.text(), FLOATS, max_size=3), st.booleans()),
    st.builds(TrialFailed, st.text(), st.booleans(), st.text()),
    st.builds(TrialInterrupted, st.booleans(), st.integers(0, 9)),
    st.builds(TrialFinished, RESULTS),
    st.just(Heartbeat()),
)


@given(st.lists(MESSAGES, max_size=4), st.integers(1, 40))
def test_messages_arrive_whole_in_any_parts(messages, size):
    sent = b"".join(map(encode, messages))
    reader = FrameReader()
    arrived = []
    for at in range(0, len(sent), size):
        reader.feed(sent[at : at + size])
        while (message := reader.next()) is not None:
            arrived.append(message)

    assert arrived == messages
    assert reader.next() is None


@given(st.binary(min_size=4))
def test_other_bytes_are_no_message(content):
    reader = FrameReader()
    reader.feed(content)
    if not content.startswith(messages._MAGIC):
        with pytest.raises(UnreadableFrameError, match="it begins with"):
            reader.next()


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"kind": "Path"}', b'{"kind": "EpochReport"}', b"\xff", b'"a"']
)
def test_a_frame_of_something_else_is_no_message(content):
    reader = FrameReader()
    reader.feed(messages._HEADER.pack(messages._MAGIC, len(content)) + content)
    with pytest.raises(UnreadableFrameError):
        reader.next()


def test_a_message_is_bounded():
    reader = FrameReader()
    reader.feed(messages._HEADER.pack(messages._MAGIC, messages.MOST_BYTES + 1))
    with pytest.raises(UnreadableFrameError, match="it has 134217729 bytes, more than"):
        reader.next()


def test_half_a_message_is_none_yet():
    reader = FrameReader()
    reader.feed(encode(Heartbeat())[:-1])
    assert reader.next() is None
    reader.feed(encode(Heartbeat())[-1:])
    assert reader.next() == Heartbeat()
