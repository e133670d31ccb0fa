"""Notes and tags of studies and architectures: kept by dumps, limited, and removed when they are
empty."""

import pytest

from archive.errors import UnknownNameError, UsageError
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.store import notes
from archive.store.notes import UserNote
from tests.conftest import wipe
from tests.support.stores import cells, evaluate

pytestmark = pytest.mark.every_server


def test_notes_are_stored_kept_by_a_dump_and_removed(archive, tmp_path):
    evaluate(archive, [0.5])
    owners = (("Study", "study"), ("Architecture", cells(1)[0].key))
    for label, id_ in owners:
        assert notes.read(archive.connection, label, id_) == UserNote()
        stored = notes.write(
            archive.connection, label, id_, "look here", ["second", " first", "second", " "]
        )
        assert (
            stored
            == UserNote("look here", ("first", "second"))
            == notes.read(archive.connection, label, id_)
        )

    dump(archive.connection, tmp_path / "file")
    wipe(archive.connection)
    load(archive.connection, tmp_path / "file")
    for label, id_ in owners:
        assert notes.read(archive.connection, label, id_) == UserNote(
            "look here", ("first", "second")
        )
        notes.write(archive.connection, label, id_, "", [])

    assert archive.query(
        "MATCH (n) WHERE n.note IS NOT NULL OR n.tags IS NOT NULL RETURN count(n)"
    ).rows == [(0,)]


def test_notes_have_limits_and_owners(archive):
    evaluate(archive, [0.5])
    for text, tags in (("x" * 10_001, []), ("", ["x" * 51]), ("", map(str, range(21)))):
        with pytest.raises(UsageError, match="at most"):
            notes.write(archive.connection, "Study", "study", text, list(tags))

    with pytest.raises(UnknownNameError, match="known: study"):
        notes.write(archive.connection, "Study", "none", "x", [])

    with pytest.raises(UnknownNameError):
        notes.read(archive.connection, "Architecture", "none")


def test_a_note_that_the_writer_has_not_seen_is_not_replaced(archive):
    evaluate(archive, [0.5])

    def write(text, tags, seen=None):
        return notes.write(archive.connection, "Study", "study", text, tags, seen=seen)

    first = write("first", ["b", "a"], UserNote())
    with pytest.raises(UsageError, match=r"to 'first' with the tags a, b"):
        write("second", [], UserNote())

    # A write that has lost its acknowledgement runs again.
    assert write("first", ["a", "b"], UserNote()) == first
    assert write("second", [], first) == UserNote("second")
    assert (
        write("", [], UserNote("second"))
        == UserNote()
        == notes.read(archive.connection, "Study", "study")
    )
    assert write("third", ["a"]) == notes.read(archive.connection, "Study", "study")
