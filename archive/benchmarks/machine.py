"""Speed of a machine in under a minute: server, distances, training.

Each part takes a few seconds, so that two machines can be compared by the same figures. They are
rough: seconds are wall time, and other processes of the machine slow them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from statistics import median

from archive import kernels, spaces
from archive.api import connect
from archive.benchmarks.measurement import Figure
from archive.errors import SettingsError, first_line
from archive.settings import Settings

SECONDS = 3.0
"""Approximate duration of each repeated measurement."""
NETWORKS = 100
"""Number of networks of a matrix of distances."""
KERNELS = {"otmann": "mlp", "tree-wasserstein": "nasbench201"}
"""Measured kernels, and the space of their networks."""
EPOCHS = 4


def measure(settings: Settings, device: str = "auto") -> Iterator[Figure]:
    """Measure a machine.

    Args:
        settings: Settings of the archive whose server is measured; an embedded one is started.
        device: Device of the training in torch's notation; `auto` is a GPU if there is one.

    Yields:
        The figures, in the order of display.

    Raises:
        SettingsError: There is no such device here.
    """
    available = _find_device(device)
    yield _measure_round_trip(settings)
    for kernel, space in KERNELS.items():
        yield _measure_distances(kernel, space)

    yield _measure_training(available)


def _find_device(name: str) -> str:
    """Return the device of a name, checked by a first tensor."""
    import torch

    automatic = "cuda" if torch.cuda.is_available() else "cpu"
    device = automatic if name == "auto" else name
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise SettingsError(f"the device {name!r} cannot be used: {first_line(error)}") from error

    return device


def _measure_round_trip(settings: Settings) -> Figure:
    seconds: list[float] = []
    with connect(settings) as archive:
        deadline = time.perf_counter() + SECONDS
        while time.perf_counter() < deadline:
            begin = time.perf_counter()
            archive.query("RETURN 1")
            seconds.append(time.perf_counter() - begin)

    return Figure("server: one query and its answer", 1000 * median(seconds), "ms")


def _measure_distances(kernel: str, space: str) -> Figure:
    distance = kernels.get(kernel)
    networks = list(spaces.get(space).initial_pool()[:NETWORKS])
    # Compiled code is loaded by the first call.
    distance.distances(networks[:3])
    pairs = len(networks) * (len(networks) - 1) // 2
    seconds: list[float] = []
    deadline = time.perf_counter() + SECONDS
    while not seconds or time.perf_counter() < deadline:
        begin = time.perf_counter()
        distance.distances(networks)
        seconds.append(time.perf_counter() - begin)

    return Figure(f"distances: {kernel}, networks of {space}", pairs / median(seconds), "pairs/s")


def _measure_training(device: str) -> Figure:
    from archive.trainer.fit.train import train
    from archive.trainer.tasks import registry

    task = registry.DIGITS
    network = spaces.get("cnn").initial_pool()[0]
    protocol = replace(task.protocol("digits/1"), epochs=EPOCHS, patience=EPOCHS)
    ends: list[float] = []
    train(
        network,
        task,
        protocol,
        device=device,
        on_epoch=lambda _: ends.append(time.perf_counter()),
    )
    # The first epoch prepares the device and torch's code.
    epochs = [end - begin for begin, end in pairwise(ends)]
    return Figure(
        f"training: digits, the first cnn, on {device}, validation included",
        protocol.train / median(epochs),
        "inputs/s",
    )
