"""Trained weights as safetensors files, named by the SHA-256 of their content.

    FOLDER/3f/3f9a….safetensors      {name: tensor} and one metadata entry `archive`: JSON with
                                     `architecture` (see `archive.architecture.codec`) and the
                                     writer's metadata

Writes are atomic: a killed writer leaves no partial file under such a name. Equal content is one
file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as serialise
from torch import Tensor

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, WeightsError
from archive.store.records import Weights
from archive.trainer.storage import weights_store

METADATA = "archive"


@dataclass(frozen=True)
class SavedWeights:
    """The content of a weights file.

    Attributes:
        architecture: The network that the weights belong to.
        weights: Tensors by name, on the CPU, as the network's `state_dict` names them.
        metadata: The writer's metadata (task, protocol, seed, form of the network, …).
    """

    architecture: Architecture
    weights: dict[str, Tensor]
    metadata: dict[str, Any]


def save(
    folder: Path | str,
    architecture: Architecture,
    weights: Mapping[str, Tensor],
    metadata: Mapping[str, Any],
) -> Weights:
    """Write weights durably, and return their address.

    Args:
        folder: Location of the weights, a folder or an fsspec URL
            (`archive.trainer.storage.weights_store`).
        architecture: The network that they belong to.
        weights: Tensors by name.
        metadata: Saved with them, as JSON values.

    Raises:
        WeightsError: The location cannot be written, or the disk is full.
    """
    # One entry: safetensors writes several in no fixed order, and equal weights would be different
    # files.
    note = json.dumps({"architecture": codec.to_dict(architecture), **metadata}, sort_keys=True)
    content = serialise(
        {name: tensor.contiguous() for name, tensor in weights.items()}, {METADATA: note}
    )
    return weights_store.write(folder, content)


def load(saved: Weights) -> SavedWeights:
    """Read weights, verified by their SHA-256.

    Raises:
        WeightsError: The file is missing, cut off, altered, or no weights file.
    """
    return parse(saved.uri, weights_store.read(saved))


def parse(uri: str, content: bytes) -> SavedWeights:
    """Return the weights in the content of a file.

    Raises:
        WeightsError: It is no weights file; the message names the address.
    """
    try:
        size = int.from_bytes(content[:8], "little")
        metadata = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][METADATA])
        architecture = codec.from_dict(metadata.pop("architecture"))
        return SavedWeights(architecture, load_tensors(content), metadata)
    except (SafetensorError, KeyError, TypeError, ValueError, ArchiveError) as error:
        raise WeightsError(f"the file {uri} is no weights file of the archive: {error}") from error


def path_of(uri: str) -> Path:
    """Return the path of weights from their address.

    Raises:
        WeightsError: It is no local file.
    """
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise WeightsError(f"only file:/// addresses have a path here, got {uri}")

    return Path(unquote(parts.path))
