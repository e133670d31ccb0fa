"""`archive launch`: starts trainers on an engine, lists them, and stops them."""

from __future__ import annotations

import difflib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from archive.cli.groups import CommandGroup
from archive.cli.launch.engines import FleetItem, engine_command, fleet_item
from archive.cli.names import FLEET
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_json, print_message, print_table, span
from archive.errors import LaunchError, SettingsError, UnknownNameError, UsageError
from archive.values import counted

if TYPE_CHECKING:
    from archive.launchers.records import TrainerFleet
    from archive.settings import Settings

COLUMNS = ("fleet", "engine", "study", "trainers", "running", "pending", "age", "note")


@dataclass(frozen=True)
class FleetList:
    """The fleets of an archive.

    Attributes:
        fleets: The oldest first.
    """

    fleets: list[FleetItem]


@dataclass(frozen=True)
class StoppedFleets:
    """Fleets that were stopped.

    Attributes:
        fleets: Their names.
        trainers: Number of their trainers that were stopped.
    """

    fleets: list[str]
    trainers: int


class EngineGroup(CommandGroup):
    """A group with a command for each registered launcher."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the launchers, then the commands of all fleets."""
        from archive.launchers import registry

        return [*registry.names(), *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; the command of a launcher has its options."""
        from archive.launchers import registry

        if cmd_name in registry.names():
            try:
                return engine_command(cmd_name)
            except SettingsError as error:
                # One broken package must not hide the other launchers.
                return _explain(cmd_name, error)

        command = super().get_command(ctx, cmd_name)
        if command is None and not ctx.resilient_parsing:
            if difflib.get_close_matches(cmd_name, self.commands):
                raise UnknownNameError("command", cmd_name, self.commands)

            raise UnknownNameError("engine", cmd_name, registry.names())

        return command


def _explain(name: str, error: SettingsError) -> click.Command:
    """Return the command of a launcher that cannot be loaded, which says why."""

    @click.command(
        name, short_help="Cannot be loaded.", context_settings={"ignore_unknown_options": True}
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def broken(arguments: tuple[str, ...]) -> None:
        raise error

    return broken


@click.group(cls=EngineGroup)
def launch() -> None:
    """Start trainers on an engine: this machine, a cluster.

    An engine only keeps `archive trainer` processes alive; the queue stays in the database. The
    trainers of one command are a fleet, which `archive launch list` and `archive launch stop` know
    by its name.

    Example: archive launch slurm --trainers 64 --partition gpu --gpus 1 --time 8h -- --slots 2
    """


@launch.command("list", short_help="List the fleets and how many of their trainers run.")
@json_option
@click.pass_context
def list_fleets(ctx: click.Context, as_json: bool) -> None:
    """List the fleets of this archive, and how many of their trainers run or are pending, as their
    engines say.

    A fleet has ended when all its trainers have left; `archive launch stop --ended` removes it from
    the list.
    """
    from archive.launchers import records
    from archive.settings import load

    settings = load(**settings_of(ctx))
    items = [_read_fleet(settings, fleet) for fleet in records.saved(settings)]
    if as_json:
        print_json(FleetList(items))
        return

    if not items:
        print_message("there are no fleets; start one with: archive launch")
        return

    print_table(COLUMNS, [_row(item) for item in items])
    if ended := sum(item.ended for item in items):
        print_message(
            f"{counted(ended, 'fleet')} ended; "
            "remove from the list with: archive launch stop --ended"
        )


@launch.command(short_help="Stop fleets.")
@click.argument("names", metavar="[FLEET]...", type=FLEET, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Stop all fleets of this archive.")
@click.option(
    "--ended", is_flag=True, help="Remove the fleets from the list whose trainers have all left."
)
@click.option(
    "--forget",
    is_flag=True,
    help="Remove fleets with an unreachable engine from the list. Trainers that still run end "
    "when they are idle.",
)
@json_option
@click.pass_context
def stop(
    ctx: click.Context,
    names: tuple[str, ...],
    everything: bool,
    ended: bool,
    forget: bool,
    as_json: bool,
) -> None:
    """Stop fleets: pending trainers never start, running ones return their proposals and end."""
    from archive.launchers import records, registry
    from archive.settings import load

    if bool(names) + everything + ended != 1:
        raise UsageError("name the fleets to stop (archive launch list), or give --all or --ended")

    settings = load(**settings_of(ctx))
    if names:
        fleets = [records.get(settings, name) for name in dict.fromkeys(names)]
    else:
        fleets = records.saved(settings)
        if not everything:
            fleets = [fleet for fleet in fleets if _read_fleet(settings, fleet).ended]

    if not fleets:
        print_message("no fleet has ended" if ended else "there are no fleets")

    stopped = 0
    left = []
    for fleet in fleets:
        try:
            launcher = registry.of_fleet(fleet)
            records.begin_stop(fleet)
            ids = [trainer.id for trainer in launcher.running(fleet)]
            if ids:
                launcher.stop(fleet, ids)
        except (LaunchError, UsageError) as error:
            if not forget:
                left.append((fleet.name, error))
                continue

            print_message(f"the fleet {fleet.name} is forgotten: {error}")
        else:
            stopped += len(ids)
            print_message(f"the fleet {fleet.name} is stopped: {counted(len(ids), 'trainer')}")

        records.remove(fleet)

    if as_json:
        remaining = {name for name, _ in left}
        names_of_stopped = [fleet.name for fleet in fleets if fleet.name not in remaining]
        print_json(StoppedFleets(names_of_stopped, stopped))

    if left:
        reasons = "; ".join(f"the fleet {name} is not stopped: {error}" for name, error in left)
        raise LaunchError(f"{reasons}; --forget removes it from the list")


def _read_fleet(settings: Settings, fleet: TrainerFleet) -> FleetItem:
    """Return a fleet as its engine knows it, or the reason why the engine did not answer."""
    from archive.launchers import records, registry

    try:
        trainers, ended = records.running_or_ended(registry.of_fleet(fleet), fleet)
    except (LaunchError, UsageError) as error:
        return fleet_item(fleet, (), problem=str(error))

    return fleet_item(fleet, trainers, ended=ended)


def _row(item: FleetItem) -> list[Any]:
    lower = "" if item.lower == item.upper else f"{item.lower}.."
    states = [trainer.state for trainer in item.trainers]
    # Without an answer of the engine, the numbers are unknown.
    running = states.count("running") if item.problem is None else None
    pending = states.count("pending") if item.problem is None else None
    return [
        item.fleet,
        item.engine,
        item.study,
        f"{lower}{item.upper}",
        running,
        pending,
        span(time.time() - item.created),
        _note(item),
    ]


def _note(item: FleetItem) -> str | None:
    if item.problem is not None or item.ended:
        return item.problem or "ended"

    for trainer in item.trainers:
        if trainer.reason:
            return f"waits for {trainer.reason}"

    return None
