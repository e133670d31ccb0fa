"""The contract of a proxy: a function of an untrained network with one batch.

    @proxy(summary="...", paper="...")
    def synflow(probe: NetworkProbe) -> float: ...

A package adds a proxy with an entry point of the group `archive.proxies` that loads to a `Proxy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from archive.trainer.proxies.probe import NetworkProbe


@final
@dataclass(frozen=True)
class Proxy:
    """A zero-cost proxy.

    Attributes:
        function: Returns the score of a probed network: finite, or NaN where the proxy is not
            defined for it. The score depends on the network, the batch and the probe's seed alone.
        summary: What it measures, in a few words.
        paper: Source of the definition.
        needs: Parts without which a network has no score, in words; empty for none.
    """

    function: Callable[[NetworkProbe], float]
    summary: str
    paper: str
    needs: str = ""

    def __call__(self, probe: NetworkProbe) -> float:
        """Return the score of a network."""
        return self.function(probe)


def proxy(
    *, summary: str, paper: str, needs: str = ""
) -> Callable[[Callable[[NetworkProbe], float]], Proxy]:
    """Return a decorator that makes a proxy of its function."""
    return lambda function: Proxy(function, summary, paper, needs)
