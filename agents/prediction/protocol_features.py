"""Features of recipes: words of a protocol, side of the test images, and the data of pretraining.

    timm/fb_in22k_ft_in1k@384     words timm, fb, in22k, ft, in1k; side 384; 14.2 million images

No feature comes from results: a recipe that was never seen has the words that it shares.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

from archive.queries.published_recipes import IMAGES, OWN_IMAGES, data_of, split_side


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


@lru_cache(maxsize=2**14)
def read_protocol(protocol: str, pretraining: str = "") -> ProtocolFeatures:
    """Return the features of a protocol.

    Args:
        protocol: Name of the protocol, `timm/a1_in1k@224`.
        pretraining: Names of the data of pretraining, where the result has them.
    """
    stem, side = split_side(protocol)
    words = frozenset(re.findall(r"[a-z0-9.]+", f"{stem} {pretraining}".lower()))
    images = max((IMAGES[word] for word in data_of(words)), default=OWN_IMAGES)
    return ProtocolFeatures(stem, words, side, math.log10(images / OWN_IMAGES))
