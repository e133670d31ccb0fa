"""Recipes of this machine: `HOME/recipes.toml`, which its user writes.

    [resnet-sgd]
    fit = "train.py:fit"             a function in a file; relative paths begin at the file's folder
    [lstm]
    fit = "my_package.lstm:fit"      a function in an installed module
    [in-fortran]
    command = ["./train", "--json"]  a program (`archive.trainer.recipes.command`), relative to the file's folder
    data = true                      whether it gets the task's data

The file must belong to the trainer's user or to root, without write access for others: it names
code to run. What it names, a file or a program by its path, may have another owner and a group that
writes to it, since the user chose it; only write access for all users is refused
(`archive.trainer.recipes.source`).
"""

from __future__ import annotations

import os
import shlex
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archive.errors import SettingsError, UsageError
from archive.store.protocol_names import check_word
from archive.trainer.recipes.command import CommandRecipe
from archive.trainer.recipes.source import FILE_SUFFIX, MACHINE, RecipeSource
from archive.user_paths import expanded

FILE = MACHINE

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def read(home: Path) -> Iterator[RecipeSource]:
    """Yield the recipes of this machine; none without the file.

    Raises:
        SettingsError: The file cannot be read, can be written by others, or has an entry that is no
            recipe.
    """
    path = home / FILE
    try:
        _check_owner(path)
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read {path}: {reason}") from None

    for name, entry in content.items():
        yield _source(path, name, entry)


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
    if keys == {"fit"}:
        return RecipeSource(name, _function(path, where, entry["fit"]), FILE)

    if keys in ({"command"}, {"command", "data"}):
        command = _command(path, where, entry)
        return RecipeSource(name, shlex.join(command.command), FILE, command)

    if table := next((key for key in sorted(keys) if isinstance(entry[key], dict)), None):
        raise SettingsError(
            f"{path} has a table for each recipe: write [{table}] in place of [{name}.{table}]"
        )

    got = (", ".join(sorted(keys)) or "no key") if isinstance(entry, dict) else repr(entry)
    raise SettingsError(
        f'{where} must have either fit = "…", or command = […] and perhaps data = true, got {got}'
    )


def _function(path: Path, where: str, fit: Any) -> str:
    module, separator, attribute = fit.rpartition(":") if isinstance(fit, str) else ("", "", "")
    if not (module and separator and attribute):
        raise SettingsError(
            f"{where} must have fit = 'module:function' or 'file.py:function', got {fit!r}"
        )

    if "\0" in fit:
        raise SettingsError(f"{where} must have fit without NUL bytes, got {fit!r}")

    if module.endswith(FILE_SUFFIX):
        module = str(path.parent.joinpath(expanded(module)))

    return f"{module}:{attribute}"


def _command(path: Path, where: str, entry: dict[str, Any]) -> CommandRecipe:
    words = entry["command"]
    data = entry.get("data", False)
    if not (isinstance(words, list) and words and all(isinstance(word, str) for word in words)):
        raise SettingsError(
            f'{where} must have command = ["program", "argument", …], got {words!r}'
        )

    if word := next((word for word in words if "\0" in word), None):
        raise SettingsError(f"{where} must have a command without NUL bytes, got {word!r}")

    if not isinstance(data, bool):
        raise SettingsError(f"{where} must have data = true or false, got {data!r}")

    program, *arguments = words
    if os.sep in program:
        program = str(path.parent.joinpath(expanded(program)))

    return CommandRecipe((program, *arguments), data)
