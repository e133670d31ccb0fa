"""Devices of a trainer, and the trials on each, as options of `archive trainer`."""

from __future__ import annotations

from functools import reduce

import click

from archive.cli.parameters import Command, Count

_OPTIONS = (
    click.option(
        "--devices",
        "--device",
        "device",
        metavar="auto|cpu|N[,N…]",
        default="auto",
        help="Devices of the trials. auto: all GPUs that no other trainer of this machine uses; "
        "the CPU of a machine "
        "without GPUs. 0,1,3: these GPUs. Each trial sees its own GPU alone.",
    ),
    click.option(
        "--slots",
        type=Count(1),
        show_default="one a device",
        help="Number of trials at a time. With --devices auto, no more GPUs are taken than these "
        "need.",
    ),
    click.option(
        "--slots-per-device",
        type=Count(1),
        show_default="slots / devices",
        help="Number of trials at a time on each device.",
    ),
    click.option(
        "--share-devices",
        is_flag=True,
        help="Use GPUs that other trainers of this machine use, too, those with the fewest "
        "trainers first.",
    ),
)


def device_options(command: Command) -> Command:
    """Add the options of the devices to a command."""
    return reduce(lambda inner, option: option(inner), reversed(_OPTIONS), command)
