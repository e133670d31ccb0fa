"""Data sets that the product knows: where their files are, how these are read, and their parts, kept ready to be used.

    sources.locate ── files ──> readers ── rows ──> layout.cut ── parts ──> cache ── mapped into memory ──> Splits

The parts are computed once and kept below `ARCHIVE_HOME/data`: every trial, each in a process of its own, maps the
same pages, and copies none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.trainer.datasets import cache, layout, readers, sources

if TYPE_CHECKING:
    from archive.trainer.datasets.tensors import Splits
    from archive.trainer.tasks.protocol import Protocol


def load(name: str, protocol: Protocol) -> Splits:
    """Return the parts of a data set under a protocol.

    Raises:
        SettingsError: Its files are neither here nor can they be fetched.
        TrainingError: A file holds something else than the protocol was made for.
    """

    def parts() -> layout.Parts:
        return layout.cut(readers.read(name, sources.locate(name, protocol.data)), protocol)

    return cache.splits(f"{name}-{protocol.data}", protocol, parts)
