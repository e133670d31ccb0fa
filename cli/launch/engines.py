"""The commands `archive launch ENGINE`, with the options of each launcher."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from archive.cli.names import STUDY
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, open_archive, print_data, print_json, print_message
from archive.errors import LaunchError, UsageError
from archive.values import counted, whole_number

if TYPE_CHECKING:
    from archive.launchers.base import Launcher
    from archive.launchers.fleet import TrainerFleet
    from archive.launchers.options import LaunchOption
    from archive.settings import Settings

    BoundsType = click.ParamType[tuple[int, int]]
    ValueType = click.ParamType[Any]
else:
    # Generic from click 8.4 on.
    BoundsType = ValueType = click.ParamType

_METAVARS = {
    "text": "TEXT", "texts": "TEXT", "count": "N", "positive": "N", "number": "NUMBER",
    "duration": "TIME", "size": "SIZE",
}  # fmt: skip


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
    from archive.launchers.base import check_reachable
    from archive.values import read_summary

    kind = registry.get(name)
    what = read_summary(kind)
    own = [_click_option(kind, option) for option in options.options_of(kind).values()]

    @click.command(name, short_help=what)
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
        from archive import settings as known

        settings = known.load(**settings_of(ctx))
        launcher = registry.create(name, _without_left_out(values), settings)
        fleet = planned(settings, launcher, fleet_name, study, bounds, arguments)
        if dry_run:
            print_data(launcher.preview(fleet, fleet.upper))

        check_reachable(launcher, settings, f"archive launch {name}")
        if not dry_run:
            _launch(ctx, launcher, fleet, as_json)

    command.help = _HELP.format(what=what, name=name)
    command.params[2:2] = own
    return command


def _without_left_out(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in values.items()
        if not (value is None or value is False or value == ())
    }


_ELSEWHERE = ("idle", "wait", "grace", "slots")
"""Options of [trainer] in config.toml that mean the same on any machine."""


def planned(
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
        SettingsError: The name is invalid, or is that of a fleet.
        UsageError: `archive trainer` does not take the options.
    """
    from archive.launchers import options, records
    from archive.launchers.fleet import TrainerFleet

    # The table [trainer] of config.toml is before the launcher's defaults, and behind the command
    # line. The trainers get its values as options: their home may be another one.
    given = dict(zip(launcher.arguments[::2], launcher.arguments[1::2], strict=True))
    given["--grace"] = f"{launcher.grace_seconds:g}s"
    given |= {
        f"--{name}": str(settings.trainer[name]) for name in _ELSEWHERE if name in settings.trainer
    }
    every = [word for pair in given.items() for word in pair]
    every += [] if study is None else ["--study", study]
    every += arguments
    parsed = trainer_options(every)
    if name is not None:
        records.check_name(name)
        records.check_new(settings, name)

    return TrainerFleet(
        name=name or records.new_name(settings, launcher.name, parsed["study"]),
        engine=launcher.name,
        settings=settings,
        arguments=tuple(every),
        study=parsed["study"],
        slots=parsed["slots"] or 1,
        lower=bounds[0],
        upper=bounds[1],
        grace_seconds=parsed["parting_seconds"],
        options=options.values(launcher),
    )


def trainer_options(arguments: list[str]) -> Mapping[str, Any]:
    """Return the parsed options of `archive trainer`, so that a mistake shows before many trainers
    make it.

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
    from archive.cli.launch.command import fleet_item
    from archive.cli.launch.following import follow
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
            print_json(fleet_item(fleet, launcher.running(fleet)))

        if fleet.lower < fleet.upper:
            follow(archive, launcher, fleet)


def _start(launcher: Launcher, fleet: TrainerFleet) -> None:
    """Start the least number of trainers; the record of a fleet of which none has started is
    removed.

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
_HELP = """{what}

Options after -- are those of each `archive trainer`. Defaults of the options stand in config.toml of the archive's
home, in a table [launch.{name}].
"""
