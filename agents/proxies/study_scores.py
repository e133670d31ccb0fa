"""Zero-cost proxies for the histories of a study, and their entry in the basis of a proposal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.queue.capabilities import NOISE
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.proxies import ProxyTable
    from archive.store.records import Study


LEAST = 20
"""Least number of networks with scores for the use of proxies: ranks among fewer carry little
information."""

N_DESIGN = 2
"""Most evaluations of an initial design from proxies: they tell networks apart from the first
evaluation on."""


def proxies_of(
    archive: Archive, study: Study, basis: Mapping[str, Any] | None = None
) -> ProxyTable | None:
    """Return the proxies of the networks of a study's space on its task.

    Noise, inherited weights and objective are left out of task and protocol: none of them changes
    an untrained network.

    Args:
        archive: The archive of the study.
        study: The study.
        basis: The entry `proxies` of a proposal's basis, for the scores that were known to that
            proposal; None for all scores of the archive.

    Returns:
        None where the archive has no scores, or the study has a recipe, which may build other
        networks.
    """
    protocol = ProtocolName.parse(study.protocol)
    if protocol.recipe != DEFAULT_RECIPE:
        return None

    plain, _, deviation = study.task.rpartition(NOISE)
    then: dict[str, Any] = (
        {} if basis is None else {"source": basis["source"], "until": basis["until"]}
    )
    return archive.proxies.of_task(
        plain if _is_number(deviation) else study.task, protocol.base, study.space, **then
    )


def basis_of(table: ProxyTable | None) -> dict[str, Any]:
    """Return the entry of a basis that identifies the proxies of a history, empty without any."""
    if table is None:
        return {}

    return {"proxies": {"source": table.source, "until": table.until, "networks": len(table)}}


def _is_number(text: str) -> bool:
    # The path of a file may have the separator, too.
    try:
        float(text)
    except ValueError:
        return False

    return True
