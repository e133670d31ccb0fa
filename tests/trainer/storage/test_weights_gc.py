"""Garbage collection of weights, on each server: files and records are removed together, and
weights in use stay."""

from __future__ import annotations

import os
import time
import uuid

import pytest

from archive.errors import WeightsError
from archive.store.records import Result, Weights
from archive.store.weights import Policy
from archive.trainer.storage import locations, weights_store
from archive.trainer.storage.garbage_collection import collect
from tests.support.stores import cells, known, propose

EVERYTHING = Policy(keep_best=0, grace_seconds=0)


@pytest.fixture(params=["folder", "memory"])
def root(request, tmp_path):
    return tmp_path / "weights" if request.param == "folder" else f"memory://{uuid.uuid4().hex}"


def train(archive, root, values, name="study"):
    """Complete one cell for each value, with a file of weights each; return their addresses."""
    propose(archive, cells(len(values)), name)
    kept = []
    for value in values:
        claim = archive.proposals.claim("w", study=name)
        kept.append(weights_store.write(root, f"{name} {value}".encode()))
        archive.proposals.complete(claim.id, claim.token, Result(value, weights=kept[-1]))

    return kept


def there(root):
    return {one.uri for one in weights_store.listed(root)}


def test_all_but_the_best_are_removed_from_store_and_disk(archive, root):
    low, high, middle = (one.uri for one in train(archive, root, [0.1, 0.9, 0.5]))
    found = collect(archive, root, Policy(1, 0))
    assert {*found.removed} == {low, middle}
    assert found.kept == {"best": 1}
    assert found.freed == len("study 0.1") * 2
    assert there(root) == known(archive) == {high}
    assert collect(archive, root, Policy(1, 0)).removed == {}


def test_dry_run_reports_the_same_and_removes_nothing(archive, root):
    train(archive, root, [0.1, 0.9, 0.5])
    promised = collect(archive, root, Policy(1, 0), dry_run=True)
    assert len(there(root)) == len(known(archive)) == 3
    done = collect(archive, root, Policy(1, 0))
    assert (done.removed, done.kept) == (promised.removed, promised.kept)


def test_young_weights_stay_by_default(archive, root):
    train(archive, root, [0.1] * 7)
    assert collect(archive, root).removed == {}
    assert collect(archive, root).kept == {"best": 1}
    train(archive, root, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "other")
    assert collect(archive, root).kept == {"best": 6, "young": 1}


def test_weights_that_a_running_proposal_may_inherit_stay(archive, root):
    kept = train(archive, root, [0.1, 0.2])
    child = cells(3)[-1]
    archive.architectures.record_morph(cells(1)[0], child, ["widen"])
    propose(archive, [child], "next")
    claim = archive.proposals.claim("w", study="next")
    found = collect(archive, root, EVERYTHING)
    assert ({*found.removed}, found.kept) == ({kept[1].uri}, {"in use": 1})
    assert weights_store.read(kept[0])
    archive.proposals.complete(claim.id, claim.token, Result(0.5))
    assert {*collect(archive, root, EVERYTHING).removed} == {kept[0].uri}


def test_weights_below_another_root_stay_recorded(archive, root):
    (kept,) = train(archive, root, [0.1])
    weights_store.remove(kept.uri)
    found = collect(archive, root, EVERYTHING)
    assert (found.removed, found.kept) == ({}, {"elsewhere": 1})
    assert archive.weights.of_evaluation("study#00000") == kept


def test_orphans_are_removed_only_on_request_and_when_old(archive, root):
    (kept,) = train(archive, root, [0.1])
    stray = weights_store.write(root, b"left behind")
    assert collect(archive, root, Policy(1, 0)).orphans == {}
    assert collect(archive, root, Policy(1, 3600), orphans=True).orphans == {}
    assert collect(archive, root, Policy(1, 0), orphans=True, dry_run=True).orphans == {
        stray.uri: stray.bytes
    }
    assert collect(archive, root, Policy(1, 0), orphans=True).orphans == {stray.uri: stray.bytes}
    assert there(root) == {kept.uri}


def test_killed_collection_leaves_an_orphan_without_a_record(archive, root, monkeypatch):
    (kept,) = train(archive, root, [0.1])

    def fail(uri):
        raise WeightsError(f"cannot remove the weights {uri}: killed")

    monkeypatch.setattr(weights_store, "remove", fail)
    with pytest.raises(WeightsError, match="killed"):
        collect(archive, root, EVERYTHING)

    monkeypatch.undo()
    assert archive.weights.of_evaluation("study#00000") is None
    assert there(root) == {kept.uri}
    assert collect(archive, root, EVERYTHING, orphans=True).orphans == {kept.uri: kept.bytes}


@pytest.mark.every_server
def test_age_of_a_file_is_its_modification_time(archive, tmp_path):
    stray = weights_store.write(tmp_path, b"left behind")
    path = locations.local_folder(stray.uri)
    os.utime(path, (time.time() - 7200,) * 2)
    assert collect(archive, tmp_path, Policy(1, 3600), orphans=True).orphans == {
        stray.uri: stray.bytes
    }


def test_weights_that_are_known_under_another_path_are_no_orphans(archive, tmp_path):
    (kept,) = train(archive, tmp_path / "weights", [0.1])
    (tmp_path / "link").symlink_to(tmp_path / "weights")
    found = collect(archive, tmp_path / "link", EVERYTHING, orphans=True)
    assert (found.removed, found.orphans) == ({}, {})
    assert weights_store.read(kept)


def test_files_that_no_trainer_has_named_are_not_touched(archive, tmp_path):
    train(archive, tmp_path, [0.1])
    others = [tmp_path / "v1" / "model.safetensors", tmp_path / "aa" / f"{'b' * 64}.safetensors"]
    for path in others:
        path.parent.mkdir()
        path.write_bytes(b"of a user")

    assert collect(archive, tmp_path, EVERYTHING, orphans=True).orphans == {}
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("sha256", ["0" * 64, "../../thesis"])
def test_forged_address_leads_to_no_removal(archive, tmp_path, sha256):
    thesis = tmp_path / "thesis.safetensors"
    thesis.write_bytes(b"years of work")
    uri = f"{weights_store.root_uri(tmp_path / 'weights')}../thesis.safetensors"
    propose(archive, cells(1), "sent")
    claim = archive.proposals.claim("w", study="sent")
    archive.proposals.complete(claim.id, claim.token, Result(0.1, weights=Weights(uri, sha256, 13)))
    (tmp_path / "weights").mkdir()
    found = collect(archive, tmp_path / "weights", EVERYTHING, orphans=True)
    assert (found.removed, found.kept) == ({}, {"elsewhere": 1})
    assert thesis.exists()
