"""Networks of the space `torch` on each server: attributes as properties, arguments of edges, dump
and load."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archive.architecture.graph import Architecture
from archive.architecture.open_graphs.operation_graphs import read_graph
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.store.architectures import Architectures
from archive.store.schema import add_blocks
from tests.conftest import wipe
from tests.support import strategies
from tests.support.networks import torch_nets
from tests.support.networks.block_nets import language_net
from tests.support.networks.cells import cell_documents
from tests.support.networks.torch_nets import chain, layer, residual

NAMES = ["", "body.act", "body", "body", ""]
"""Name of the module of each layer, two of them the same."""


@settings(suppress_health_check=list(HealthCheck))
@given(
    networks=st.lists(
        st.one_of(torch_nets.networks(), strategies.cells(), cell_documents().map(read_graph)),
        min_size=1,
        max_size=4,
    )
)
def test_a_network_is_read_back_in_canonical_form(connection, networks):
    Architectures(connection).add(networks)
    found = Architectures(connection).get_many(network.key for network in networks)
    assert found == {network.key: network.canonical for network in networks}


@pytest.mark.every_server
def test_attributes_and_arguments_can_be_asked_for(archive):
    archive.architectures.add([residual()])
    rows = archive.query(
        "MATCH (a:Architecture {space: 'torch'})-[:HAS_LAYER]->(c:Layer {op: 'convolution', "
        "padding: 1}) "
        "WHERE c.weight[2] = 3 AND c.bias IS NOT NULL RETURN c.units, c.stride, c.weight"
    ).rows
    assert rows == [(8, 2, [8, 3, 3, 3])]
    used = archive.query(
        "MATCH (p:Layer)-[f:FEEDS]->(c:Layer {op: 'convolution'}) RETURN p.op, f.arguments "
        "ORDER "
        "BY p.op"
    )
    assert used.rows == [("ip", [0]), ("mul", [0])]
    (free,) = archive.query(
        "MATCH (:Layer {op: 'ip'})-[f:FEEDS]->(:Layer {op: 'parameter'}) RETURN f.arguments"
    ).rows
    assert free == ([],)


@pytest.mark.every_server
def test_a_motif_is_found(archive):
    """What a skip around a convolution is in this space: its output and its input meet in a sum."""
    archive.architectures.add([residual(), chain(layer("relu"), layer("gelu"))])
    rows = archive.query(
        "MATCH (a:Architecture)-[:HAS_LAYER]->(before:Layer)-[:FEEDS]->(sum:Layer {op: 'add'}) "
        "MATCH (before)-[:FEEDS]->(:Layer {op: 'mul'})-[:FEEDS]->(:Layer {op: "
        "'convolution'})-[:FEEDS]->(sum) "
        "RETURN a.key, before.op"
    ).rows
    assert rows == [(residual().key, "relu")]


@pytest.mark.every_server
def test_attributes_named_like_properties_of_all_layers_keep_apart(archive):
    archive.architectures.add(
        [chain(layer("select", dim=1, index=2), layer("avg_pool2d", kernel_size=2, stride=[2, 1]))]
    )
    rows = archive.query(
        "MATCH (l:Layer) RETURN l.index, l.attribute_index, l.stride, l.attribute_stride ORDER "
        "BY l.index"
    )
    assert rows.rows[1:3] == [(1, 2, 1, None), (2, None, 1, [2, 1])]


def test_a_dump_has_everything(archive, connection, tmp_path):
    networks = [
        residual(),
        chain(layer("clamp", min="-inf", max=6), layer("view", size=["2*batch", "96"])),
    ]
    archive.architectures.add(networks)
    dump(connection, tmp_path / "all.jsonl.gz")
    wipe(connection)
    load(connection, tmp_path / "all.jsonl.gz")
    found = Architectures(connection).get_many(network.key for network in networks)
    assert found == {network.key: network.canonical for network in networks}


BLOCKS = (
    "MATCH (:Architecture)-[:HAS_BLOCK]->(b:Block {kind: 'transformer'}) "
    "RETURN b.section, b.heads, b.kv_heads, b.norm_place, b.mlp_ratio ORDER BY b.index"
)
LAYERS_OF_BLOCKS = (
    "MATCH (a:Architecture)-[:HAS_BLOCK]->(b:Block {kind: 'transformer'}) "
    "MATCH (a)-[:HAS_LAYER]->(l:Layer {op: 'scaled_dot_product_attention'}) "
    "WHERE l.block = b.index RETURN count(l)"
)


@pytest.mark.every_server
def test_blocks_can_be_asked_for_and_are_added_to_networks_without_them(archive, connection):
    archive.architectures.add([language_net(depth=2, kv_heads=2)])
    rows = [("stage 1", 4, 2, "pre", 4.0)] * 2
    assert archive.query(BLOCKS).rows == rows
    assert archive.query(LAYERS_OF_BLOCKS).rows == [(2,)]

    def forget(tx):
        tx.run("MATCH (b:Block) DETACH DELETE b").consume()
        tx.run("MATCH (l:Layer) SET l.block = null").consume()

    connection.write(forget)
    add_blocks(connection)
    add_blocks(connection)
    assert archive.query(BLOCKS).rows == rows
    assert archive.query(LAYERS_OF_BLOCKS).rows == [(2,)]


def test_names_of_modules_are_kept_and_no_part_of_the_key(archive, connection, tmp_path):
    plain = chain(layer("relu"), layer("gelu"), layer("gelu"))
    layers = [replace(inner, name=name) for inner, name in zip(plain.layers, NAMES, strict=True)]
    named = Architecture("torch", layers, plain.connections)
    assert named == plain and named.key == plain.key
    archive.architectures.add([named])
    dump(connection, tmp_path / "named.jsonl.gz")
    for _ in range(2):
        found = Architectures(connection).get(named.key)
        assert [inner.name for inner in found.layers] == NAMES
        query = "MATCH (l:Layer) RETURN l.module ORDER BY l.index"
        assert [row[0] or "" for row in archive.query(query).rows] == NAMES
        wipe(connection)
        load(connection, tmp_path / "named.jsonl.gz")


@pytest.mark.every_server
def test_a_thousand_layers_are_stored_and_read(archive, connection):
    long = chain(*[layer("linear", weight=[8, 8], bias=[8]), layer("relu")] * 600, given="8")
    archive.architectures.add([long])
    assert Architectures(connection).get(long.key) == long.canonical
    assert archive.query("MATCH (:Architecture)-[:HAS_LAYER]->(l:Layer) RETURN count(l)").rows == [
        (1202,)
    ]
