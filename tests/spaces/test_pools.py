"""Initial pools of the spaces of whole networks, compared with the released code of NASBOT."""

from __future__ import annotations

from archive import spaces
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary
from archive.spaces import cnn, mlp
from tests.support import golden


def ops(network: Architecture) -> list[str]:
    return [layer.op for layer in network.layers]


def test_the_cnn_pool_begins_with_three_vgg_nets() -> None:
    pool = spaces.get("cnn").initial_pool()
    assert [sum(op in ("conv3", "fc") for op in ops(network)) for network in pool[:3]] == [
        13,
        16,
        19,
    ]
    for network in pool[:3]:
        assert set(ops(network)) == {"ip", "conv3", "max-pool", "fc", "softmax", "op"}


def test_the_rest_of_the_cnn_pool_is_blocked() -> None:
    for network in spaces.get("cnn").initial_pool()[3:]:
        assert ops(network)[1:3] == ["conv7", "max-pool"]
        assert ops(network)[-4:] == ["avg-pool", "fc", "softmax", "op"]
        halving = [layer.units for layer in network.layers[3:] if layer.stride == 2 and layer.units]
        assert halving == [64, 128, 256, 512][: len(halving)]


def test_all_networks_of_the_pools_are_feed_forward() -> None:
    for name in ("cnn", "mlp"):
        for network in spaces.get(name).initial_pool():
            assert network.edges == tuple((u, u + 1) for u in range(len(network.layers) - 1))


def test_blocks_of_the_mlp_pool_have_one_label_and_one_width() -> None:
    network = mlp.make_blocks(3, 4)
    inner = network.layers[1:-2]
    assert [len(set(inner[first : first + 4])) for first in (0, 4, 8)] == [1, 1, 1]
    assert len({layer.op for layer in inner}) == 3
    kinds = {layer.op for network in spaces.get("mlp").initial_pool() for layer in network.layers}
    assert kinds == {"ip", "op", "linear", *vocabulary("mlp").of_group("rectifier", "sigmoid")}


def test_the_cnn_generators_give_the_networks_of_the_released_code() -> None:
    items = {item["name"]: item for item in golden("otmann.json")["networks"]}
    ours = {
        **{f"pool_cnn_vgg_{repeats}": cnn.vgg(repeats) for repeats in (1, 2, 3, 4)},
        "pool_cnn_blocked_3_1_1": cnn.make_blocks(3, 1),
        "pool_cnn_blocked_3_3_1": cnn.make_blocks(3, 3),
        "pool_cnn_resnet_3_2_1": cnn.make_blocks(3, 2, kind="res3"),
    }
    for name, network in ours.items():
        words = vocabulary("cnn")
        layers = [
            Layer(
                layer["label"],
                layer["units"],
                layer.get("stride") or words[layer["label"]].strides[0],
            )
            for layer in items[name]["layers"]
        ]
        released = Architecture("cnn", layers, [tuple(edge) for edge in items[name]["edges"]])
        assert network.key == released.key, name
