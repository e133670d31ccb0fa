"""Networks whose layers have attributes and whose edges have arguments: identity, texts, and what
is refused."""

from __future__ import annotations

import json
import pickle
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture import codec, compact
from archive.architecture.aten.sizes import evaluate, is_size
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer import Attributes
from archive.errors import ArchiveError, CodecError, InvalidArchitectureError
from tests.support import examples
from tests.support.networks.torch_nets import chain, layer, network, networks, residual
from tests.support.strategies import relabelled


@given(networks(), st.integers(0, 10_000))
@examples(5)
def test_relabelling_changes_no_key(net: Architecture, seed: int) -> None:
    other = relabelled(net, seed)
    assert other.key == net.key
    assert other.canonical == net.canonical


def isomorphic(a: Architecture, b: Architecture) -> bool:
    """The definition, tried out."""
    n = len(a.layers)
    if n != len(b.layers) or len(a.edges) != len(b.edges):
        return False

    wanted = set(b.connections)
    for inner in permutations(range(1, n - 1)):
        to = (0, *inner, n - 1)
        if all(a.layers[u] == b.layers[to[u]] for u in range(n)):
            if {(to[tail], to[head], *used) for tail, head, *used in a.connections} == wanted:
                return True

    return False


@given(networks(most=5), networks(most=5))
@examples(3)
def test_keys_are_equal_exactly_when_a_permutation_exists(a: Architecture, b: Architecture) -> None:
    assert (a.key == b.key) == isomorphic(a, b)


def test_attributes_and_arguments_are_part_of_the_key() -> None:
    def difference(first: int, second: int) -> Architecture:
        inner = [layer("relu"), layer("gelu"), layer("sub")]
        return network(inner, [(0, 1, 0), (0, 2, 0), (1, 3, first), (2, 3, second), (3, 4, 0)])

    def total(first: int, second: int) -> Architecture:
        inner = [layer("relu"), layer("relu"), layer("add", alpha=2)]
        return network(inner, [(0, 1, 0), (1, 2, 0), (1, 3, first), (2, 3, second), (3, 4, 0)])

    assert difference(0, 1).key != difference(1, 0).key
    assert total(0, 1).key != total(1, 0).key
    assert chain(layer("add", other=1)).key != chain(layer("add", other=1.0)).key
    assert chain(layer("mean", dim=[1])).key != chain(layer("mean", dim=[2])).key


def test_a_thousand_layers_have_a_key_at_once() -> None:
    # Colour refinement alone would take a round for each hop, and a second for the key.
    inner = [layer("relu"), layer("add")] * 500
    edges: list[tuple[int, ...]] = []
    for u in range(1, 1001, 2):
        edges += [(u - 1, u, 0), (u - 1, u + 1, 0), (u, u + 1, 0)]

    long = network(inner, [*edges, (1000, 1001, 0)])
    assert relabelled(long, 1).canonical == long.canonical


def test_equal_branches_that_only_arguments_tell_apart() -> None:
    """Twenty equal branches, concatenated: each has its place, so there is one relabelling."""
    inner = [layer("relu")] * 20 + [layer("cat", dim=1)]
    wide = network(
        inner,
        [*((0, u, 0) for u in range(1, 21)), *((u, 21, u - 1) for u in range(1, 21)), (21, 22, 0)],
    )
    assert relabelled(wide, 3).canonical == wide.canonical


@given(networks())
def test_texts_give_the_same_network_back(net: Architecture) -> None:
    assert codec.from_json(codec.to_json(net)) == net
    assert pickle.loads(pickle.dumps(net)) == net
    form = net.canonical
    assert compact.decode(form.key, form.space, form.functional_key, compact.encode(form)) == form


def test_json_keeps_to_the_documented_form() -> None:
    text = codec.to_dict(residual())
    assert text["layers"][0] == {"op": "ip", "attributes": {"input": "3x8x8"}}
    assert text["layers"][1] == {
        "op": "convolution", "units": 8, "stride": 2,
        "attributes": {"bias": [8], "padding": 1, "weight": [8, 3, 3, 3]},
    }  # fmt: skip
    assert [0, 3] in text["edges"]
    assert [2, 6, 0] in text["edges"]


def test_attributes_are_an_immutable_mapping_of_exact_values() -> None:
    attributes = Attributes({"b": [1, 2], "a": True})
    assert dict(attributes) == {"a": True, "b": (1, 2)}
    assert list(attributes) == ["a", "b"]
    assert attributes == Attributes({"a": True, "b": (1, 2)})
    assert hash(attributes) == hash(Attributes({"a": True, "b": (1, 2)}))
    assert attributes != Attributes({"a": 1, "b": (1, 2)})
    assert Attributes({"x": 1}) != Attributes({"x": 1.0})
    assert Layer("relu", attributes=Attributes({"x": 1})) != Layer(
        "relu", attributes=Attributes({"x": True})
    )
    with pytest.raises(AttributeError):
        attributes.text = ""


BAD: dict[str, tuple[Any, str]] = {
    "list": ([], "the attributes of layer 1 are a JSON object"),
    "name": ({"a b": 1}, "the name of an attribute must be an identifier, got 'a b'"),
    "null": ({"x": None}, "the attribute x must be a truth value"),
    "nested": ({"x": [[1]]}, "the attribute x must be"),
    "object": ({"x": {}}, "the attribute x must be"),
    "mixed": ({"x": [1, "a"]}, "the list x must have values of one kind"),
    "mixed truth": ({"x": [1, True]}, "the list x must have values of one kind"),
    "huge": ({"x": 10**30}, "the attribute x must be"),
    "surrogate": ({"x": "\ud800"}, "the attribute x must be"),
    "infinite": ({"x": float("inf")}, "the attribute x must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_attributes_that_no_archive_can_store_are_refused(case: str) -> None:
    attributes, reason = BAD[case]
    text = codec.to_dict(chain(layer("relu")))
    text["layers"][1]["attributes"] = attributes
    with pytest.raises((CodecError, InvalidArchitectureError), match=reason) as caught:
        codec.from_dict(text)

    assert len(str(caught.value)) < 300


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)


@given(json_values)
@examples(3)
def test_random_attributes_never_surprise(value: Any) -> None:
    text = json.loads(codec.to_json(chain(layer("relu"))))
    for field in ("attributes", "units"):
        text["layers"][1][field] = value
        try:
            codec.from_json(json.dumps(text))
        except ArchiveError as error:
            assert isinstance(error, (CodecError, InvalidArchitectureError))


@pytest.mark.parametrize("edge", [[0], [0, 1, -1], [0, 1, 0.5], [0, 1, *range(200)], [0, 1, 10**6]])
def test_bad_arguments_of_edges(edge: list[Any]) -> None:
    text = codec.to_dict(chain(layer("relu")))
    text["edges"][0] = edge
    with pytest.raises((CodecError, InvalidArchitectureError), match=r"edge|arguments"):
        codec.from_dict(text)


def test_other_spaces_have_neither() -> None:
    ends = [Layer("ip"), Layer("op")]
    with pytest.raises(InvalidArchitectureError, match="an edge of nasbench101 has no arguments"):
        Architecture("nasbench101", ends, [(0, 1, 0)])

    with pytest.raises(InvalidArchitectureError, match="maxpool3x3 must have no attributes"):
        Architecture(
            "nasbench101",
            [ends[0], Layer("maxpool3x3", attributes=Attributes({"x": 1})), ends[1]],
            [(0, 1), (1, 2)],
        )


@pytest.mark.parametrize(
    ("text", "value"),
    [("batch", 6), ("64*batch", 384), ("2*(batch + 1) - batch//4", 13), ("-batch", -6), ("7", 7)],
)
def test_sizes_of_a_batch(text: str, value: int) -> None:
    assert is_size(text)
    assert evaluate(text, 6) == value


@pytest.mark.parametrize(
    "text", ["", "batch**9", "x", "batch.real", "f(1)", "1.5", "True", "1 if 1 else 2", "(" * 99]
)
def test_other_texts_are_no_sizes(text: str) -> None:
    assert not is_size(text)
