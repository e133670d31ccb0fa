"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from archive.errors import LaunchError

NAMESPACE = "nas-archive"
"""Namespace of the actors, the same for all processes of a user."""
REACH_SECONDS = 5.0
"""Longest wait for the cluster's port to answer;

Ray itself tries a wrong address again for many minutes.
"""

_opened: list[str] = []
"""The address of the connection that this process opened, if any: Ray has one at a time."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give the module `ray`, connected to a cluster.

    The connection stays open until the use of another cluster.

    Args:
        address: As `ray.init` takes it.

    Raises:
        LaunchError: The cluster cannot be reached, or does not answer.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    loaded = sys.modules.get("ray")
    other = bool(_opened) and address not in _opened
    if other or loaded is None or not loaded.is_initialized():
        # Ray, too, reads the variable in place of `auto`.
        _check_port(os.environ.get("RAY_ADDRESS", "") if address == "auto" else address)

    import ray

    if other:
        ray.shutdown()
        _opened.clear()

    if not ray.is_initialized():
        try:
            ray.init(
                address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False,
                logging_level=logging.ERROR, ignore_reinit_error=True,
            )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            reason = " ".join(str(error).split())
            raise LaunchError(f"the Ray cluster at {address} cannot be reached: {reason}") from None

        _opened[:] = [address]

    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise LaunchError(
            f"the Ray cluster at {address} does not answer: {' '.join(str(error).split())}"
        ) from None


def _check_port(address: str) -> None:
    """Check that a port of an address answers; an address without one, such as `auto`, passes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        return

    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LaunchError(
            f"no Ray cluster answers at {address}: is its head running there? ({reason})"
        ) from None
