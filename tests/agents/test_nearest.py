"""The nearest architectures of an archive: exact, up to date, and the same with and without the
file."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from archive import cache, kernels, spaces
from archive.agents import similar
from archive.agents.nearest import Nearest
from archive.architecture import codec, operations
from archive.architecture.graph import Architecture, Layer
from archive.errors import UnknownNameError, UsageError
from tests.support.networks import torch_nets
from tests.support.stores import cells, evaluate


@pytest.fixture
def home(archive):
    """Where the server's settings keep files, without what earlier tests left."""
    folder = archive.connection.settings.home / "cache" / "nearest"
    for file in folder.glob("*"):
        file.unlink()

    return folder


@pytest.fixture
def filled(archive, home):
    archive.architectures.add(cells(40))
    return archive


def by_hand(network, others, kind="otmann", **settings):
    """Return (distance, key) of all others, nearest first, from the kernel itself."""
    kernel = kernels.get(kind, **settings)
    values = kernel.distances([network], others).stack[: kernel.unnormalised, 0].mean(axis=0)
    return sorted(
        (round(float(value), 9), other.key) for value, other in zip(values, others, strict=True)
    )


def shown(similar):
    return [(round(one.distance, 9), one.key) for one in similar.neighbours]


@pytest.mark.parametrize(
    ("kind", "settings"), [("otmann", {}), ("tree-wasserstein", {"n": 2}), ("edit", {"lam": 0.5})]
)
def test_the_nearest_are_those_of_the_kernel(filled, kind, settings):
    first, *others = cells(40)
    near = similar(filled, first.key, 6, kind, **settings)
    exact = by_hand(first, others, kind, **settings)
    assert [distance for distance, _ in shown(near)] == [distance for distance, _ in exact[:6]]
    assert set(shown(near)) <= set(exact)
    assert (near.exact, near.certain, near.among) == (True, 6, 39)
    # Equal distances stand in the order of the keys.
    assert shown(near) == sorted(shown(near))


def test_a_network_that_is_not_there_and_the_beginning_of_a_key(filled):
    stranger = cells(41)[40]
    near = similar(filled, stranger, 3)
    assert [one for one, _ in shown(near)] == [one for one, _ in by_hand(stranger, cells(40))[:3]]
    assert len(filled.architectures.get_many([stranger.key])) == 0
    key = cells(1)[0].key
    assert similar(filled, key[:12], 3) == similar(filled, cells(1)[0], 3)


def test_imported_networks_have_neighbours(archive, home):
    """Their layers have attributes, and their edges arguments, which the distance needs from the
    server."""
    first, *others = torch_nets.classifiers()
    archive.architectures.add([first, *others, *cells(3)])
    near = similar(archive, first.key, 9)
    assert shown(near) == by_hand(first, others)
    assert (near.exact, near.among) == (True, len(others))


def test_what_is_added_is_found(filled):
    search = Nearest(filled)
    stranger = cells(41)[40]
    before = search.similar(stranger, 40)
    filled.architectures.add([stranger, cells(60)[50]])
    after = search.similar(stranger, 60)
    assert (before.among, after.among) == (40, 41)
    assert {one.key for one in after.neighbours} - {one.key for one in before.neighbours} == {
        cells(60)[50].key
    }


@pytest.mark.every_server
def test_only_what_a_study_has_evaluated(filled):
    evaluate(filled, [0.5, 0.75, 0.25], "some")
    near = similar(filled, cells(40)[39], 9, study="some")
    assert {one.key for one in near.neighbours} == {one.key for one in cells(3)}
    assert [one.evaluations for one in near.neighbours] == [1, 1, 1] and near.among == 3
    with pytest.raises(UnknownNameError, match="study"):
        similar(filled, cells(1)[0], study="none")


def test_other_spaces_have_no_distance(filled):
    networks = spaces.get("mlp").initial_pool()[:3]
    filled.architectures.add(networks)
    near = similar(filled, networks[0].key)
    assert {one.key for one in near.neighbours} == {one.key for one in networks[1:]}


def test_the_file_is_a_copy_and_nothing_more(filled, home, monkeypatch):
    monkeypatch.setattr(cache, "WORTH", 10)
    asked = cells(40)[7].key
    first = Nearest(filled).similar(asked, 5)
    (file,) = home.glob("*.npz")
    reads = []
    monkeypatch.setattr(
        type(filled.architectures), "get_many", lambda self, keys: reads.append(list(keys)) or {}
    )
    assert Nearest(filled).similar(cells(40)[7], 5) == first
    assert reads == []
    monkeypatch.undo()
    for broken in (b"", file.read_bytes()[:300], b"PK\x03\x04 not a file of numbers"):
        file.write_bytes(broken)
        assert Nearest(filled).similar(asked, 5) == first

    assert not list(home.glob("*.part"))


def test_an_index_of_another_package_or_vocabulary_is_not_kept(filled, home, monkeypatch):
    monkeypatch.setattr(cache, "WORTH", 10)

    monkeypatch.setattr(type(kernels.get("otmann")), "__module__", "other.kernels")
    Nearest(filled).similar(cells(40)[7], 5)
    assert not list(home.glob("*.npz"))
    monkeypatch.undo()
    monkeypatch.setattr(cache, "WORTH", 10)
    Nearest(filled).similar(cells(40)[7], 5)
    assert len(list(home.glob("*.npz"))) == 1
    other = replace(operations.vocabulary("nasbench201"), dead_ends=False)
    monkeypatch.setitem(operations._vocabularies, "nasbench201", other)
    Nearest(filled).similar(cells(40)[7], 5)
    assert len(list(home.glob("*.npz"))) == 2


def test_an_archive_that_was_emptied_behind_the_index(filled, monkeypatch):
    monkeypatch.setattr(cache, "WORTH", 10)
    search = Nearest(filled)
    search.similar(cells(40)[7], 5)
    filled.query("MATCH (a:Architecture) DETACH DELETE a", write=True)
    filled.architectures.add(cells(80)[40:])
    near = search.similar(cells(40)[7], 5)
    assert {one.key for one in near.neighbours} <= {one.key for one in cells(80)[40:]} and len(
        near.neighbours
    ) == 5


def test_one_component(filled):
    near = similar(filled, cells(1)[0], 4, component="otmann_normalised:0.8")
    stack = kernels.get("otmann").distances([cells(1)[0]], cells(40)[1:]).stack[7, 0]
    np.testing.assert_allclose([one.distance for one in near.neighbours], np.sort(stack)[:4])


def test_what_cannot_be_asked(filled):
    with pytest.raises(UsageError, match="got 0"):
        similar(filled, cells(1)[0], 0)

    with pytest.raises(UnknownNameError, match="kernel"):
        similar(filled, cells(1)[0], kernel="otman")

    with pytest.raises(UnknownNameError, match="architecture"):
        similar(filled, "0" * 32)


def test_networks_that_the_kernel_refuses_are_counted(archive, home):
    chain = [Layer("ip"), *(Layer("relu", 8) for _ in range(400)), Layer("linear"), Layer("op")]
    long = Architecture("mlp", chain, [(at, at + 1) for at in range(len(chain) - 1)])
    short = spaces.get("mlp").initial_pool()[:3]
    archive.architectures.add([long, *short])
    near = similar(archive, short[0], kernel="gromov-wasserstein")
    assert (len(near.neighbours), near.among, near.left_out) == (2, 2, 1)
    assert similar(archive, short[0]).left_out == 0


def test_the_command(filled, store_settings, home):
    from click.testing import CliRunner

    from archive.cli.main import archive as command

    if not store_settings.embedded:
        pytest.skip("the command line takes a password from a file or a prompt")

    at = ["--home", str(store_settings.home), "arch", "nearest"]
    first, *others = cells(40)
    answer = CliRunner().invoke(command, [*at, first.key[:10], "--k", "4", "--json"])
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    exact = by_hand(first, others)[:4]
    assert [round(row["distance"], 9) for row in document["neighbours"]] == [
        distance for distance, _ in exact
    ]
    assert (document["certain"], document["among"]) == (4, 39)
    cell = codec.to_nasbench201(first)
    table = CliRunner().invoke(
        command, [*at, cell, "--k", "2", "--kind", "tree-wasserstein", "--set", "n=2"]
    )
    assert table.exit_code == 0, table.output
    assert "evaluations" in table.output and len(table.output.strip().splitlines()) == 4
