"""Zero-cost proxies of a study's task, as its agents know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.queue.capabilities import NOISE
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.proxies.table import ProxyTable
    from archive.store.records import Study


LEAST = 20
"""Networks with scores from which on proxies are used: ranks among fewer say little."""

N_DESIGN = 6
"""Most evaluations of an initial design from proxies."""


def proxies_of(archive: Archive, study: Study, basis: Mapping[str, Any] | None = None) -> ProxyTable | None:
    """Return the proxies of the networks of a study's space on its task; None where the archive has none.

    Noise of a table, inherited weights and the objective do not change an untrained network. A recipe may train other
    networks.

    Args:
        archive: The archive of the study.
        study: The study.
        basis: The entry `proxies` of a proposal's basis, for what was known then; None for what is known now.
    """
    protocol = ProtocolName.parse(study.protocol)
    if protocol.recipe != DEFAULT_RECIPE:
        return None
    plain, _, deviation = study.task.rpartition(NOISE)
    then: dict[str, Any] = {} if basis is None else {"source": basis["source"], "until": basis["until"]}
    return archive.proxies.of_task(plain if _is_number(deviation) else study.task, protocol.base, study.space, **then)


def basis_of(table: ProxyTable | None) -> dict[str, Any]:
    """Return the entry of a basis that names the proxies that an agent knew; empty for none."""
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
