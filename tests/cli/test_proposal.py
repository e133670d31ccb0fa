"""`archive proposal show|cancel|retry`, as it is typed."""

from __future__ import annotations

import json

import pytest

from archive.store.records import Result, State
from tests.support.commands import shell
from tests.support.stores import cells, propose

LONG = 600.0


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def claim(archive):
    return archive.proposals.claim("w", study="study", lease_seconds=LONG)


def states(archive):
    return [proposal.state for proposal in archive.proposals.list("study")]


def test_all_that_is_known_of_one(archive, user):
    propose(archive, cells(2))
    held = claim(archive)
    archive.proposals.fail(held.id, held.token, "crash one", retry=True, log="line 1\nline 2")
    held = claim(archive)
    archive.proposals.complete(
        held.id, held.token, Result(0.5, {"accuracy": 0.5}, epochs=7, seconds=3.0)
    )
    told = user.types("proposal", "show", "study#0").stdout
    assert held.architecture.key in told and "accuracy" in told
    events = [line.split()[3] for line in told.splitlines() if "  #0 " in line]
    assert events == ["proposed", "claimed", "failed", "claimed", "complete"]
    assert "    | line 2" in told
    shown = json.loads(user.types("proposal", "show", held.id, "--json").stdout)
    assert (shown["proposal"], shown["state"], shown["value"], shown["epochs"]) == (
        "study#00000",
        "complete",
        0.5,
        7,
    )
    assert [entry["event"] for entry in shown["entries"]] == events
    assert shown["entries"][2]["reason"] == "crash one"


def test_cancelled_and_tried_again(archive, user):
    propose(archive, cells(3))
    held = claim(archive)
    done = user.types("proposal", "cancel", "study#0", "study#00002", "--reason", "wrong space")
    assert done.stderr.splitlines() == ["study#00000 cancelled", "study#00002 cancelled"]
    assert states(archive) == [State.FAILED, State.WAITING, State.FAILED]
    again = user.types("proposal", "cancel", "study#0")
    assert again.stderr.splitlines() == ["study#00000 was cancelled already"]
    assert archive.proposals.get(held.id).reason == "cancelled: wrong space"
    assert "cancelled: wrong space" in user.types("study", "log", "study").stdout
    shown = user.types("proposal", "show", "study#2").stdout
    assert ["state", "cancelled"] in [line.split() for line in shown.splitlines()]
    user.types("proposal", "retry", "study#0")
    assert states(archive) == [State.WAITING, State.WAITING, State.FAILED]
    assert "waits already" in user.types("proposal", "retry", "study#0").stderr


def test_what_cannot_be_done_is_one_line_and_changes_nothing(archive, user):
    propose(archive, cells(3))
    held = claim(archive)
    archive.proposals.complete(held.id, held.token, Result(0.5))
    before = states(archive)
    for arguments, fragment in (
        (
            ("cancel", "study#1", "study#0"),
            "study#00000 cannot be cancelled: it has its result (state COMPLETE)",
        ),
        (("retry", "study#0"), "study#00000 cannot be tried again: it has its result"),
        (("show", "study#7"), "unknown proposal 'study#00007': archive study show lists"),
        (("cancel", "study#7"), "unknown proposal 'study#00007'"),
        (("show", "study"), "named STUDY#NUMBER, got 'study'"),
        (("show", "study#" + "9" * 5000), "named STUDY#NUMBER, got 'study#9999"),
    ):
        done = user.types("proposal", *arguments, code=2)
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert fragment in line

    assert states(archive) == before
