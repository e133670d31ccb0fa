"""Recipes of this machine by name, and which of them trials may run.

    default                         the loop of `archive.trainer.fit`
    entry points of the group       recipes of packages: resnet-sgd = "some_package.training:fit"
      `archive.recipes`               a name of two packages, or of the built-in recipe, is not used
    HOME/recipes.toml               recipes of this machine, written by its user

The name of a recipe comes from the database, where every writer of the archive could choose it. It
is only looked up here: nothing that the database holds is imported or started. `archive trainer
--recipes` narrows the choice further.

The file of this machine has a table for each recipe:

    [resnet-sgd]
    fit = "train.py:fit"             a function in a file; relative paths begin at the file's folder
    [lstm]
    fit = "my_package.lstm:fit"      a function in an installed module
    [in-fortran]
    command = ["./train", "--json"]  a program, relative to the file's folder; it is run by
                                     `archive.trainer.recipes.command`
    data = true                      whether it gets the task's data
    [by-flags]
    command = ["python3", "train.py"]
    flags = true                     the parameters are arguments, --lr=0.1
    prints = true                    it prints metrics as text: accuracy: 0.93
    [mine]
    fit = "train.py:fit"
    model = "models.py:build"        a function that builds the networks of a space of parameters,
                                     for this recipe
    tasks = "classification"         what it is written for, as are spaces and inputs
                                     (`archive.trainer.recipes.declarations`)
    [models]
    "models.py:build" = "models.py:build"
                                     the same for all recipes, by the model's name in spaces

It must belong to the trainer's user or to root, without write access for others, because it names
code to run. A file or program that it names may have another owner and a group with write access,
since the user chose it; only write access for all users is refused
(`archive.trainer.recipes.source`).
"""

from __future__ import annotations

import difflib
import os
import shlex
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.files import expanded
from archive.registry import Registry
from archive.store.protocol_names import DEFAULT_RECIPE, check_word
from archive.trainer.recipes.command import CommandRecipe
from archive.trainer.recipes.declarations import KEYS, check_declared
from archive.trainer.recipes.loading import FILE_SUFFIX, ModelSource
from archive.trainer.recipes.source import MACHINE, RecipeSource

GROUP = "archive.recipes"

MODELS = "models"
"""Table of `recipes.toml` with functions that build networks."""

DEFAULT_SOURCE = RecipeSource(DEFAULT_RECIPE, "archive.trainer.fit.train:fit")

registry = Registry("recipe", GROUP, {DEFAULT_RECIPE: DEFAULT_SOURCE.target})
"""The recipes of packages beside the built-in one."""


@dataclass(frozen=True)
class RecipeAccess:
    """The recipes that trials of a trainer may run.

    Attributes:
        home: Folder of the archive on this machine, with `recipes.toml`.
        allowed: Names of the recipes that may run; None allows all that are on this machine.
    """

    home: Path
    allowed: tuple[str, ...] | None = None

    @cached_property
    def sources(self) -> Mapping[str, RecipeSource]:
        """Recipes of this machine by name: built-in, from packages, or from `recipes.toml`.

        Raises:
            SettingsError: `recipes.toml` cannot be used.
        """
        by_name = {DEFAULT_RECIPE: DEFAULT_SOURCE} | {
            source.name: source for source in _find_installed()
        }
        # A package replaces no built-in recipe, and the file replaces none at all: names in studies
        # keep their meaning.
        for source in read(self.home):
            if source.name in registry.names():
                other = f"one of {registry.package(source.name)}"
                if source.name == DEFAULT_RECIPE:
                    other = "the built-in one"

                raise SettingsError(
                    f"the recipe {source.name!r} in {self.home / MACHINE} has the name of {other}: "
                    "choose another name"
                )

            by_name[source.name] = source

        return MappingProxyType(dict(sorted(by_name.items())))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the recipes that trials may run.

        Raises:
            SettingsError: `recipes.toml` cannot be used.
        """
        return tuple(name for name in self.sources if self.allowed is None or name in self.allowed)

    def check(self) -> None:
        """Check that `recipes.toml` can be read, and that all allowed recipes are on this machine.

        Raises:
            UnknownNameError: An allowed recipe is not on this machine.
            SettingsError: `recipes.toml` cannot be used.
        """
        sources = self.sources
        for name in self.allowed or ():
            if name not in sources:
                raise UnknownNameError("recipe", name, sources)

    def find(self, name: str, *, with_file: bool = False) -> RecipeSource:
        """Return a recipe by the name that a study gives.

        Args:
            name: The name.
            with_file: Whether its file must exist.

        Raises:
            SettingsError: It is not on this machine, or may not run here; another trainer may have
                it.
        """
        if self.allowed is not None and name not in self.allowed:
            raise SettingsError(
                f"the recipe {name!r} may not run here: start the trainer with --recipes {name}"
            )

        if name not in self.sources:
            if name in registry.names():
                registry.check_unique(name)

            near = difflib.get_close_matches(name, [*self.sources], n=1)
            guess = f"did you mean {near[0]}? Else " if near else ""
            raise SettingsError(
                f"the recipe {name!r} is not on this machine: {guess}install its package, "
                f"or name it in {MACHINE} of the trainer's home (archive recipes)"
            )

        if with_file:
            self.sources[name].check_file()

        return self.sources[name]

    @cached_property
    def models(self) -> Mapping[str, ModelSource]:
        """Models of this machine by their name in spaces, from `recipes.toml`.

        Raises:
            SettingsError: `recipes.toml` cannot be used.
        """
        return MappingProxyType(read_models(self.home))

    def model_of(self, recipe: RecipeSource, name: str | None) -> ModelSource | None:
        """Return the function that builds networks for a recipe: the recipe's own comes first.

        Args:
            recipe: The recipe.
            name: Name of the model in the study's space; None for a space without one.

        Returns:
            None where this machine names none.
        """
        if recipe.model:
            return ModelSource(recipe.name, recipe.model)

        return None if name is None else self.models.get(name)


def _find_installed() -> Iterable[RecipeSource]:
    for name in registry.plug_ins():
        # A name of two packages is left out.
        with suppress(SettingsError):
            yield RecipeSource(name, registry.target(name), registry.package(name))


_SWITCHES = ("data", "flags", "prints")
"""Keys of a command that are true or false."""

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def read(home: Path) -> Iterator[RecipeSource]:
    """Yield the recipes of this machine; none without the file.

    Raises:
        SettingsError: The file cannot be read, can be written by others, or has an entry that is no
            recipe.
    """
    path = home / MACHINE
    for name, entry in _read_file(path).items():
        if not _is_models(name, entry):
            yield _source(path, name, entry)


def read_models(home: Path) -> dict[str, ModelSource]:
    """Return the models of this machine by name; none without the file.

    Raises:
        SettingsError: As for `read`.
    """
    path = home / MACHINE
    content = _read_file(path)
    entry = content.get(MODELS, {})
    if not _is_models(MODELS, entry):
        return {}

    models = {}
    for name, target in entry.items():
        where = f"the model {name!r} in {path}"
        models[name] = ModelSource(name, _function(path, where, "a value", target))

    return models


def _is_models(name: str, entry: Any) -> bool:
    """Return whether an entry is the table of models, and no recipe of that name."""
    return name == MODELS and isinstance(entry, dict) and all(":" in key for key in entry)


def _read_file(path: Path) -> dict[str, Any]:
    """Return the content of `recipes.toml`; empty without the file."""
    try:
        _check_owner(path)
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {path}: {reason}") from None


def _check_owner(path: Path) -> None:
    status = path.stat()
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & _OTHERS_MAY_WRITE:
        raise SettingsError(
            f"other users may write to {path}, which names code to run: run chmod 600 {path}"
        )


def _source(path: Path, name: str, entry: Any) -> RecipeSource:
    where = f"the recipe {name!r} in {path}"
    try:
        check_word("recipe", name)
    except UsageError as error:
        raise SettingsError(f"{path}: {error}") from None

    keys = set(entry) if isinstance(entry, dict) else set()
    declared = {key: entry[key] for key in KEYS if key in keys}
    check_declared(declared, where)
    keys -= {*declared}
    if keys in ({"fit"}, {"fit", "model"}):
        fit = _function(path, where, "fit", entry["fit"])
        model = _function(path, where, "model", entry["model"]) if "model" in keys else ""
        return RecipeSource(name, fit, MACHINE, model=model, declared=declared)

    if "command" in keys and keys <= {"command", *_SWITCHES}:
        command = _command(path, where, entry)
        text = shlex.join(command.command)
        return RecipeSource(name, text, MACHINE, command, declared=declared)

    if table := next((key for key in sorted(keys) if isinstance(entry[key], dict)), None):
        raise SettingsError(
            f"{path} has a table for each recipe: write [{table}] in place of [{name}.{table}]"
        )

    got = (", ".join(sorted(keys)) or "no key") if isinstance(entry, dict) else repr(entry)
    raise SettingsError(
        f'{where} must have either fit = "…" and perhaps model = "…", or command = […] and perhaps '
        f"{', '.join(_SWITCHES)} = true, beside {', '.join(KEYS)}, got {got}"
    )


def _function(path: Path, where: str, key: str, fit: Any) -> str:
    module, separator, attribute = fit.rpartition(":") if isinstance(fit, str) else ("", "", "")
    if not (module and separator and attribute):
        raise SettingsError(
            f"{where} must have {key} = 'module:function' or 'file.py:function', got {fit!r}"
        )

    if "\0" in fit:
        raise SettingsError(f"{where} must have {key} without NUL bytes, got {fit!r}")

    if module.endswith(FILE_SUFFIX):
        module = str(path.parent.joinpath(expanded(module)))

    return f"{module}:{attribute}"


def _command(path: Path, where: str, entry: dict[str, Any]) -> CommandRecipe:
    words = entry["command"]
    if not (isinstance(words, list) and words and all(isinstance(word, str) for word in words)):
        raise SettingsError(
            f'{where} must have command = ["program", "argument", …], got {words!r}'
        )

    if word := next((word for word in words if "\0" in word), None):
        raise SettingsError(f"{where} must have a command without NUL bytes, got {word!r}")

    switches = {}
    for key in _SWITCHES:
        switches[key] = entry.get(key, False)
        if not isinstance(switches[key], bool):
            raise SettingsError(f"{where} must have {key} = true or false, got {switches[key]!r}")

    program, *arguments = words
    if os.sep in program:
        program = str(path.parent.joinpath(expanded(program)))

    for index, argument in enumerate(arguments):
        # Programs run in the scratch folder of their trial.
        if Path(argument).suffix and path.parent.joinpath(argument).is_file():
            arguments[index] = str(path.parent.joinpath(argument).resolve())

    return CommandRecipe((program, *arguments), **switches)
