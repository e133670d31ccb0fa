"""Architectures as graphs: valid and invalid ones, order of layers, levels, depth, live layers."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, UnknownNameError
from tests.support import examples
from tests.support.strategies import cells, members, relabelled

IP = Layer("ip")
OP = Layer("op")
SOFTMAX = Layer("softmax")
LINEAR = Layer("linear")
POOL = Layer("max-pool", None, 2)
CONV = Layer("conv3", 8)
FC = Layer("fc", 16)


def chain(*inner: Layer, space: str = "cnn") -> Architecture:
    layers = [IP, *inner, OP]
    return Architecture(space, layers, [(u, u + 1) for u in range(len(layers) - 1)])


INVALID = {
    "two-cycle": (
        "cnn",
        [IP, CONV, CONV, SOFTMAX, OP],
        [(0, 1), (1, 2), (2, 1), (2, 3), (3, 4)],
        "cycle",
    ),
    "self-loop": (
        "cnn",
        [IP, CONV, SOFTMAX, OP],
        [(0, 1), (1, 1), (1, 2), (2, 3)],
        "cycle: the layer feeds itself",
    ),
    "edge out of range": (
        "cnn",
        [IP, OP],
        [(0, 2)],
        r"an edge must join two of the 2 layers, "
        r"got \(0, 2\)",
    ),
    "negative edge": ("cnn", [IP, OP], [(-1, 1)], "an edge must join"),
    "edge twice": ("cnn", [IP, CONV, SOFTMAX, OP], [(0, 1), (1, 2), (2, 3), (0, 1)], "given twice"),
    "nothing feeds": (
        "cnn",
        [IP, CONV, CONV, SOFTMAX, OP],
        [(0, 1), (1, 3), (2, 3), (3, 4)],
        "dead end: nothing feeds",
    ),
    "feeds nothing": (
        "cnn",
        [IP, CONV, CONV, SOFTMAX, OP],
        [(0, 1), (0, 2), (1, 3), (3, 4)],
        "conv3 feeds nothing",
    ),
    "no edge": ("cnn", [IP, OP], [], "dead end"),
    "no input": (
        "cnn",
        [CONV, SOFTMAX, OP],
        [(0, 1), (1, 2)],
        r"one input layer \('ip'\), got none",
    ),
    "no output": (
        "cnn",
        [IP, CONV, SOFTMAX],
        [(0, 1), (1, 2)],
        r"one output layer \('op'\), got "
        r"none",
    ),
    "nothing": ("cnn", [], [], "one input layer"),
    "second input": ("cnn", [IP, IP, SOFTMAX, OP], [(0, 2), (1, 2), (2, 3)], "second input"),
    "second output": ("cnn", [IP, SOFTMAX, OP, OP], [(0, 1), (1, 2), (1, 3)], "second output"),
    "fed input": (
        "nasbench101",
        [IP, Layer("maxpool3x3"), OP],
        [(1, 0), (0, 2)],
        "the input is fed",
    ),
    "feeding output": (
        "nasbench101",
        [IP, Layer("maxpool3x3"), OP],
        [(0, 2), (2, 1)],
        "the output feeds",
    ),
    "no units": (
        "cnn",
        [IP, Layer("conv3"), SOFTMAX, OP],
        [(0, 1), (1, 2), (2, 3)],
        "conv3 needs units >= 1, got None",
    ),
    "units 0": (
        "mlp",
        [IP, Layer("relu", 0), LINEAR, OP],
        [(0, 1), (1, 2), (2, 3)],
        "units >= 1, got 0",
    ),
    "units of pool": (
        "cnn",
        [IP, Layer("max-pool", 8, 2), SOFTMAX, OP],
        [(0, 1), (1, 2), (2, 3)],
        "must have no units",
    ),
    "stride 3": (
        "cnn",
        [IP, Layer("conv3", 8, 3), SOFTMAX, OP],
        [(0, 1), (1, 2), (2, 3)],
        "stride 1 or 2, got 3",
    ),
    "pool stride 1": (
        "cnn",
        [IP, Layer("avg-pool"), SOFTMAX, OP],
        [(0, 1), (1, 2), (2, 3)],
        "stride 2, got 1",
    ),
    "no decision": (
        "cnn",
        [IP, CONV, OP],
        [(0, 1), (1, 2)],
        "only decision layers feed the output, got conv3",
    ),
    "early decision": (
        "cnn",
        [IP, SOFTMAX, FC, SOFTMAX, OP],
        [(0, 1), (1, 2), (2, 3), (3, 4), (1, 4)],
        "another layer",
    ),
    "sizes": (
        "cnn",
        [IP, CONV, POOL, CONV, SOFTMAX, OP],
        [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)],
        "do not meet",
    ),
    "image after vector": (
        "cnn",
        [IP, FC, CONV, SOFTMAX, OP],
        [(0, 1), (1, 2), (2, 3), (3, 4)],
        "a vector feeds it",
    ),
    "image and vector": (
        "cnn",
        [IP, CONV, FC, FC, SOFTMAX, OP],
        [(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)],
        "vector",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_each_invalid_graph_says_why(case: str) -> None:
    space, layers, edges, reason = INVALID[case]
    with pytest.raises(InvalidArchitectureError, match=reason):
        Architecture(space, layers, edges)


def test_the_layer_at_fault_travels_with_the_error() -> None:
    with pytest.raises(InvalidArchitectureError) as caught:
        chain(CONV, Layer("conv5", 0), SOFTMAX)

    assert caught.value.layer == 2
    assert "(layer 2)" in str(caught.value)


def test_unknown_names_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"space 'cmn'.*did you mean cnn"):
        Architecture("cmn", [IP, OP], [(0, 1)])

    with pytest.raises(UnknownNameError, match="operation of cnn 'con3'"):
        chain(Layer("con3", 8), SOFTMAX)


def test_layers_are_put_in_topological_order() -> None:
    network = Architecture("cnn", [OP, SOFTMAX, CONV, IP], [(1, 0), (2, 1), (3, 2)])
    assert network == chain(CONV, SOFTMAX)
    assert network.parents == ((), (0,), (1,), (2,))
    assert network.children == ((1,), (2,), (3,), ())


@given(cells())
@examples(5)
def test_edges_lead_forward_between_input_and_output(cell: Architecture) -> None:
    assert all(tail < head for tail, head in cell.edges)
    assert (cell.layers[0].op, cell.layers[-1].op) == ("ip", "op")
    assert {(p, u) for u, parents in enumerate(cell.parents) for p in parents} == set(cell.edges)
    assert {(u, c) for u, children in enumerate(cell.children) for c in children} == set(cell.edges)


@given(members("cnn"), st.integers(0, 1000))
def test_all_relabellings_have_one_canonical_form(network: Architecture, seed: int) -> None:
    other = relabelled(network, seed)
    assert network.canonical == other.canonical
    anew = Architecture(network.space, network.canonical.layers, network.canonical.edges)
    assert (anew.key, anew.functional_key) == (network.key, network.functional_key)
    assert network.canonical.canonical == network.canonical


def test_levels_count_halvings_and_end_at_vectors() -> None:
    network = chain(CONV, Layer("res3", 8, 2), POOL, FC, SOFTMAX)
    assert network.levels == (0, 0, 1, 2, None, None, None)


def test_depth_is_the_longest_path() -> None:
    skip = Architecture("mlp", [IP, Layer("relu", 8), LINEAR, OP], [(0, 1), (0, 2), (1, 2), (2, 3)])
    assert skip.depth == 3
    assert Architecture("nasbench201", [IP, OP], []).depth == 0


def test_an_architecture_cannot_be_changed() -> None:
    network = chain(CONV, SOFTMAX)
    for name in ("layers", "edges", "space", "parents", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(network, name, ())

    with pytest.raises(AttributeError):
        network.layers[1].units = 9  # type: ignore[misc]


def test_equality_is_of_layers_and_edges_as_they_stand() -> None:
    a = Layer("conv3", 8)
    b = Layer("conv5", 8)
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
    one = Architecture("cnn", [IP, a, b, SOFTMAX, OP], edges)
    other = Architecture("cnn", [IP, b, a, SOFTMAX, OP], edges)
    assert one != other
    assert one.key == other.key
    assert one == Architecture("cnn", one.layers, one.edges)
    assert hash(one) == hash(Architecture("cnn", one.layers, one.edges))
    assert one != "an architecture"
    assert repr(one) == f"<Architecture cnn 5 layers 5 edges {one.key[:8]}>"


@given(members("mlp"))
def test_pickling_keeps_the_network_and_drops_what_is_cached(network: Architecture) -> None:
    network.key, network.parents  # noqa: B018
    copy = pickle.loads(pickle.dumps(network))
    assert copy == network
    assert copy.key == network.key
    assert len(pickle.dumps(network)) == len(pickle.dumps(copy))


def test_functional_key_drops_what_no_path_passes() -> None:
    op = Layer("maxpool3x3")
    bare = Architecture("nasbench101", [IP, op, OP], [(0, 1), (1, 2)])
    hanging = Architecture("nasbench101", [IP, op, op, OP], [(0, 1), (1, 3), (0, 2)])
    floating = Architecture("nasbench101", [IP, op, op, OP], [(0, 1), (1, 3), (2, 3)])
    assert bare.functional_key == bare.key
    assert hanging.functional_key == floating.functional_key == bare.key
    assert len({bare.key, hanging.key, floating.key}) == 3
    # `functional` is the same before and after the keys are known.
    for network in (bare, hanging, floating):
        unread = Architecture(network.space, network.layers, network.edges)
        assert unread.functional == network.functional == bare

    assert bare.functional is bare
