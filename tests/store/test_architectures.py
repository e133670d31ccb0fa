"""Architectures on each server: complete, unique, and read back unchanged."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.layer_mass import total_mass
from archive.database.user_query import run_query
from archive.errors import UnknownNameError, UsageError
from archive.store import architectures as store
from archive.store.architectures import Architectures
from tests.support import strategies
from tests.support.stores import Forgetful, cells, count, everywhere


def graph_sizes(connection):
    return (
        count(connection, "(a:Architecture)"),
        count(connection, "(:Architecture)-[:HAS_LAYER]->(:Layer)"),
        count(connection, "(:Layer)-[:FEEDS]->(:Layer)"),
    )


def sizes_of(architectures):
    once = {architecture.key: architecture for architecture in architectures}.values()
    return (len(once), sum(len(a.layers) for a in once), sum(len(a.edges) for a in once))


@settings(suppress_health_check=list(HealthCheck))
@given(
    networks=st.lists(
        st.one_of(strategies.members("cnn"), strategies.members("mlp"), strategies.cells()),
        min_size=1,
        max_size=5,
    )
)
def test_a_network_is_read_back_in_canonical_form(connection, networks):
    Architectures(connection).add(networks)
    found = Architectures(connection).get_many(network.key for network in networks)
    assert found == {network.key: network.canonical for network in networks}


@pytest.mark.every_server
def test_every_layer_and_every_edge_can_be_asked_for(archive):
    (network,) = cells(1)
    archive.architectures.add([network])
    layers = archive.query(
        (
            "MATCH (:Architecture {key: $key})-[:HAS_LAYER]->(l) RETURN l.index, l.op, l.units, "
            "l.stride ORDER BY l.index"
        ),
        {"key": network.key},
    ).rows
    edges = archive.query(
        "MATCH (:Architecture {key: $key})-[:HAS_LAYER]->(a)-[:FEEDS]->(b) RETURN a.index, b.index",
        {"key": network.key},
    ).rows
    canonical = network.canonical
    assert [tuple(row) for row in layers] == [
        (index, layer.op, layer.units, layer.stride) for index, layer in enumerate(canonical.layers)
    ]
    assert sorted(tuple(row) for row in edges) == list(canonical.edges)


@pytest.mark.every_server
def test_settings_of_a_decoders_layers_are_properties(archive):
    network = spaces.get("decoder").initial_pool()[2]
    archive.architectures.add([network])
    rows = archive.query(
        (
            "MATCH (:Architecture {key: $key})-[:HAS_LAYER]->(l) WHERE l.kv_heads = 2 "
            "RETURN l.op, l.heads, l.window, count(*) ORDER BY l.op"
        ),
        {"key": network.key},
    ).rows
    assert list(map(tuple, rows)) == [("attention", 4, None, 2), ("sliding_attention", 4, 32, 2)]
    edges = archive.query(
        "MATCH (:Architecture {key: $key})-[:HAS_LAYER]->()-[e:FEEDS]->() "
        "RETURN count(e), count(e.arguments)",
        {"key": network.key},
    ).rows
    assert list(map(tuple, edges)) == [(len(network.edges), 0)]
    assert archive.architectures.get(network.key) == network.canonical


def test_properties_of_the_node(archive):
    network = cells(5)[-1]
    archive.architectures.add([network])
    details = archive.architectures.details(network.key)
    assert details["functional_key"] == network.functional_key
    assert (details["space"], details["depth"]) == (network.space, network.depth)
    assert (details["layers"], details["edges"]) == (len(network.layers), len(network.edges))
    assert details["mass"] == pytest.approx(total_mass(network))


def test_relabellings_are_one_network(archive, connection):
    network = cells(3)[-1]
    assert (
        archive.architectures.add([strategies.relabelled(network, seed) for seed in range(5)]) == 1
    )
    archive.architectures.add([strategies.relabelled(network, 9)])
    assert graph_sizes(connection) == sizes_of([network])


def test_adding_again_adds_nothing_even_if_no_answer_came(connection):
    architectures = Architectures(Forgetful(connection))
    architectures.add(cells(20))
    architectures.add(cells(30))
    assert graph_sizes(connection) == sizes_of(cells(30))


@pytest.mark.every_server
def test_many_writers_of_the_same_networks(open_connection, connection):
    writers = [Architectures(open_connection()) for _ in range(8)]
    everywhere(lambda i: writers[i].add(cells(40)[i * 2 : i * 2 + 24]))
    assert graph_sizes(connection) == sizes_of(cells(38))


def test_a_broken_transaction_leaves_nothing(connection):
    def work(tx):
        store.store(tx, cells(2))
        raise UsageError("stop")

    with pytest.raises(UsageError):
        connection.write(work)

    assert graph_sizes(connection) == (0, 0, 0)


@pytest.mark.parametrize(("limit", "most"), [("BATCH", 3), ("BATCH_LAYERS", 20)])
def test_more_than_one_batch(archive, connection, monkeypatch, limit, most):
    monkeypatch.setattr(store, limit, most)
    assert archive.architectures.add(cells(10)) == 10
    assert len(Architectures(connection).get_many(cell.key for cell in cells(10))) == 10


def test_unknown_keys_name_near_ones(archive):
    with pytest.raises(UnknownNameError, match="has none yet"):
        archive.architectures.get("0" * 32)

    (network,) = cells(1)
    archive.architectures.add([network])
    with pytest.raises(UnknownNameError, match=network.key):
        archive.architectures.get(network.key[:-1] + ("0" if network.key[-1] != "0" else "1"))

    with pytest.raises(UnknownNameError):
        archive.architectures.details("0" * 32)

    assert archive.architectures.get_many(["0" * 32]) == {}


def test_a_prefix_finds_the_one_key(archive):
    archive.architectures.add(cells(40))
    keys = sorted(cell.key for cell in cells(40))
    assert archive.architectures.find(keys[7]) == keys[7]
    assert archive.architectures.find(keys[7][:16]) == keys[7]
    with pytest.raises(UsageError, match="several"):
        archive.architectures.find("")

    with pytest.raises(UnknownNameError):
        archive.architectures.find("not-hexadecimal")


@pytest.mark.every_server
def test_a_morph_is_noted_once_with_its_operations(archive, connection):
    parent, child = cells(2)
    archive.architectures.record_morph(parent, child, ["widen", "deepen"])
    archive.architectures.record_morph(parent, child, ["skip"])
    archive.architectures.record_morph(parent, parent, [])
    assert run_query(
        connection, "MATCH (a)-[m:MORPHED_INTO]->(b) RETURN a.key, b.key, m.operations"
    ).rows == [(parent.key, child.key, ["widen", "deepen"])]
    assert archive.architectures.details(parent.key)["children"] == [child.key]
    assert archive.architectures.details(child.key)["parents"] == [parent.key]


@pytest.mark.every_server
def test_many_writers_of_one_morph(open_connection, connection):
    parent, *children = cells(4)
    writers = [Architectures(open_connection()) for _ in range(6)]

    def work(i):
        for child in children:
            writers[i].record_morph(parent, child, ["widen"])

    everywhere(work, 6)
    assert count(connection, "()-[:MORPHED_INTO]->()") == 3
