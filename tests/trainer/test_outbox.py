"""Results on their way: kept until they have arrived, whatever the archive or the disk does."""

from __future__ import annotations

import pytest

from archive.errors import StoreUnavailableError, UnknownNameError
from archive.records import Checkpoint, Result
from archive.trainer.outbox import Outbox, Parcel

RESULT = Result(
    0.9,
    {"test_accuracy": 0.8},
    {"epoch": [1.0, 2.0], "valid_loss": [0.5, float("nan")]},
    epochs=2,
    seconds=1.5,
    seed=7,
    device="cpu",
    environment={"threads": 2},
    checkpoint=Checkpoint("file:///a", "ab", 3),
)


class Archive:
    """Takes results, or is away, or knows nothing of them."""

    def __init__(self):
        self.taken, self.error = {}, None

    def complete(self, proposal, token, result):
        if self.error:
            raise self.error
        first = proposal not in self.taken
        self.taken.setdefault(proposal, (token, result))
        return first


@pytest.fixture
def archive():
    return Archive()


@pytest.fixture
def outbox(tmp_path):
    return Outbox(tmp_path / "outbox", "embedded")


def files(outbox):
    return sorted(path.suffix for path in outbox.folder.iterdir())


def test_a_result_arrives_whole_and_is_forgotten(outbox, archive):
    outbox.put(Parcel("s#00001", "token", RESULT))
    assert outbox.deliver(archive.complete) == 1
    token, result = archive.taken["s#00001"]
    assert token == "token"
    assert str(result) == str(RESULT)  # a nan is not equal to itself
    assert files(outbox) == []
    assert outbox.deliver(archive.complete) == 0


def test_what_an_archive_that_is_away_did_not_take_waits(outbox, archive):
    for number in range(2):
        outbox.put(Parcel(f"s#{number}", "token", RESULT))
    archive.error = StoreUnavailableError("away")
    with pytest.raises(StoreUnavailableError):
        outbox.deliver(archive.complete)
    assert files(outbox) == [".json", ".json"]
    archive.error = None
    assert Outbox(outbox.folder, "embedded").deliver(archive.complete) == 2


def test_a_result_that_came_second_is_forgotten_too(outbox, archive):
    archive.taken["s#1"] = ("other", RESULT)
    outbox.put(Parcel("s#1", "token", RESULT))
    assert outbox.deliver(archive.complete) == 0
    assert files(outbox) == []


def test_a_refused_result_is_set_aside_not_thrown_away(outbox, archive):
    archive.error = UnknownNameError("proposal", "s#1", ())
    outbox.put(Parcel("s#1", "token", RESULT))
    assert outbox.deliver(archive.complete) == 0
    assert files(outbox) == [".refused"]


def test_results_for_another_archive_are_left_alone(outbox, archive):
    outbox.put(Parcel("s#1", "token", RESULT))
    assert Outbox(outbox.folder, "neo4j://other").deliver(archive.complete) == 0
    assert files(outbox) == [".json"]


def test_half_a_file_stops_nothing(outbox, archive):
    outbox.put(Parcel("s#1", "token", RESULT))
    (outbox.folder / "0.json").write_text('{"archive": "embedded", "prop')
    assert outbox.deliver(archive.complete) == 1


def test_a_full_disk_costs_no_result(tmp_path, archive):
    (tmp_path / "outbox").write_text("a file where the folder should be")
    outbox = Outbox(tmp_path / "outbox", "embedded")
    outbox.put(Parcel("s#1", "token", RESULT))
    assert outbox.deliver(archive.complete) == 1
    assert outbox.deliver(archive.complete) == 0
