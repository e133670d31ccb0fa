"""Names of published recipes: the data of their pretraining, and the side of the test images.

`timm/clip_laion2b_ft_in12k_in1k@384` has pretraining on laion2b and in12k, and the side 384.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

OWN_DATA = "in1k"
"""Word of the data that all published results are on."""

OWN_IMAGES = 1.28
"""Its millions of images."""

UNNAMED_DATA = "clip"
"""Word for pairs of images and texts that a recipe need not name."""

IMAGES: Mapping[str, float] = MappingProxyType(
    {
        "6m": 6.0,
        "in12k": 11.8,
        "cc12m": 12.0,
        "in21k": 13.7,
        "in22k": 14.2,
        "m30m": 30.0,
        "m38m": 38.0,
        "merged38m": 38.0,
        "yfcc100m": 90.0,
        "lvd142m": 142.0,
        "jft": 300.0,
        UNNAMED_DATA: 400.0,
        "laion400m": 400.0,
        "openai": 400.0,
        "ig1b": 940.0,
        "laiona": 1000.0,
        "seer": 1000.0,
        "datacompxl": 1400.0,
        "lvd1689m": 1689.0,
        "dfn2b": 2000.0,
        "merged2b": 2000.0,
        "laion2b": 2300.0,
        "metaclip": 2500.0,
        "swag": 3600.0,
        "dfn5b": 5000.0,
        "webli": 10000.0,
    }
)
"""Millions of images of a data set for pretraining, by its word in the recipes of timm and
torchvision; from the papers of the data sets, rounded."""

_SIDE = re.compile(r"(?P<stem>.+)@(?P<side>[1-9][0-9]{0,5})", re.DOTALL)


def split_side(protocol: str) -> tuple[str, int | None]:
    """Return a protocol without the side of the test images, and the side in pixels, if it has one.

    >>> split_side("timm/a1_in1k@224")
    ('timm/a1_in1k', 224)
    """
    match = _SIDE.fullmatch(protocol)
    return (protocol, None) if match is None else (match["stem"], int(match["side"]))


def data_of(words: Iterable[str]) -> list[str]:
    """Return the data sets for pretraining among the words of a recipe, each once."""
    data = [word for word in dict.fromkeys(words) if word in IMAGES]
    named = [word for word in data if word != UNNAMED_DATA]
    return named or data
