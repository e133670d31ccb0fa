"""Benchmark of an ensemble's training and prediction, relative to torch networks trained one after
the other.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np

from archive import spaces
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.ensemble.model import Ensemble
from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.kernels.features.embedding import matrix, vocabulary
from archive.kernels.features.paths import PathEncoding


def measure(
    observations: int = 500, candidates: int = 1_000, epochs: int = 200, seed: int = 0
) -> list[Figure]:
    """Measure one training and one posterior, after a small untimed training that loads compiled
    code.

    Args:
        observations: Number of training networks, cells of NAS-Bench-101 in path encoding.
        candidates: Number of networks to predict.
        epochs: Passes over the observations.
        seed: Seed of the networks and of the trainings.

    Returns:
        Seconds. The reference is `torch.nn.Sequential` with `torch.optim.Adam`, one member after
        the other, with as many epochs and the same features; on one thread, where it is faster than
        on two.
    """
    rng = np.random.default_rng(seed)
    space = spaces.get("nasbench101")
    networks = [space.sample(rng) for _ in range(observations + candidates)]
    known = networks[:observations]
    unknown = networks[observations:]
    scores = np.array([network.depth for network in known]) + rng.standard_normal(observations)
    surrogate = Ensemble("path", epochs=epochs)
    surrogate.fit(known[:2], scores[:2], rng)
    begin = time.perf_counter()
    fitted = surrogate.fit(known, scores, rng)
    fit = time.perf_counter() - begin
    begin = time.perf_counter()
    fitted.posterior(unknown)
    ask = time.perf_counter() - begin
    reference = _one_after_the_other(surrogate, known, scores)
    return [
        Figure(f"fit of an ensemble, {observations} observations", fit, "s", "<= 3", reference),
        Figure(f"posterior of an ensemble, {candidates} candidates", ask, "s"),
    ]


def _one_after_the_other(
    ensemble: Ensemble, architectures: Sequence[Architecture], scores: Array
) -> float:
    import torch

    encoding = PathEncoding()
    networks = [encoding.prepare(architecture) for architecture in architectures]
    inputs = torch.tensor(matrix(networks, vocabulary(networks)), dtype=torch.float32)
    targets = torch.tensor((scores - scores.mean()) / scores.std(), dtype=torch.float32)[:, None]
    sizes = [inputs.shape[1], *[ensemble.width] * ensemble.layers]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        begin = time.perf_counter()
        for _ in range(ensemble.members):
            hidden = [
                part
                for fan_in, fan_out in itertools.pairwise(sizes)
                for part in (torch.nn.Linear(fan_in, fan_out), torch.nn.ReLU())
            ]
            net = torch.nn.Sequential(*hidden, torch.nn.Linear(sizes[-1], 1))
            adam = torch.optim.Adam(net.parameters(), lr=ensemble.rate, betas=(0.9, 0.99), eps=1e-7)
            for _ in range(ensemble.epochs):
                for chosen in torch.split(torch.randperm(len(targets)), ensemble.batch):
                    adam.zero_grad()
                    loss = torch.nn.functional.l1_loss(net(inputs[chosen]), targets[chosen])
                    torch.autograd.backward(loss)
                    adam.step()

        return time.perf_counter() - begin
    finally:
        torch.set_num_threads(threads)
