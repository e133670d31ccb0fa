"""`archive db gc` on each server: unneeded weights are removed, all others stay."""

from __future__ import annotations

import json

import pytest

from archive.store.records import Result
from archive.trainer.storage import weights_store
from tests.support.commands import shell
from tests.support.stores import cells, propose


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


@pytest.fixture
def kept(archive, tmp_path):
    """Three evaluations with weights in a folder of the test's own."""
    propose(archive, cells(3))
    found = []
    for value in (0.1, 0.9, 0.5):
        claim = archive.proposals.claim("w", study="study")
        found.append(weights_store.write(tmp_path / "weights", f"{value}".encode()))
        archive.proposals.complete(claim.id, claim.token, Result(value, weights=found[-1]))

    return found


def test_a_dry_run_names_what_would_go_and_a_run_removes_it(user, kept, tmp_path):
    options = (
        "db",
        "gc",
        "--keep-best",
        "1",
        "--keep-within",
        "0",
        "--weights",
        str(tmp_path / "weights"),
    )
    told = user.types(*options, "--dry-run")
    assert sorted(line.split()[3] for line in told.stdout.splitlines()) == sorted(
        [kept[0].uri, kept[2].uri]
    )
    assert "would remove 2 files" in told.stderr and "kept: 1 best" in told.stderr
    assert all(weights_store.exists(one.uri) for one in kept)
    done = json.loads(user.types(*options, "--json").stdout)
    assert (set(done["removed"]), done["kept"], done["freed_bytes"]) == (
        {kept[0].uri, kept[2].uri},
        {"best": 1},
        6,
    )
    assert [weights_store.exists(one.uri) for one in kept] == [False, True, False]


def test_by_default_it_looks_where_trainers_keep_weights_and_young_ones_stay(user, kept, tmp_path):
    assert "removed 0 files" in user.types("db", "gc").stderr
    told = user.types("db", "gc", "--keep-best", "0", "--weights", str(tmp_path / "weights"))
    assert (told.stdout, "kept: 3 young" in told.stderr) == ("", True)


def test_a_place_that_cannot_be_used_is_one_line(user):
    told = user.types("db", "gc", "--weights", "carrier-pigeon://loft", code=2)
    assert "carrier-pigeon" in told.stderr
