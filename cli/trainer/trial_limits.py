"""Limits of trials, as options of commands that start trainers: a trial beyond one ends, and the
others continue.
"""

from __future__ import annotations

from functools import reduce

import click

from archive.cli.parameters import Command, Duration, Size

_LIMITS = (
    click.option(
        "--stall",
        "stall_seconds",
        type=Duration(open_minimum=True),
        default="30min",
        help="End a trial that has reported no progress for this long.",
    ),
    click.option(
        "--trial-timeout",
        "trial_seconds",
        type=Duration(open_minimum=True),
        show_default="none",
        help="End a trial that takes longer than this; its proposal fails.",
    ),
    click.option(
        "--scratch-limit",
        "scratch_bytes",
        type=Size(),
        default="20GB",
        help="End a trial whose temporary files take more than this; its proposal fails. A SIZE "
        "is 500MB, 20GB or "
        "4GiB.",
    ),
    click.option(
        "--memory-limit",
        "memory_bytes",
        type=Size(),
        show_default="none",
        help="End a trial whose processes take more memory than this, without that of GPUs; its "
        "proposal fails.",
    ),
)


def limit_options(command: Command) -> Command:
    """Add the options of the limits to a command."""
    return reduce(lambda inner, option: option(inner), reversed(_LIMITS), command)
