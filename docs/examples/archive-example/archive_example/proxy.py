"""A proxy: how differently an untrained network answers different inputs."""

import torch

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import NetworkProbe


@proxy(summary="how different the outputs of different inputs are", paper="an example")
def output_spread(probe: NetworkProbe) -> float:
    """Return the standard deviation of the outputs over the batch, the mean of all outputs."""
    with probe.copied() as network, torch.no_grad():
        return float(network(probe.inputs).std(0).mean())
