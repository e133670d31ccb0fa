"""Architectures as text in any form that users write, and the published form of an architecture.

| form                 | begins with                      | codec                                 |
|----------------------|----------------------------------|---------------------------------------|
| NAS-Bench-201 string | a vertical bar                   | `archive.architecture.nasbench_codec` |
| genotype             | `Genotype(`, or JSON of `normal` | `archive.architecture.genotypes`      |
| JSON of the graph    | any other                        | `archive.architecture.codec`          |

The JSON of an architecture may also stand in the field `architecture` of an object without a
`schema`, as commands with `--json` print it.
"""

from __future__ import annotations

from archive.architecture.codec import from_json
from archive.architecture.genotypes.codec import from_genotype, to_genotype
from archive.architecture.genotypes.genotype import RULES, is_genotype
from archive.architecture.graph import Architecture
from archive.architecture.nasbench_codec import from_nasbench201, to_nasbench201
from archive.errors import CodecError, InvalidArchitectureError


def is_text(text: str) -> bool:
    """Return whether a text begins like one of the forms: it is no key, name or path."""
    return text.lstrip().startswith(("|", "{")) or is_genotype(text)


def from_text(text: str) -> Architecture:
    """Return the architecture of a text.

    Raises:
        CodecError: The text does not describe a graph.
        InvalidArchitectureError: The graph is no network.
    """
    if text.lstrip().startswith("|"):
        return from_nasbench201(text)

    return from_genotype(text) if is_genotype(text) else from_json(text, within="architecture")


def to_text(architecture: Architecture) -> str | None:
    """Return the NAS-Bench-201 string or the genotype of an architecture; None without."""
    try:
        if architecture.space == "nasbench201":
            return to_nasbench201(architecture)

        return str(to_genotype(architecture)) if architecture.space in RULES else None
    except (CodecError, InvalidArchitectureError):
        return None
