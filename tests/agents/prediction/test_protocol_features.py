"""Words, side and data of protocols."""

from __future__ import annotations

import math

import pytest

from archive.agents.prediction.protocol_features import read_protocol


@pytest.mark.parametrize(
    ("protocol", "stem", "side", "images"),
    [
        ("timm/fb_in22k_ft_in1k@384", "timm/fb_in22k_ft_in1k", 384, 14.2),
        ("timm/a1_in1k@224", "timm/a1_in1k", 224, 1.28),
        ("timm/rtx4090/amp/pt2.4/cu124@224", "timm/rtx4090/amp/pt2.4/cu124", 224, 1.28),
        ("digits/1", "digits/1", None, 1.28),
        ("mine@best", "mine@best", None, 1.28),
        ("mine@0", "mine@0", None, 1.28),
        ("", "", None, 1.28),
    ],
)
def test_protocols_are_read(protocol, stem, side, images):
    recipe = read_protocol(protocol)
    assert (recipe.stem, recipe.side) == (stem, side)
    assert recipe.data == pytest.approx(math.log10(images / 1.28))


def test_the_largest_data_counts_and_case_does_not():
    recipe = read_protocol("torchvision/IMAGENET1K_SWAG@224", "laion2b+in12k")
    assert recipe.words == {"torchvision", "imagenet1k", "swag", "laion2b", "in12k"}
    assert recipe.data == pytest.approx(math.log10(3600 / 1.28))
