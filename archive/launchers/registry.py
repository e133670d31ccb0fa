"""Launchers by name, with their options: `NAME[:key=value,…]`, as `--on` takes them.

Another package adds a launcher with an entry point of the group `archive.launchers` that loads to a
subclass of `Launcher`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.launchers import options
from archive.launchers.base import Launcher
from archive.registry import Registry
from archive.settings import CONFIG_NAME, Settings

if TYPE_CHECKING:
    from archive.launchers.records import TrainerFleet

registry = Registry(
    "launcher",
    "archive.launchers",
    {
        "kubernetes": "archive.launchers.kubernetes:KubernetesLauncher",
        "local": "archive.launchers.local:LocalLauncher",
        "ray": "archive.launchers.ray_cluster:RayLauncher",
        "slurm": "archive.launchers.slurm:SlurmLauncher",
    },
)


def names() -> tuple[str, ...]:
    """Return the sorted names of all launchers, without loading any."""
    return registry.names()


def get(name: str) -> type[Launcher]:
    """Return the class of a launcher.

    Raises:
        UnknownNameError: There is no launcher of this name.
        SettingsError: Another package's entry point of this name is no launcher.
    """
    return registry.load_class(name, Launcher)  # type: ignore[type-abstract]


def create(name: str, values: Mapping[str, Any], settings: Settings) -> Launcher:
    """Return a launcher.

    Args:
        name: Name of the launcher.
        values: Values of options, as texts or of the right type. They precede
            `config.toml`.
        settings: Settings, with the options of `config.toml`.

    Raises:
        UnknownNameError: There is no such launcher or option.
        SettingsError: A package that the launcher needs is not installed, or it cannot be loaded.
        UsageError: The value of an option cannot be used.
    """
    kind = _usable(name)
    for table in settings.launch:
        if table not in names():
            error = UnknownNameError("launcher", table, names())
            raise SettingsError(f"[launch.{table}] in {settings.home / CONFIG_NAME}: {error}")

    try:
        configured = options.convert(kind, settings.launch.get(name, {}))
    except UsageError as error:
        raise SettingsError(f"[launch.{name}] in {settings.home / CONFIG_NAME}: {error}") from None

    return kind(**configured | options.convert(kind, values))


def of_fleet(fleet: TrainerFleet) -> Launcher:
    """Return the launcher of a fleet with its stored options, whatever `config.toml` has now.

    Raises:
        UnknownNameError: There is no such launcher or option.
        SettingsError: A package that the launcher needs is not installed, or it cannot be loaded.
        UsageError: The value of an option cannot be used.
    """
    kind = _usable(fleet.engine)
    requested = {name: value for name, value in fleet.options.items() if value is not None}
    if options.options_of(kind).keys() <= fleet.options.keys():
        return kind(**options.convert(kind, requested))

    # The record of an earlier release lacks options that had their defaults.
    return create(fleet.engine, requested, fleet.settings)


def _usable(name: str) -> type[Launcher]:
    kind = get(name)
    if absent := [module for module in kind.requires if find_spec(module) is None]:
        remedy = f": pip install 'nas-archive[{kind.extra}]'" if kind.extra else ""
        raise SettingsError(
            f"the launcher {name} needs the package {absent[0]}, which is not installed{remedy}"
        )

    return kind


def create_from(text: str, settings: Settings) -> Launcher:
    """Return the launcher of a text like `slurm:partition=gpu,gpus=1,time=4h`.

    Raises:
        UnknownNameError: There is no such launcher or option.
        SettingsError: A package that the launcher needs is not installed, or it cannot be loaded.
        UsageError: The value of an option cannot be used.
    """
    name, _, rest = text.partition(":")
    return create(name, options.parse(get(name), rest), settings)


def check_reachable(launcher: Launcher, settings: Settings, what: str) -> None:
    """Refuse machines that the archive's server cannot be reached from.

    Args:
        launcher: The launcher.
        settings: Settings of the archive.
        what: What needs other machines, as the beginning of the message.

    Raises:
        SettingsError: Trainers may run on other machines, and the server serves this one only.
    """
    from archive.server import access

    if launcher.elsewhere():
        access.refuse_remote(settings, what)
        if settings.uri is not None and access.is_loopback(settings.uri):
            raise SettingsError(
                f"{what} needs an address that other machines reach, and {settings.uri} means "
                "each machine itself: set ARCHIVE_DB to the name of the database's machine"
            )
