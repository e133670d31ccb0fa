"""A Ray cluster of several nodes on this machine, each a raylet with separate processes."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

OBJECT_STORE_BYTES = 80_000_000
START_SECONDS = 300.0
"""Longest start of a node; Ray itself gives up after 30 seconds, which a busy machine may need."""


@contextmanager
def cluster(nodes: int = 2, cpus: int = 2) -> Iterator[Any]:
    """Give a cluster whose head node runs no actors, or skip the test."""
    # Not the token in the home of the user.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    ray = pytest.importorskip("ray")
    from ray._private import services
    from ray.cluster_utils import Cluster

    # No processes for work that may come, and none that waits for all others of a busy machine.
    settings = {"prestart_worker_first_driver": False, "worker_niceness": 0}
    with mock.patch.object(services, "get_node", _patient(services.get_node)):
        own = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False,
                "_system_config": settings,
            },
        )  # fmt: skip
        try:
            for _ in range(nodes):
                own.add_node(num_cpus=cpus, object_store_memory=OBJECT_STORE_BYTES)

            own.wait_for_nodes(START_SECONDS)
            yield own
        finally:
            ray.shutdown()
            own.shutdown()
            logging.getLogger("ray").handlers.clear()


def _patient(get_node: Callable[..., Any]) -> Callable[..., Any]:
    """Return Ray's question about a node that starts, asked until it has an answer."""

    def answer(*arguments: Any, **named: Any) -> Any:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return get_node(*arguments, **named)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise

                time.sleep(0.5)

    return answer
