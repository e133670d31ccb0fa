"""The option `--trials-on`: the cluster on which the trials of a trainer run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.trainer.daemon.executors import TrialExecutor
    from archive.trainer.daemon.options import TrainerOptions


def executor_of(archive: Archive, text: str, options: TrainerOptions) -> TrialExecutor:
    """Return the executor of a text like `ray:gpus=1,cpus=4`.

    Raises:
        UnknownNameError: There is no such option.
        UsageError: The text names another engine than Ray, or the value of an option cannot be
            used.
        SettingsError: Ray is not installed.
        LaunchError: The cluster cannot be reached.
    """
    from archive.launchers import registry
    from archive.launchers.ray_cluster import RayLauncher

    cluster = registry.create_from(text, archive.connection.settings)
    if not isinstance(cluster, RayLauncher):
        raise UsageError(
            f"--trials-on takes ray, got {text!r}; archive launch starts trainers on other engines"
        )

    from archive.trainer.dispatch.ray_executor import RayExecutor

    scratch = None if options.scratch is None else os.fspath(options.scratch)
    return RayExecutor(
        cluster.address,
        cluster.request(),
        device=options.device,
        threads=options.threads,
        scratch=scratch,
    )
