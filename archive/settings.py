"""Settings: location of the archive and login.

They come from arguments, environment and `HOME/config.toml`, in this order.

| setting        | environment             | meaning                                                          |
|----------------|-------------------------|------------------------------------------------------------------|
| `home`         | `ARCHIVE_HOME`          | folder of the embedded server, the weights and `config.toml`     |
| `uri`          | `ARCHIVE_DB`            | address of a Neo4j server; none: the embedded server over `home` |
| `database`     | `ARCHIVE_DATABASE`      | database on that server; none: the user's home database          |
| `user`         | `ARCHIVE_USER`          | user on that server (`neo4j`)                                    |
| `password`     | `ARCHIVE_PASSWORD`      | password of that user                                            |
|                | `ARCHIVE_PASSWORD_FILE` | a file of mode 0600 that holds the password                      |
| `weights`      | `ARCHIVE_WEIGHTS`       | folder or fsspec URL of trained weights (`HOME/weights`)         |
| `checkpoints`  | `ARCHIVE_CHECKPOINTS`   | folder or fsspec URL of checkpoints (`HOME/checkpoints`)         |
| `patience`     | `ARCHIVE_PATIENCE`      | longest outage of the server to wait for, in seconds (60)        |
| `idle_seconds` | `ARCHIVE_IDLE_SECONDS`  | the embedded server ends after this time without clients (600)   |
| `heap_mb`      | `ARCHIVE_HEAP_MB`       | bound on the embedded server's heap, in MiB (512)                |
| `java_options` | `ARCHIVE_JAVA_OPTIONS`  | further options of the embedded server's Java runtime            |
| `dump_seconds` | `ARCHIVE_DUMP_SECONDS`  | time between automatic dumps of a used archive (a day); 0: none  |
| `dumps_kept`   | `ARCHIVE_DUMPS_KEPT`    | number of automatic dumps that are kept (3)                      |
| `dumps_share`  | `ARCHIVE_DUMPS_SHARE`   | share of the free disk that automatic dumps may take (0.1)       |

`HOME/config.toml` has the same names except `home`, and `password_file`; its table `[trainer]` has
default options of `archive trainer`, and a table `[launch.NAME]` the options of the launcher NAME
(`archive.launchers`). The file must belong to the user or to root, without write access for others,
since it names options of Java and commands of launchers; with a `password`, it must have the mode
0600. An empty variable counts as not set. A password is never taken from an address, so that it
cannot reach a log or a process list.
"""

from __future__ import annotations

import difflib
import math
import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from archive.errors import SettingsError
from archive.files import DEFAULT_HOME, check_obeyed, expanded

SCHEMES = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
CONFIG_NAME = "config.toml"
RUNTIME_SECRETS = Path("/run/secrets")
"""Folder of the secrets of Docker, Swarm and Podman, visible in the container only."""

_ENVIRONMENT = {
    "home": "ARCHIVE_HOME",
    "uri": "ARCHIVE_DB",
    "database": "ARCHIVE_DATABASE",
    "user": "ARCHIVE_USER",
    "password": "ARCHIVE_PASSWORD",
    "password_file": "ARCHIVE_PASSWORD_FILE",
    "weights": "ARCHIVE_WEIGHTS",
    "checkpoints": "ARCHIVE_CHECKPOINTS",
    "patience": "ARCHIVE_PATIENCE",
    "idle_seconds": "ARCHIVE_IDLE_SECONDS",
    "heap_mb": "ARCHIVE_HEAP_MB",
    "java_options": "ARCHIVE_JAVA_OPTIONS",
    "dump_seconds": "ARCHIVE_DUMP_SECONDS",
    "dumps_kept": "ARCHIVE_DUMPS_KEPT",
    "dumps_share": "ARCHIVE_DUMPS_SHARE",
}
LOGIN = tuple(
    _ENVIRONMENT[name] for name in ("uri", "database", "user", "password", "password_file")
)
"""Variables of the database's address and login; processes that do not use the database are started
without them."""
_NUMBERS: dict[str, type[int] | type[float]] = {
    "patience": float,
    "idle_seconds": float,
    "heap_mb": int,
    "dump_seconds": float,
    "dumps_kept": int,
    "dumps_share": float,
}
_KEYS = tuple(name for name in _ENVIRONMENT if name != "home")


@dataclass(frozen=True)
class Settings:
    """Location of the archive, and login.

    Attributes:
        home: Folder of the embedded server, the weights and `config.toml`.
        uri: Address of a Neo4j server; None means the embedded server over `home`.
        database: Database on that server; None means the user's home database.
        user: User on that server; None means `neo4j`.
        password: Password of that user; never shown. None means a server without authentication.
        patience: Longest outage of the server to wait for, in seconds.
        idle_seconds: The embedded server ends after this many seconds without clients.
        heap_mb: Bound on the embedded server's heap, in MiB.
        weights: Folder or fsspec URL of trained weights; None means `weights` in `home`.
        checkpoints: Folder or fsspec URL of the checkpoints of trials; None means `checkpoints` in
            `home`.
        java_options: Further options of the embedded server's Java runtime, quoted as in a shell.
        dump_seconds: Seconds between automatic dumps of an embedded archive that is used; 0 means
            none.
        dumps_kept: Number of automatic dumps that are kept.
        dumps_share: Share of the free disk that automatic dumps may take, in (0, 1].
        trainer: Options of `archive trainer` by name, from `config.toml`.
        launch: Options of launchers by the launcher's name, from `config.toml`.
    """

    home: Path
    uri: str | None = None
    database: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    patience: float = 60.0
    idle_seconds: float = 600.0
    heap_mb: int = 512
    weights: str | None = None
    checkpoints: str | None = None
    java_options: str = ""
    dump_seconds: float = 86400.0
    dumps_kept: int = 3
    dumps_share: float = 0.1
    trainer: Mapping[str, Any] = field(default_factory=dict, hash=False)
    launch: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Validate address and numbers."""
        if self.uri is not None:
            _check_uri(self.uri)

        for name in _NUMBERS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                raise SettingsError(f"{name} must be a number, got {value!r}")

        if self.patience < 0:
            raise SettingsError(f"patience must be >= 0 seconds, got {self.patience:g}")

        if self.idle_seconds <= 0:
            raise SettingsError(f"idle_seconds must be > 0, got {self.idle_seconds:g}")

        if self.heap_mb < 64:
            raise SettingsError(f"heap_mb must be >= 64, got {self.heap_mb}")

        if not 0 <= self.dump_seconds < math.inf:
            raise SettingsError(
                f"dump_seconds must be >= 0, got {self.dump_seconds:g}; 0: no automatic dumps"
            )

        if self.dumps_kept < 1:
            raise SettingsError(
                f"dumps_kept must be >= 1, got {self.dumps_kept}; dump_seconds = 0: none"
            )

        if not 0 < self.dumps_share <= 1:
            raise SettingsError(f"dumps_share must be > 0 and <= 1, got {self.dumps_share:g}")

        try:
            shlex.split(self.java_options)
        except ValueError as error:
            raise SettingsError(
                f"cannot read java_options {self.java_options!r}: {error}"
            ) from None

    @property
    def place_of_weights(self) -> Path | str:
        """Location of trained weights: a folder, or an fsspec URL."""
        return self._place(self.weights, "weights")

    @property
    def place_of_checkpoints(self) -> Path | str:
        """Location of the checkpoints of trials: a folder, or an fsspec URL."""
        return self._place(self.checkpoints, "checkpoints")

    @property
    def embedded(self) -> bool:
        """Whether the archive is in the embedded server over `home`."""
        return self.uri is None

    def _place(self, location: str | None, name: str) -> Path | str:
        if location is None:
            return self.home / name

        return location if "://" in location else expanded(location).absolute()


def load(
    home: str | os.PathLike[str] | None = None,
    uri: str | None = None,
    database: str | None = None,
    user: str | None = None,
    password: str | None = None,
    password_file: str | os.PathLike[str] | None = None,
    patience: float | None = None,
    idle_seconds: float | None = None,
    heap_mb: int | None = None,
    weights: str | os.PathLike[str] | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    java_options: str | None = None,
    dump_seconds: float | None = None,
    dumps_kept: int | None = None,
    dumps_share: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings, from the first source that has each.

    The sources are arguments, variables of the environment, `config.toml` and defaults.

    Args:
        home: Folder of the archive.
        uri: Address of a Neo4j server.
        database: Database on that server.
        user: User on that server.
        password: Password of that user.
        password_file: A file of mode 0600 with the password.
        patience: Longest outage of the server to wait for, in seconds.
        idle_seconds: Seconds without clients after which the embedded server ends.
        heap_mb: Bound on the embedded server's heap, in MiB.
        weights: Folder or fsspec URL of trained weights.
        checkpoints: Folder or fsspec URL of the checkpoints of trials.
        java_options: Further options of the embedded server's Java runtime.
        dump_seconds: Seconds between automatic dumps; 0 for none.
        dumps_kept: Number of automatic dumps that are kept.
        dumps_share: Share of the free disk that automatic dumps may take.
        environment: Variables instead of `os.environ`.

    Raises:
        SettingsError: A value, a file or its mode is invalid.
    """
    arguments: dict[str, Any] = {
        "home": home, "uri": uri, "database": database, "user": user, "password": password,
        "password_file": password_file, "patience": patience, "idle_seconds": idle_seconds, "heap_mb": heap_mb,
        "weights": weights and str(weights), "checkpoints": checkpoints and str(checkpoints),
        "java_options": java_options, "dump_seconds": dump_seconds, "dumps_kept": dumps_kept,
        "dumps_share": dumps_share,
    }  # fmt: skip
    layers = [
        _set_values(arguments),
        _from_environment(os.environ if environment is None else environment),
    ]
    folder = expanded(
        next((layer["home"] for layer in layers if "home" in layer), DEFAULT_HOME)
    ).absolute()
    layers.append(_from_file(folder / CONFIG_NAME))
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        # A password and a password file replace each other: the stronger layer's form wins.
        if "password" in layer or "password_file" in layer:
            merged.pop("password", None)
            merged.pop("password_file", None)

        merged |= layer

    secret = merged.pop("password_file", None)
    if secret is not None and "password" not in merged and "uri" in merged:
        merged["password"] = read_secret(expanded(secret))

    return Settings(**{**merged, "home": folder})


def environment(settings: Settings) -> dict[str, str]:
    """Return the variables with which another process has the same settings and password."""
    values = {name: getattr(settings, name, None) for name in _ENVIRONMENT}
    return {_ENVIRONMENT[name]: str(value) for name, value in values.items() if value is not None}


def read_secret(path: Path, what: str = "password file") -> str:
    """Return the secret in a file, which only its owner or a container may read.

    Messages call it `what`.

    Raises:
        SettingsError: The file is missing, empty, or open to others.
    """
    if RUNTIME_SECRETS not in path.resolve().parents:
        _check_private(path, what)

    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the {what} {path}: {_reason(error)}") from None

    if not secret:
        raise SettingsError(f"the {what} {path} is empty")

    return secret


def _check_uri(uri: str) -> None:
    shown = _without_secrets(uri)
    try:
        parts = urlsplit(uri)
        host = parts.hostname
        _port = parts.port
    except ValueError:
        raise SettingsError(f"not an address: {shown!r} (expected neo4j://host:7687)") from None

    if "@" in uri:
        raise SettingsError(
            f"the address {shown!r} must not carry a login: set ARCHIVE_USER and "
            "ARCHIVE_PASSWORD_FILE"
        )

    if parts.scheme not in SCHEMES or not host:
        near = [*difflib.get_close_matches(parts.scheme, SCHEMES, n=1), "neo4j"][0]
        raise SettingsError(
            f"not the address of a Neo4j server: {shown!r} (expected for "
            f"instance {near}://host:7687)"
        )

    # The driver takes the query of neo4j:// for a routing context, such as a policy, and ignores
    # everything else.
    ignored = (
        parts.path.strip("/")
        + parts.fragment
        + ("" if parts.scheme.startswith("neo4j") else parts.query)
    )
    if ignored or "database" in parts.query or "password" in parts.query:
        raise SettingsError(
            f"the address {shown!r} must end with the port: ARCHIVE_DATABASE names a database"
        )


def _without_secrets(uri: str) -> str:
    scheme, separator, rest = uri.partition("://") if "://" in uri else ("", "", uri)
    return f"{scheme}{separator}{rest.rpartition('@')[2]}".partition("?")[0]


def _set_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and value != ""}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values = _set_values(
        {name: environment.get(variable) for name, variable in _ENVIRONMENT.items()}
    )
    for name, number in _NUMBERS.items():
        if name in values:
            try:
                values[name] = number(values[name])
            except ValueError:
                raise SettingsError(
                    f"{_ENVIRONMENT[name]} must be a number, got {values[name]!r}"
                ) from None

    return values


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {_reason(error)}") from None

    # Most archives have no such file.
    import tomllib

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"cannot read {path}: {_reason(error)}") from None

    for name, value in content.items():
        _check_entry(path, name, value)

    check_obeyed(path, "the configuration file")
    if "password" in content:
        _check_private(path, "configuration file with a password")

    return _set_values(content)


def _check_entry(path: Path, name: str, value: object) -> None:
    if name == "trainer":
        if not isinstance(value, dict):
            raise SettingsError(
                f"trainer in {path} must be a table of options, [trainer], got {value!r}"
            )

        return

    if name == "launch":
        if not isinstance(value, dict) or not all(
            isinstance(options, dict) for options in value.values()
        ):
            raise SettingsError(
                f"launch in {path} must be a table for each launcher, as [launch.slurm]"
            )

        return

    if name not in _KEYS:
        near = difflib.get_close_matches(name, _KEYS, n=1)
        way_out = f"did you mean {near[0]}?" if near else f"known: {', '.join(_KEYS)}"
        raise SettingsError(f"unknown setting {name!r} in {path}: {way_out}")

    required = _NUMBERS.get(name, str)
    if isinstance(value, bool) or not isinstance(
        value, (int, float) if required is float else required
    ):
        raise SettingsError(
            f"{name} in {path} must be of type {required.__name__}, got {type(value).__name__}"
        )


def _check_private(path: Path, what: str) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise SettingsError(f"cannot read the {what} {path}: {_reason(error)}") from None

    if path.is_dir():
        raise SettingsError(f"the {what} {path} is a folder: name a file")

    if mode & 0o077:
        raise SettingsError(
            f"the {what} {path} is open to others (mode {mode:04o}): run chmod 600 {path}"
        )


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
