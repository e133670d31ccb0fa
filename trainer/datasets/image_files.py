"""Image files: facts on them, which are cached, and their pixels as arrays of one form."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import UnusableFileError
from archive.files import write_atomically
from archive.trainer.datasets import layout, sources
from archive.trainer.datasets.readers import UNREADABLE

if TYPE_CHECKING:
    from PIL.Image import Image


log = logging.getLogger("archive.trainer")

FORMAT = 1
"""Version of the facts on images and of the computation of arrays."""
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Formats of Pillow that are read: none of them starts another program."""
MOST_PIXELS = 2**27
"""Most pixels of an image; a small file may unpack to more memory than there is."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What the first reading of an image found.

    Attributes:
        height: Height in pixels.
        width: Width in pixels.
        colour: Whether it has colours.
        alpha: Whether a part of it is transparent.
        deep: Whether it is grey with 16 bits.
        fault: Fault of a file that cannot be read; None for a good one.
    """

    height: int = 0
    width: int = 0
    colour: bool = False
    alpha: bool = False
    deep: bool = False
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ImageArrays:
    """Images of one form that are read from their files.

    Attributes:
        folder: The folder, with links resolved.
        names: Names of the files in the order of the rows.
        size: Height and width.
        colour: Whether there are three channels of colours, or one of grey.
        alpha: Whether there is one more channel with the opacity.
        deep: Whether the numbers have 16 bits.
    """

    folder: Path
    names: tuple[str, ...]
    size: tuple[int, int]
    colour: bool
    alpha: bool
    deep: bool

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the arrays: (n, height, width, channels)."""
        return (len(self.names), *self.size, (3 if self.colour else 1) + self.alpha)

    def read(self, _train: NDArray[np.intp]) -> NDArray[Any]:
        """Return the images as (n, height, width, channels) of uint8 or uint16, on disk.

        Raises:
            UnusableFileError: A file can no longer be read.
        """
        arrays = layout.allocate(self.shape, np.dtype(np.uint16 if self.deep else np.uint8))
        for row, name in enumerate(self.names):
            try:
                arrays[row] = self._array(_decode(self.folder / name))
            except _BAD as error:
                fault = f"an image of {self.folder} can no longer be read"
                raise UnusableFileError(
                    fault, f"{fault}: {name} ({type(error).__name__})"
                ) from None

        return arrays

    def _array(self, image: Image) -> NDArray[Any]:
        """Return one image as (height, width, channels)."""
        import PIL.Image

        height, width = self.size
        if _is_deep(image):
            numbers = np.asarray(image).astype(np.float32)
            if not self.deep:
                numbers /= 257

            image = PIL.Image.fromarray(numbers)
            resized = np.asarray(_resize(image, width, height), np.float32)
            grey: NDArray[np.float32] = np.rint(resized).clip(0, 65_535 if self.deep else 255)
            if self.deep:
                return grey[..., None]

            image = PIL.Image.fromarray(grey.astype(np.uint8))

        mode = ("RGB" if self.colour else "L") + ("A" if self.alpha else "")
        array = np.asarray(_resize(_convert(image, mode), width, height))
        if array.ndim == 2:
            array = array[..., None]

        # All of 16 bits: 255 becomes 65,535.
        return array.astype(np.uint16) * 257 if self.deep else array


def _resize(image: Image, width: int, height: int) -> Image:
    import PIL.Image

    if image.size == (width, height):
        return image

    return image.resize((width, height), PIL.Image.Resampling.BILINEAR)


def _convert(image: Image, mode: str) -> Image:
    """Return an image in a mode, by way of colours where Pillow has no direct one."""
    if image.mode == mode:
        return image

    if "transparency" in image.info or image.mode in ("P", "PA", "La", "RGBa"):
        image = image.convert("RGBA")

    if mode == "LA" and image.mode not in ("L", "RGBA"):
        image = image.convert("RGBA" if image.mode == "LA" else "RGB")

    return image.convert(mode)


_BAD = (*UNREADABLE, Warning)


def _decode(path: Path) -> Image:
    """Return an image upright, with its pixels in memory.

    Raises:
        ValueError: It has too many pixels.
        OSError: It is none, or cut off.
    """
    import PIL.Image
    import PIL.ImageOps

    with warnings.catch_warnings():
        # Pillow warns of odd metadata, and of many pixels, which are checked here.
        warnings.simplefilter("ignore")
        with PIL.Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"more than {MOST_PIXELS:,} pixels")

            image.load()
            return PIL.ImageOps.exif_transpose(image)


def _is_deep(image: Image) -> bool:
    return image.mode.startswith("I")


def _look(path: Path) -> ImageFacts:
    import PIL.Image

    try:
        image = _decode(path)
        if image.mode == "F":
            return ImageFacts(fault="floating-point numbers")

        if _is_deep(image):
            pixels = np.asarray(image)
            if pixels.min() < 0 or pixels.max() > 65_535:
                return ImageFacts(fault="more than 16 bits")

        alpha = False
        if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
            opacity = np.asarray(image.convert("RGBA"))[..., 3]
            alpha = bool(opacity.min() < 255)

        palette_grey = image.mode in ("P", "PA") and _is_grey(image)
        grey = image.mode in ("1", "L", "LA", "La") or _is_deep(image) or palette_grey
        return ImageFacts(image.height, image.width, not grey, alpha, _is_deep(image))
    except (*_BAD, PIL.Image.DecompressionBombError) as error:
        return ImageFacts(fault=type(error).__name__)


def _is_grey(image: Image) -> bool:
    colours = np.asarray(image.convert("RGB"))
    return bool((colours == colours[..., :1]).all())


def facts_of(real: Path, digest: str, names: Sequence[str]) -> dict[str, ImageFacts]:
    """Return the facts on each file, from the cache of a content with this digest, or read.

    Args:
        real: The folder, with links resolved.
        digest: Digest of its content.
        names: Names of the files.
    """
    store = sources.home() / "images" / f"{digest[:32]}.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        stored = json.loads(store.read_text())
        if stored["version"] == FORMAT:
            facts = {name: ImageFacts(*entry) for name, entry in stored["files"].items()}
            if facts.keys() >= {*names}:
                return facts

    facts = {name: _look(real / name) for name in names}
    entries = {}
    for name, image in facts.items():
        entries[name] = [
            image.height,
            image.width,
            image.colour,
            image.alpha,
            image.deep,
            image.fault,
        ]

    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(store, json.dumps({"version": FORMAT, "files": entries}).encode())
    except (OSError, ValueError) as error:
        log.warning("facts on images not cached file=%s reason=%r", store, str(error))

    return facts
