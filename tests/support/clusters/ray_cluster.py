"""A Ray cluster of several nodes on this machine, each a raylet with separate processes."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

OBJECT_STORE_BYTES = 80_000_000


@contextmanager
def cluster(nodes: int = 2, cpus: int = 2) -> Iterator[Any]:
    """Give a cluster whose head node runs no actors, or skip the test."""
    # Not the token in the home of the user.
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    # No processes for work that may come, and none that waits for all others of a busy machine.
    settings = {"prestart_worker_first_driver": False, "worker_niceness": 0}
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
        own.wait_for_nodes()
        yield own
    finally:
        ray.shutdown()
        own.shutdown()
        logging.getLogger("ray").handlers.clear()
