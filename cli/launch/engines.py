"""The commands `archive launch ENGINE`, which start trainers, and follow the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from archive.cli.names import STUDY
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, open_archive, print_data, print_json, print_message
from archive.errors import LaunchError, TrainingError, UsageError
from archive.values import counted, whole_number

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.launchers.base import LaunchedTrainer, Launcher
    from archive.launchers.keeper import FleetKeeper
    from archive.launchers.options import LaunchOption
    from archive.launchers.records import TrainerFleet
    from archive.settings import Settings

    BoundsType = click.ParamType[tuple[int, int]]
    ValueType = click.ParamType[Any]
else:
    # Generic from click 8.4 on.
    BoundsType = ValueType = click.ParamType

LOOK_SECONDS = 1.0
"""Shortest time between two looks at the queue that a fleet follows."""

_METAVARS = {
    "text": "TEXT",
    "texts": "TEXT",
    "count": "N",
    "positive": "N",
    "number": "NUMBER",
    "duration": "TIME",
    "size": "SIZE",
}


@dataclass(frozen=True)
class FleetItem:
    """A fleet and its trainers.

    Attributes:
        fleet: Name of the fleet.
        engine: Name of the launcher.
        study: The one study that it serves; null means any.
        lower: Smallest number of trainers.
        upper: Largest number of trainers.
        created: Time of its creation, in seconds since 1970.
        ended: Whether all trainers have left, and none will be started.
        problem: Why the engine did not answer; null where it did.
        trainers: Those that are pending or running.
    """

    fleet: str
    engine: str
    study: str | None
    lower: int
    upper: int
    created: float
    ended: bool
    problem: str | None
    trainers: Sequence[LaunchedTrainer]


@dataclass(frozen=True)
class FleetDocument(FleetItem):
    """A fleet that was started."""


def fleet_item(
    fleet: TrainerFleet,
    trainers: Sequence[LaunchedTrainer],
    *,
    ended: bool = False,
    problem: str | None = None,
) -> FleetItem:
    """Return a fleet and its trainers as an item of the JSON output."""
    return FleetItem(
        fleet=fleet.name,
        engine=fleet.engine,
        study=fleet.study,
        lower=fleet.lower,
        upper=fleet.upper,
        created=fleet.created,
        ended=ended,
        problem=problem,
        trainers=trainers,
    )


class TrainerBounds(BoundsType):
    """A number of trainers, `8`, or two bounds, `0..8`."""

    name = "bounds"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return N|MIN..MAX."""
        return "N|MIN..MAX"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return the two bounds.

        Raises:
            BadParameter: The text is no number of trainers.
        """
        first, separator, last = str(value).partition("..")
        lower = whole_number(first)
        upper = whole_number(last if separator else first)
        if lower is None or upper is None or lower > upper or upper == 0:
            self.fail(f"{value!r:.80} is no number of trainers: write 8, or 0..8", param, ctx)

        return lower, upper


class LaunchValue(ValueType):
    """A value of a launcher's option."""

    name = "value"

    def __init__(self, launcher: type[Launcher], option: LaunchOption) -> None:
        self.launcher = launcher
        self.option = option

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return the kind of the value."""
        return _METAVARS.get(self.option.kind)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value, or one of several.

        Raises:
            BadParameter: It cannot be used.
        """
        from archive.launchers.options import convert

        try:
            converted = convert(self.launcher, {self.option.name: value})[self.option.name]
        except UsageError as error:
            self.fail(str(error), param, ctx)

        return converted[0] if self.option.kind == "texts" else converted


def engine_command(name: str) -> click.Command:
    """Return the command of a launcher."""
    from archive.launchers import options, registry
    from archive.settings import load
    from archive.values import read_summary

    kind = registry.get(name)
    summary = read_summary(kind)
    launcher_options = [_click_option(kind, option) for option in options.options_of(kind).values()]

    @click.command(name, short_help=summary)
    @click.option(
        "--trainers", "bounds", type=TrainerBounds(), default="1", show_default=True, help=_TRAINERS
    )
    @click.option(
        "--study", type=STUDY, show_default="any study", help="Train proposals of this study only."
    )
    @click.option(
        "--name",
        "fleet_name",
        metavar="NAME",
        show_default=f"{name}-STUDY",
        help="Name of the fleet.",
    )
    @click.option(
        "--dry-run", is_flag=True, help="Print what would be submitted, and start nothing."
    )
    @json_option
    @click.argument("arguments", metavar="[-- TRAINER OPTIONS]", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def command(
        ctx: click.Context,
        /,
        bounds: tuple[int, int],
        study: str | None,
        fleet_name: str | None,
        dry_run: bool,
        as_json: bool,
        arguments: tuple[str, ...],
        **values: Any,
    ) -> None:
        settings = load(**settings_of(ctx))
        launcher = registry.create(name, _without_left_out(values), settings)
        fleet = plan_fleet(settings, launcher, fleet_name, study, bounds, arguments)
        if dry_run:
            print_data(launcher.preview(fleet, fleet.upper))

        registry.check_reachable(launcher, settings, f"archive launch {name}")
        if not dry_run:
            _launch(ctx, launcher, fleet, as_json)

    command.help = _HELP.format(summary=summary, name=name)
    command.params[2:2] = launcher_options
    return command


def _without_left_out(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in values.items()
        if not (value is None or value is False or value == ())
    }


_PORTABLE = ("idle", "wait", "grace", "slots")
"""Options of [trainer] in config.toml that mean the same on any machine."""


def plan_fleet(
    settings: Settings,
    launcher: Launcher,
    name: str | None,
    study: str | None,
    bounds: tuple[int, int],
    arguments: tuple[str, ...],
) -> TrainerFleet:
    """Return the fleet that a command asks for, with the options of its trainers checked.

    Args:
        settings: Settings of the archive.
        launcher: The launcher.
        name: Name of the fleet; None for a new one.
        study: The only study that the trainers serve.
        bounds: Smallest and largest number of trainers.
        arguments: Options of `archive trainer`.

    Raises:
        SettingsError: The name is invalid, or another fleet has it.
        UsageError: `archive trainer` does not take the options.
    """
    from archive.launchers import options, records
    from archive.launchers.records import TrainerFleet

    # The table [trainer] of config.toml is before the launcher's defaults, and behind the command
    # line. The trainers get its values as options: their home may be another one.
    defaults = dict(zip(launcher.arguments[::2], launcher.arguments[1::2], strict=True))
    defaults["--grace"] = f"{launcher.grace_seconds:g}s"
    for option in _PORTABLE:
        if option in settings.trainer:
            defaults[f"--{option}"] = str(settings.trainer[option])

    words: list[str] = []
    for flag, value in defaults.items():
        words += [flag, value]

    if study is not None:
        words += ["--study", study]

    words += arguments
    parsed = parse_trainer_options(words)
    if name is not None:
        records.check_name(name)
        records.check_new(settings, name)

    return TrainerFleet(
        name=name or records.new_name(settings, launcher.name, parsed["study"]),
        engine=launcher.name,
        settings=settings,
        arguments=tuple(words),
        study=parsed["study"],
        slots=parsed["slots"] or 1,
        lower=bounds[0],
        upper=bounds[1],
        grace_seconds=parsed["parting_seconds"],
        options=options.values(launcher),
    )


def parse_trainer_options(arguments: list[str]) -> Mapping[str, Any]:
    """Parse the options of `archive trainer` before many trainers refuse them.

    Raises:
        UsageError: They are no options of `archive trainer`.
    """
    from archive.cli.trainer.command import start

    try:
        context = click.get_current_context(silent=True)
        return start.make_context("archive trainer", list(arguments), parent=context).params
    except click.UsageError as error:
        raise UsageError(
            f"the trainers would refuse their options: {error.format_message()}"
        ) from None


def _launch(ctx: click.Context, launcher: Launcher, fleet: TrainerFleet, as_json: bool) -> None:
    from archive.launchers import records

    with open_archive(ctx) as archive, ExitStack() as attended:
        if fleet.study is not None:
            archive.studies.get(fleet.study)

        # With the address and the login that this connection has.
        fleet = records.add(replace(fleet, settings=archive.connection.settings))
        attended.enter_context(records.attending(fleet))
        if fleet.lower:
            _start(launcher, fleet)

        started = counted(fleet.lower, "trainer")
        print_message(
            f"the fleet {fleet.name} has {started}; stop it with: archive launch stop {fleet.name}"
        )
        if as_json:
            started_fleet = fleet_item(fleet, launcher.running(fleet))
            print_json(FleetDocument(**vars(started_fleet)))

        if fleet.lower < fleet.upper:
            follow(archive, launcher, fleet)


def _start(launcher: Launcher, fleet: TrainerFleet) -> None:
    """Start the least number of trainers; remove the record of a fleet without any.

    Raises:
        LaunchError: The engine refused, perhaps after some of them.
    """
    from archive.launchers import records

    try:
        # Nothing could say what an engine has started that cannot be asked.
        launcher.running(fleet)
    except LaunchError:
        records.remove(fleet)
        raise

    try:
        launcher.start(fleet, fleet.lower)
    except LaunchError as error:
        try:
            started = str(len(launcher.running(fleet)))
        except LaunchError:
            started = "an unknown number"

        if started == "0":
            records.remove(fleet)
            raise

        raise LaunchError(
            f"{error}; {started} of {fleet.lower} trainers of the fleet {fleet.name} started; "
            f"stop them with: archive launch stop {fleet.name}"
        ) from error


def follow(archive: Archive, launcher: Launcher, fleet: TrainerFleet) -> None:
    """Adjust a fleet to the queue until Ctrl-C, or until another command stops the fleet.

    Args:
        archive: The archive with the queue.
        launcher: The engine.
        fleet: The fleet, on record.

    Raises:
        InterruptedBySignal: Ctrl-C, or another signal that ends the command.
        SettingsError: A trainer refused its settings.
        StoreError: The database does not answer within the patience.
        TrainingError: Trainers fail or end early, one after another, without a result.
        UnknownNameError: The fleet's study was deleted.
    """
    print_message(
        f"following the queue with up to {fleet.upper} trainers; "
        "Ctrl-C ends this, and they end when idle"
    )
    from archive.launchers.keeper import FleetKeeper
    from archive.searches.interruption import InterruptedBySignal

    keeper = FleetKeeper(launcher, fleet)
    try:
        _follow(archive, keeper, fleet)
    except InterruptedBySignal as interrupted:
        # The same command would start a fleet beside this one.
        interrupted.message = (
            f"interrupted: the fleet {fleet.name} gets no further trainers, "
            f"and those that run end when idle; archive launch stop {fleet.name} ends them now"
        )
        raise


def _follow(archive: Archive, keeper: FleetKeeper, fleet: TrainerFleet) -> None:
    from archive.launchers import records
    from archive.launchers.keeper import TRUST_SECONDS, find_passed_over, queue_length
    from archive.searches.interruption import Interruption

    shown: list[str] = []
    with Interruption(partial(print_message, "no longer following the queue")) as interruption:
        while True:
            work, progress = queue_length(archive, fleet.study)
            # A trainer that leaves although proposals wait may lack what they need; so would the
            # next one.
            left = keeper.left_seconds
            recent = left is not None and left < TRUST_SECONDS and work > 0
            lacking = find_passed_over(archive, fleet) if recent else []
            with records.adjusting(fleet) as kept:
                if not kept:
                    print_message(
                        f"the fleet {fleet.name} is stopped: no longer following the queue"
                    )
                    return

                try:
                    state = keeper.keep(work - sum(group.waiting for group in lacking), progress)
                except TrainingError as error:
                    raise TrainingError("; ".join([str(error), *map(str, lacking)])) from error

            lines = [str(state), *map(str, lacking)]
            for line in lines:
                if line not in shown:
                    print_message(line)

            shown = lines
            interruption.wait(max(LOOK_SECONDS, keeper.launcher.poll_seconds))
            interruption.check()


def _click_option(kind: type[Launcher], option: LaunchOption) -> click.Option:
    flag = f"--{option.name.replace('_', '-')}"
    if option.kind == "truth":
        return click.Option([flag, option.name], is_flag=True, help=option.help)

    several = option.kind == "texts"
    default = option.shown or (None if option.default in (None, ()) else str(option.default))
    return click.Option(
        [flag, option.name],
        type=LaunchValue(kind, option),
        multiple=several,
        show_default=default or False,
        help=option.help + (" May be repeated." if several else ""),
    )


_TRAINERS = (
    "Number of trainers; with two bounds, the command stays and follows the length of the queue."
)
_HELP = """{summary}

Options after -- are options of each `archive trainer`. Defaults of the options stand in config.toml
of the archive's home, in a table [launch.{name}].
"""
