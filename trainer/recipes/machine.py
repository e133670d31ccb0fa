"""Recipes of this machine: `HOME/recipes.toml`, which its user writes.

    [resnet-sgd]
    fit = "train.py:fit"             a function in a file; relative paths begin at the file's folder
    [lstm]
    fit = "my_package.lstm:fit"      a function in an installed module

The file must belong to the trainer's user or to root, and nobody else may be able to write it: it names code to run.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archive.errors import SettingsError, UsageError
from archive.store.protocol_names import check_word
from archive.trainer.recipes.source import FILE_SUFFIX, RecipeSource

FILE = "recipes.toml"

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def read(home: Path) -> Iterator[RecipeSource]:
    """Yield the recipes of this machine; none without the file.

    Raises:
        SettingsError: The file cannot be read, can be written by others, or has an entry that is no recipe.
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
        raise SettingsError(f"other users may write to {path}, which names code to run: run chmod 600 {path}")


def _source(path: Path, name: str, entry: Any) -> RecipeSource:
    where = f"recipe {name!r} in {path}"
    try:
        check_word("recipe", name)
    except UsageError as error:
        raise SettingsError(f"{path}: {error}") from None
    if not isinstance(entry, dict) or set(entry) != {"fit"}:
        raise SettingsError(f'the {where} must have the one entry fit = "module:function" or fit = "file.py:function"')
    fit = entry["fit"]
    module, separator, attribute = fit.rpartition(":") if isinstance(fit, str) else ("", "", "")
    if not (module and separator and attribute):
        raise SettingsError(f"the {where} must have fit = 'module:function' or 'file.py:function', got {fit!r}")
    if module.endswith(FILE_SUFFIX):
        module = str(path.parent.joinpath(Path(module).expanduser()))
    return RecipeSource(name, f"{module}:{attribute}", FILE)
