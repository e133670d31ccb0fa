"""The option `--proxies` of commands that start trainers."""

from __future__ import annotations

import click

from archive.cli.parameters import Command, Count

COUNT = 100
"""Number of networks of the option without one."""


def proxies_option(command: Command) -> Command:
    """Add the option to a command."""
    return click.option(
        "--proxies",
        type=Count(0),
        is_flag=False,
        flag_value=COUNT,
        show_default="none",
        help="Measure the zero-cost proxies of all trained networks, and of N random ones of the "
        "study's space "
        f"({COUNT} without a number), beside the trials. archive arch proxies measures others.",
    )(command)
