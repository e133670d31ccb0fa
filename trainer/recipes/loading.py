"""Code that files of this machine name: modules and files with a function, and how it is imported."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from archive.errors import SettingsError

FILE_SUFFIX = ".py"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A function of this machine that builds the networks of a space of parameters.

    Attributes:
        name: Its name in spaces, or the recipe that names it.
        target: `module:function`, or `/path/of/file.py:function`.
    """

    name: str
    target: str

    def load(self) -> Callable[..., Any]:
        """Import the function.

        Raises:
            SettingsError: It cannot be imported, is no function, or all users may write to its
                file.
        """
        described = f"the model {self.name!r}"
        if (file := file_of_target(self.target)) is not None:
            check_module(described, file)

        function = load_target(described, self.target)
        if not callable(function):
            raise SettingsError(
                f"{described} must be a function that returns a torch.nn.Module, got "
                f"{type(function).__name__}"
            )

        loaded: Callable[..., Any] = function
        return loaded


def file_of_target(target: str) -> Path | None:
    """Return the file of `file.py:function`; None for a function of a module."""
    module = target.rpartition(":")[0]
    return Path(module) if module.endswith(FILE_SUFFIX) else None


def check_module(described: str, file: Path) -> None:
    """Check that a file can be a module, and that others may not write to it.

    Args:
        described: What the file is of, for a message: `the recipe 'mine'`.
        file: The file.

    Raises:
        SettingsError: It cannot.
    """
    check_writers(described, file)
    if not file.is_file():
        raise SettingsError(f"{described} cannot be loaded: there is no file {file}")

    if "." in file.stem:
        raise SettingsError(
            f"{described} cannot be loaded: the name of its file must have no "
            f"dot before {FILE_SUFFIX}, got {file.name!r}"
        )


def load_target(described: str, target: str) -> Any:
    """Import what `module:name` or `file.py:name` refers to.

    Args:
        described: What it is, for a message: `the recipe 'mine'`.
        target: The reference.

    Raises:
        SettingsError: It cannot be imported.
    """
    module, _, attribute = target.rpartition(":")
    try:
        source: Any = _import(module)
        for name in attribute.split("."):
            source = getattr(source, name)
    except SettingsError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise SettingsError(f"{described} cannot be loaded ({target}): {reason}") from error

    return source


def check_writers(described: str, file: Path) -> None:
    """Refuse a file that all users may write to; its owner and group are trusted."""
    if file.is_file() and file.stat().st_mode & stat.S_IWOTH:
        raise SettingsError(
            f"{described} cannot be loaded: all users may write to {file}, which a "
            "trainer runs: "
            f"run chmod o-w {file}"
        )


def _import(module: str) -> Any:
    """Return a module by its name or its file.

    A file is imported by its name, with its folder first on the path, so that it may import the
    files beside it, and its own child processes find it again.
    """
    if not module.endswith(FILE_SUFFIX):
        return import_module(module)

    file = Path(module)
    sys.path.insert(0, str(file.parent))
    imported = import_module(file.stem)
    if imported.__file__ is None or not file.samefile(imported.__file__):
        raise SettingsError(
            f"{file} cannot be imported: a module {file.stem!r} exists already, "
            "give it another name"
        )

    return imported
