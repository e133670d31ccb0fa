"""Commands show configurations of parameters by the network that their model builds."""

from __future__ import annotations

import json

import pytest

from archive import space, spaces
from archive.store.studies.builds import Build
from tests.support.commands import serving, shell
from tests.support.networks.torch_nets import chain, layer

SPACE = spaces.of(space.Space(width=[1, 2, 3], lr=[0.1, 0.2]))
NETWORKS = [chain(layer("relu"), layer("gelu")), chain(layer("relu"))]


@pytest.fixture
def keys(archive):
    """Keys of three configurations: two with one network, one with another."""
    keys = []
    for width, network in ((1, NETWORKS[0]), (2, NETWORKS[1]), (3, NETWORKS[0])):
        configuration = SPACE.of_names({"width": width, "lr": 0.1})
        archive.builds.add([Build(configuration, network, "models.py:build", None, None, None)])
        keys.append(configuration.key)

    return keys


def test_the_network_of_a_configuration_is_shown(archive, keys, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as user, serving(archive):
        shown = json.loads(user.types("arch", "show", keys[0], "--json").stdout)
        assert (shown["network"], shown["configuration"]["width"]) == (NETWORKS[0].key, 1)
        of_network = json.loads(user.types("arch", "show", NETWORKS[0].key, "--json").stdout)
        assert of_network["network"] is None
        assert of_network["configurations"] == sorted([keys[0], keys[2]])
        drawn = json.loads(user.types("arch", "draw", keys[0], "--json").stdout)
        assert (drawn["key"], drawn["network"]) == (keys[0], NETWORKS[0].key)
        text = "\n".join(drawn["lines"])
        assert "gelu" in text and "width=1" in text
        compared = json.loads(user.types("arch", "diff", keys[0], keys[1], "--json").stdout)
        assert (compared["first"], compared["second"]) == (NETWORKS[0].key, NETWORKS[1].key)
        assert compared["configurations"] == keys[:2]
        assert compared["parameters"] == [{"name": "width", "first": 1, "second": 2}]
        in_words = user.types("arch", "diff", keys[0], keys[1]).stdout
        assert "width" in in_words and "in stem" in in_words
        near = json.loads(
            user.types("arch", "nearest", keys[0], "--kernel", "edit", "--json").stdout
        )
        (neighbour,) = near["neighbours"]
        assert (neighbour["key"], neighbour["configurations"]) == (NETWORKS[1].key, [keys[1]])
