"""Trained weights as safetensors files, named by the SHA-256 of their content.

    FOLDER/3f/3f9a….safetensors      {name: tensor} and one metadata entry `archive`: JSON with `architecture`
                                     (see `archive.architecture.codec`) and whatever else the writer says of it

Nothing that is killed leaves half a checkpoint under a name that anyone looks for. Equal content is one file.
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
from archive.errors import ArchiveError, CheckpointError
from archive.store.records import Checkpoint
from archive.trainer.storage import weights_store

METADATA = "archive"


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds.

    Attributes:
        architecture: The network that the weights belong to.
        weights: Tensors by name, on the CPU, as `archive.trainer.nn.network.Network` names them.
        about: What the writer said of it (task, protocol, seed, …).
    """

    architecture: Architecture
    weights: dict[str, Tensor]
    about: dict[str, Any]


def save(
    folder: Path | str, architecture: Architecture, weights: Mapping[str, Tensor], about: Mapping[str, Any]
) -> Checkpoint:
    """Write weights so that they are on the disk, whole, when this returns.

    Args:
        folder: Where checkpoints are kept, a folder or an fsspec URL (`archive.trainer.storage.weights_store`).
        architecture: The network that they belong to.
        weights: Tensors by name.
        about: What else to keep with them, as JSON values.

    Raises:
        CheckpointError: The folder cannot be written to, or the disk is full.
    """
    # One entry: several would be written in no particular order, and equal weights would be different files.
    note = json.dumps({"architecture": codec.to_dict(architecture), **about}, sort_keys=True)
    content = serialise({name: tensor.contiguous() for name, tensor in weights.items()}, {METADATA: note})
    return weights_store.write(folder, content)


def load(checkpoint: Checkpoint) -> Saved:
    """Read weights back, if every byte of them is as it was written.

    Raises:
        CheckpointError: The file is missing, cut off, altered, or not a checkpoint.
    """
    return _parsed(checkpoint.uri, weights_store.read(checkpoint))


def path_of(uri: str) -> Path:
    """Return the path of a checkpoint's address.

    Raises:
        CheckpointError: It is no local file.
    """
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise CheckpointError(f"only file:/// addresses have a path here, got {uri}")
    return Path(unquote(parts.path))


def _parsed(uri: str, content: bytes) -> Saved:
    try:
        size = int.from_bytes(content[:8], "little")
        about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][METADATA])
        architecture = codec.from_dict(about.pop("architecture"))
        return Saved(architecture, load_tensors(content), about)
    except (SafetensorError, KeyError, TypeError, ValueError, ArchiveError) as error:
        raise CheckpointError(f"the file {uri} is no checkpoint of the archive: {error}") from error
