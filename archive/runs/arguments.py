"""Arguments of a command as named values: `python train.py --lr 3e-4 model.depth=4`.

| argument              | value                                       |
|-----------------------|---------------------------------------------|
| `--lr 3e-4`           | `lr`: 0.0003                                |
| `--lr=3e-4`           | `lr`: 0.0003                                |
| `--fast`              | `fast`: true, if no value follows           |
| `model.depth=4`       | `model_depth`: 4                            |
| `train.py`, `-m pkg`  | the program, after an interpreter           |
| `-c CODE`             | the program, by a digest of the code        |
| any other             | `arguments`: the list of all of them        |

A seed (`--seed`, `--random-seed`, `train.seed=1`) is no part of the configuration: runs that differ in
their seeds are repeats.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from archive.values import LARGEST, whole_number

POSITIONAL = "arguments"
"""Name of the value that has the positional arguments."""

_SEED = re.compile(r"(.*[_./ -])?seed", re.IGNORECASE)
"""Names of values that are seeds: `seed`, `random_seed`, `train/seed`, but not `reseed`."""

_INTERPRETER = re.compile(r"(python|pypy)[\d.]*|bash|sh|zsh|node|julia|Rscript|perl|ruby")
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
_ASSIGNMENT = re.compile(r"[+~]{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Invocation:
    """What a command says.

    Attributes:
        program: Name of the program: the script of an interpreter, `train.py`, or the first word.
        values: Values by name, in the order of the command.
        seed: The seed; None where none is given.
    """

    program: str
    values: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None


def read_command(command: Sequence[str]) -> Invocation:
    """Return the program and the values of a command.

    Args:
        command: The program and its arguments, at least one word.
    """
    program, rest = _split_program(command)
    values: dict[str, Any] = {}
    positional: list[Any] = []
    position = 0
    while position < len(rest):
        word = rest[position]
        position += 1
        if word == "--":
            continue

        option, equals, text = word.partition("=")
        name = _option_name(option)
        assignment = _ASSIGNMENT.fullmatch(word)
        if name is not None and equals:
            values[name] = read_value(text)
        elif name is not None and position < len(rest) and _is_value(rest[position]):
            values[name] = read_value(rest[position])
            position += 1
        elif name is not None:
            values[name] = True
        elif assignment is not None:
            values[_plain_name(assignment[1])] = read_value(assignment[2])
        else:
            positional.append(read_value(word))

    values, seed = split_seed(values)
    if positional:
        values[POSITIONAL] = positional

    return Invocation(program, values, seed)


def split_seed(values: Mapping[str, Any]) -> tuple[dict[str, Any], int | None]:
    """Return values without the seeds among them, and the seed.

    Of several seeds, the one named `seed` is the run's, else the first. A value with the name of a
    seed that is no whole number of 64 bits (`auto`) stays a value.

    Args:
        values: Values by name.
    """
    kept = {}
    seeds: dict[str, int] = {}
    for name, value in values.items():
        seed = _whole_seed(value) if is_seed_name(str(name)) else None
        if seed is None:
            kept[name] = value
        else:
            seeds[name] = seed

    return kept, seeds.get("seed", next(iter(seeds.values()), None))


def is_seed_name(name: str) -> bool:
    """Return whether the name of a value or a column says that it is a seed."""
    return _SEED.fullmatch(name) is not None


def _whole_seed(value: Any) -> int | None:
    """Return a seed as an int; None for any other value. Tables and event files have floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None

    if not -LARGEST <= value < LARGEST or value != int(value):
        return None

    return int(value)


def read_value(text: str) -> Any:
    """Return the value that a text of a command stands for.

    A number, true, false, null, or a list or object as JSON has them; else the text itself.
    """
    if (whole := whole_number(text)) is not None:
        return whole

    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text

    if text in ("True", "False", "true", "false"):
        return text in ("True", "true")

    if text[:1] in "[{" and text:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text

    return text


def _split_program(command: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the name of the program and the words after it."""
    first = PurePath(command[0]).name
    if not _INTERPRETER.fullmatch(first):
        return first, command[1:]

    python = first.startswith(("python", "pypy"))
    for position, word in enumerate(command[1:], 1):
        if word in ("-m", "-c") and position + 1 < len(command):
            following = command[position + 1]
            name = following if word == "-m" else f"-c {_digest(following)}"
            return name, command[position + 2 :]

        # `python -W ignore train.py`
        is_value = python and command[position - 1] in ("-W", "-X")
        if not word.startswith("-") and not is_value:
            return PurePath(word).name, command[position + 1 :]

    return first, command[1:]


def _digest(code: str) -> str:
    """Return a short digest of a program that is written in the command."""
    return hashlib.sha1(os.fsencode(code), usedforsecurity=False).hexdigest()[:8]


def _option_name(word: str) -> str | None:
    """Return the name of an option; None for any other word."""
    match = _OPTION.fullmatch(word)
    return None if match is None else _plain_name(match[1])


def _plain_name(name: str) -> str:
    """Return a name that Cypher takes without quotes: `model.num-layers` is model_num_layers."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _is_value(word: str) -> bool:
    """Return whether a word is the value of the option before it."""
    return not word.startswith("-") or _NUMBER.fullmatch(word) is not None
