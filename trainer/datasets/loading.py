"""Loading of a published data set: its files are located, read, cut into parts and cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.trainer.datasets import cache, layout, readers, sources

if TYPE_CHECKING:
    from archive.trainer.datasets.scaling import Scaling
    from archive.trainer.datasets.splits import Splits
    from archive.trainer.protocols.base import TrainingProtocol


def load(name: str, protocol: TrainingProtocol) -> Splits:
    """Return the parts of a data set under a protocol.

    Raises:
        SettingsError: A file is missing and cannot be fetched.
        TrainingError: A file has other content than the protocol was made for.
    """

    def parts() -> layout.Parts:
        return layout.cut(_rows(name, protocol), protocol)

    return cache.splits(f"{name}-{protocol.data}", protocol, parts)


def scaling(name: str, protocol: TrainingProtocol) -> Scaling:
    """Return how the parts of a data set are standardised under a protocol.

    Raises:
        SettingsError: A file is missing and cannot be fetched.
        TrainingError: A file has other content than the protocol was made for.
    """
    return layout.scaling(_rows(name, protocol), protocol)


def _rows(name: str, protocol: TrainingProtocol) -> layout.Rows:
    return readers.read(name, sources.locate(name, protocol.data))
