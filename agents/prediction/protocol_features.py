"""Features of recipes: words of a protocol, side of the test images, and the data of pretraining.

    timm/fb_in22k_ft_in1k@384     words timm, fb, in22k, ft, in1k; side 384; 14.2 million images

No feature comes from results: a recipe that was never seen has the words that it shares.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

BASE = 1.28
"""Millions of images of ImageNet-1k: data below it count as no further data."""

IMAGES: dict[str, float] = {
    "6m": 6.0,
    "in12k": 11.8,
    "in21k": 13.7,
    "in22k": 14.2,
    "m30m": 30.0,
    "m38m": 38.0,
    "yfcc100m": 90.0,
    "lvd142m": 142.0,
    "jft": 300.0,
    "clip": 400.0,
    "openai": 400.0,
    "ig1b": 940.0,
    "swsl": 940.0,
    "wsl": 940.0,
    "seer": 1000.0,
    "laiona": 1000.0,
    "laion2b": 2300.0,
    "merged2b": 2000.0,
    "swag": 3600.0,
    "webli": 10000.0,
}
"""Millions of images of a data set for pretraining, by its word in the recipes of timm and
torchvision; from the papers of the data sets, rounded."""


class ProtocolFeatures(NamedTuple):
    """A protocol as the model reads it.

    Attributes:
        stem: The protocol without the side of the images.
        words: Its words, in lower case.
        side: Side of the test images in pixels; None where the protocol has none.
        data: Logarithm to base 10 of the images of pretraining, in units of ImageNet-1k; 0 without
            further data.
    """

    stem: str
    words: frozenset[str]
    side: int | None
    data: float


def read_protocol(protocol: str, pretraining: str = "") -> ProtocolFeatures:
    """Return the features of a protocol.

    Args:
        protocol: Name of the protocol, `timm/a1_in1k@224`.
        pretraining: Names of the data of pretraining, where the result has them.
    """
    stem, _, side = protocol.rpartition("@")
    if not stem or not side.isdigit() or int(side) == 0:
        stem, side = protocol, ""

    words = frozenset(re.findall(r"[a-z0-9.]+", f"{stem} {pretraining}".lower()))
    images = max((IMAGES[word] for word in words if word in IMAGES), default=BASE)
    return ProtocolFeatures(stem, words, int(side) if side else None, math.log10(images / BASE))
