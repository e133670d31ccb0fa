"""Where a recipe comes from: a built-in one, a package, or this machine's `recipes.toml`.

The daemon finds the source of a recipe by its name; only the process of a trial imports it.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distributions
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from archive.errors import SettingsError
from archive.store.protocol_names import DEFAULT_RECIPE
from archive.trainer.recipes.base import Fit
from archive.trainer.recipes.command import CommandRecipe
from archive.trainer.recipes.declarations import RecipeDeclaration, read_declaration
from archive.trainer.recipes.loading import (
    check_module,
    check_writers,
    file_of_target,
    load_target,
)

MACHINE = "recipes.toml"
"""Origin of the recipes that the file of this name in the trainer's home has."""


@dataclass(frozen=True, slots=True)
class RecipeSource:
    """A recipe on this machine.

    Attributes:
        name: Its name in studies.
        target: `module:function`, or `/path/of/file.py:function`; the command, for one that runs a
            command.
        origin: `built-in`, the package with its version, or `recipes.toml`.
        command: The command of a recipe that runs one.
        model: Target of the function that builds its networks; empty for none.
        declared: Declarations in `recipes.toml`, which come before its file's.
    """

    name: str
    target: str
    origin: str = "built-in"
    command: CommandRecipe | None = None
    model: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def declaration(self) -> RecipeDeclaration:
        """Return the tasks, spaces and inputs that it is written for, without importing it.

        Raises:
            SettingsError: Its file declares them in another form.
        """
        declaration = RecipeDeclaration()
        if self.command is None and self.name != DEFAULT_RECIPE:
            module, _, attribute = self.target.rpartition(":")
            declaration = read_declaration(
                file_of_target(self.target) or _origin(module), attribute
            )

        return declaration.declare(self.declared, MACHINE)

    def check_file(self) -> None:
        """Check that the recipe's file can be a module, and that others may not write to it.

        Nothing is imported. Of a command, the program is checked if it is given by its path.

        Raises:
            SettingsError: It does not exist, all users may write to it, or it has a dot in its
                name.
        """
        if (file := self._file()) is None:
            return

        if self.command is None:
            check_module(f"the recipe {self.name!r}", file)
        else:
            check_writers(f"the recipe {self.name!r}", file)

    def load(self) -> Fit:
        """Import the recipe, and return its function.

        Raises:
            SettingsError: It cannot be imported, or is no function.
        """
        self.check_file()
        if self.command is not None:
            return self.command

        target = load_target(f"the recipe {self.name!r}", self.target)
        if not callable(target):
            raise SettingsError(
                f"the recipe {self.name!r} must be a function of a TrialContext, got "
                f"{type(target).__name__}"
            )

        fit: Fit = target
        return fit

    def file_of(self, fit: Fit) -> str | None:
        """Return the file of its imported function.

        None for the built-in recipe, a command and a callable object.
        """
        code = (
            None if self.name == DEFAULT_RECIPE else getattr(inspect.unwrap(fit), "__code__", None)
        )
        return getattr(code, "co_filename", None)

    def record(self) -> dict[str, str]:
        """Return what an evaluation records of the recipe: nothing of the default one."""
        if self.name == DEFAULT_RECIPE:
            return {}

        return {"recipe": self.name, "recipe_version": self._version()}

    def _version(self) -> str:
        if self.command is not None:
            return self.origin

        if (file := self._file()) is not None:
            return digest_of(file) or self.origin

        if self.origin != MACHINE:
            return self.origin

        return version_of(self.target.rpartition(":")[0]) or self.origin

    def _file(self) -> Path | None:
        if self.command is not None:
            program = self.command.command[0]
            return Path(program) if os.sep in program else None

        return file_of_target(self.target)


def version_of(module: str) -> str | None:
    """Return `package version`, or the digest of a module that no package installed.

    None if it has no file.
    """
    file = _origin(module)
    if file is None:
        return None

    return next(_packages(file), None) or digest_of(file)


def _origin(module: str) -> Path | None:
    """Return the file of an installed module; None if it has none."""
    spec = _spec_of(module)
    if spec is None or spec.origin is None or not spec.has_location:
        return None

    return Path(spec.origin)


def digest_of(file: Path) -> str | None:
    """Return a digest of a file, whose content is private to the machine.

    None if it cannot be read.
    """
    try:
        return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"
    except OSError:
        return None


def _spec_of(module: str) -> ModuleSpec | None:
    """Return where a module is. `find_spec` would import the packages around a submodule."""
    top, *rest = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None

    for name in list(accumulate([top, *rest], "{}.{}".format))[1:]:
        if spec is None or spec.submodule_search_locations is None:
            return None

        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))

    return spec


def _packages(file: Path) -> Iterator[str]:
    """Yield the package that has installed a file.

    One that is installed to be edited lists no modules.
    """
    for folder in sys.path:
        if not file.is_relative_to(Path(folder).absolute()):
            continue

        line = f"\n{file.relative_to(Path(folder).absolute()).as_posix()},"
        for package in distributions(path=[folder]):
            # Parsing the lists of all packages takes 0.3 s.
            if line in "\n" + (package.read_text("RECORD") or ""):
                yield f"{package.name} {package.version}"
