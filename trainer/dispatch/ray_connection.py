"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from archive.errors import LaunchError

NAMESPACE = "nas-archive"
"""Namespace of the actors, the same for all processes of a user."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give the module `ray`, connected to a cluster; the connection stays open for the next use.

    Args:
        address: As `ray.init` takes it.

    Raises:
        LaunchError: The cluster cannot be reached, or does not answer.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if not ray.is_initialized():
        try:
            ray.init(
                address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False,
                logging_level=logging.ERROR, ignore_reinit_error=True,
            )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            reason = " ".join(str(error).split())
            raise LaunchError(f"the Ray cluster at {address} cannot be reached: {reason}") from None
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise LaunchError(f"the Ray cluster at {address} does not answer: {' '.join(str(error).split())}") from None
