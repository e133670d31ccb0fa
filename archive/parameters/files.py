"""Spaces of parameters in files of the user: `space.toml`, `space.py`, `space.py:search`.

A Python file makes a `Space` (`archive.space`); a TOML file says the same as data:

    constraints = ["width * depth <= 512"]
    model = "models.py:build"
    example = [3, 32, 32]

    [parameters]
    depth = {integer = [2, 12]}
    width = [32, 64, 128]
    lr = {real = [1e-5, 1e-1], log = true, prior = [1e-3, "high"]}
    dropout = {real = [0, 0.5], when = "depth >= 4"}
    size = {ordinal = ["small", "base", "large"]}
    seed = {constant = 3}

    [parameters.stage]
    repeat = "depth"
    parameters.op = ["conv3", "mbconv", "skip"]
    parameters.kernel = [3, 5]

A list is a choice of its values, and a plain value a constant. A table with `parameters` and
without `repeat` is a group that exists once. A Python file runs as the user's own code: only a
command that names it opens it, and never the database.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from archive.errors import SettingsError
from archive.files import expanded
from archive.parameters import declaration
from archive.parameters.declaration import Declaration, Group
from archive.parameters.expressions import ExpressionError
from archive.parameters.leaves import DeclarationError
from archive.parameters.model import model_of
from archive.parameters.parameter_space import ParameterSpace
from archive.values import brief

SUFFIXES = (".py", ".toml")
"""Endings of files with spaces."""

_LARGEST_FILE = 2**20


class SpaceFileError(SettingsError):
    """A file that describes no space; the message names the line, where one is known.

    Attributes:
        path: The file.
        line: Line of the fault, from 1; None where the whole file is meant.
    """

    def __init__(self, path: Path, line: int | None, fault: str) -> None:
        """Compose the message."""
        self.path = path
        self.line = line
        location = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{location}: {fault}")


def is_file(text: str) -> bool:
    """Return whether a text names a file with a space, and not a space of the product."""
    return text.partition(":")[0].endswith(SUFFIXES)


def load(text: str) -> ParameterSpace:
    """Return the space of a file.

    Args:
        text: Path of a TOML file; or path of a Python file, with the name of the space behind a
            colon where the file makes several.

    Raises:
        SpaceFileError: The file cannot be read or describes no space.
        SettingsError: The text names no such file.
    """
    address, colon, name = text.partition(":")
    path = expanded(address)
    if path.suffix not in SUFFIXES:
        raise SettingsError(f"a space is in a .py or a .toml file, got {brief(text)}")

    source = _read(path)
    if path.suffix == ".py":
        return _of_python(path, source, name)

    if colon:
        raise SettingsError(f"a TOML file describes one space: write {address}")

    return _of_toml(path, source)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SpaceFileError(path, None, "a file of a space has at most 1 MiB")

        # Editors of Windows begin a file with a mark.
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise SpaceFileError(path, None, f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise SpaceFileError(path, None, "is no text in UTF-8") from None


def _of_toml(path: Path, source: str) -> ParameterSpace:
    try:
        document = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        position = re.search(r" \(at line (\d+), column \d+\)", str(error))
        fault = str(error).replace(position[0], "") if position else str(error)
        line = int(position[1]) if position else None
        raise SpaceFileError(path, line, f"is no TOML: {fault}") from None

    for name in document:
        if name not in ("parameters", "constraints", "model", "example"):
            raise SpaceFileError(
                path,
                _line_of_key(source, [name]),
                f"unknown key {name!r}: a space has [parameters], constraints, model and example",
            )

    table = document.get("parameters")
    if not isinstance(table, dict) or not table:
        line = _line_of_key(source, ["parameters"])
        raise SpaceFileError(path, line, "there are no parameters: write them below [parameters]")

    try:
        parameters = {
            name: _entry(path, source, ["parameters", name], value) for name, value in table.items()
        }
        constraints, model, example = _settings(path, source, document)
        space = ParameterSpace(parameters, constraints=constraints, model=model, example=example)
        return _within(space, path)
    except SpaceFileError:
        raise
    except SettingsError as error:
        raise SpaceFileError(path, _line_of_fault(source, error), str(error)) from None


def _settings(
    path: Path, source: str, document: Mapping[str, Any]
) -> tuple[list[Any], str | None, Any]:
    """Return constraints, model and example of a TOML file.

    Raises:
        SpaceFileError: One of them cannot be used; the message names the line.
    """
    constraints = document.get("constraints", [])
    model = document.get("model")
    example = document.get("example")
    key = "constraints"
    fault = ""
    if not isinstance(constraints, list):
        fault = f"constraints are a list of texts, got {brief(constraints)}"
    elif model is not None and not isinstance(model, str):
        key = "model"
        fault = f"model is the text file.py:function, got {brief(model)}"
    elif example is not None and model is None:
        key = "example"
        fault = 'example is of a model: write model = "file.py:function"'
    elif model is not None:
        key = "model" if example is None else "example"
        try:
            model_of(model, example)
        except SettingsError as error:
            fault = str(error)

    if fault:
        raise SpaceFileError(path, _line_of_key(source, [key]), fault)

    return constraints, model, example


_MAKERS: Mapping[str, Callable[..., Declaration]] = {
    "integer": declaration.integer,
    "real": declaration.real,
    "choice": declaration.choice,
    "ordinal": declaration.ordinal,
    "constant": declaration.constant,
}


def _entry(path: Path, source: str, keys: Sequence[str], value: Any) -> Any:
    """Return the parameter or group of one key of a TOML file.

    Raises:
        SpaceFileError: It is none; the message names the line.
    """
    try:
        declaration.check_name(keys[-1])
        if not isinstance(value, dict):
            (entry,) = declaration.declarations({keys[-1]: value}).values()
            return entry

        if "parameters" in value:
            return _group(path, source, keys, value)

        return _parameter(value)
    except SpaceFileError:
        raise
    except SettingsError as error:
        fault = str(error)
        named = (
            fault if fault.startswith((repr(keys[-1]), f"{keys[-1]} ")) else f"{keys[-1]}: {fault}"
        )
        raise SpaceFileError(path, _line_of_key(source, keys), named) from None


def _parameter(table: Mapping[str, Any]) -> Declaration:
    kinds = [kind for kind in _MAKERS if kind in table]
    if len(kinds) != 1:
        raise SettingsError(
            f"a parameter has one of the keys {', '.join(_MAKERS)}, got "
            f"{', '.join(kinds) or brief(dict(table))}"
        )

    settings = dict(table)
    content = settings.pop(kinds[0])
    bounds = kinds[0] in ("integer", "real")
    if bounds and not (isinstance(content, list) and len(content) == 2):
        raise SettingsError(f"{kinds[0]} is a list of two bounds, got {brief(content)}")

    if not isinstance(settings.get("log", False), bool):
        raise SettingsError(f"log is true or false, got {brief(settings['log'])}")

    arguments = content if bounds else [content]
    try:
        return _MAKERS[kinds[0]](*arguments, **settings)
    except TypeError:
        settings_known = "when, default, prior, and log or step of numbers, ordered of choices"
        raise SettingsError(
            f"a key does not belong to {kinds[0]}, got {', '.join(settings)}: known are {settings_known}"
        ) from None


def _group(path: Path, source: str, keys: Sequence[str], table: Mapping[str, Any]) -> Group:
    for name in table:
        if name not in ("parameters", "repeat", "when"):
            raise SettingsError(
                f"unknown key {name!r}: a group has parameters, and may have repeat and when"
            )

    inner = table["parameters"]
    if not isinstance(inner, dict):
        raise SettingsError(f"the parameters of a group are a table, got {brief(inner)}")

    members = {}
    for name, value in inner.items():
        members[name] = _entry(path, source, [*keys, "parameters", name], value)

    return Group(members, table.get("repeat"), table.get("when"))


def _of_python(path: Path, source: str, name: str) -> ParameterSpace:
    module = _run(path, source)
    spaces = {}
    for key, value in vars(module).items():
        if isinstance(value, ParameterSpace):
            spaces[key] = value

    if name:
        if name not in spaces:
            available = f"it has {', '.join(spaces)}" if spaces else "it has none"
            raise SpaceFileError(path, None, f"has no space {name!r}: {available}")

        return _within(spaces[name], path)

    if len(spaces) != 1:
        spaces_made = f"several, name one: {path}:{next(iter(spaces))}" if spaces else "none"
        raise SpaceFileError(
            path, None, f"must make one space.Space(...) at its top level, got {spaces_made}"
        )

    return _within(next(iter(spaces.values())), path)


def _within(space: ParameterSpace, path: Path) -> ParameterSpace:
    """Let relative paths of a space's model begin at the folder of the space's file."""
    if space.model is not None:
        space.model = space.model.within(path.parent)

    return space


def _run(path: Path, source: str) -> ModuleType:
    """Run a Python file as a module of its own; what it prints goes to stderr.

    Raises:
        SpaceFileError: It does not compile, or raises an error; the message names the line.
    """
    spec = importlib.util.spec_from_file_location(f"_space_file_{path.stem}", path)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)

    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except SyntaxError as error:
        raise SpaceFileError(path, error.lineno, f"is no Python: {error.msg}") from None
    except SettingsError as error:
        line = _line_of_fault(source, error) or _line_of_frame(path, error)
        raise SpaceFileError(path, line, str(error)) from None
    except (Exception, SystemExit) as error:
        fault = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        raise SpaceFileError(path, _line_of_frame(path, error), fault) from None

    return module


def _line_of_frame(path: Path, error: BaseException) -> int | None:
    """Return the line of a file at which an error left it."""
    line = None
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename) == path or Path(frame.filename) == path.absolute():
            line = frame.lineno

    return line


def _line_of_fault(source: str, error: SettingsError) -> int | None:
    """Return the line with the condition or the parameter that an error is about."""
    needles: list[str] = []
    if isinstance(error, ExpressionError):
        needles.append(re.escape(error.text))

    if isinstance(error, DeclarationError):
        name = re.escape(error.parameter)
        needles.append(rf"""(?<![\w.])["']?{name}["']?\s*[=:]|\[(?:[\w.]+\.)?{name}\]""")

    for needle in needles:
        for number, line in enumerate(source.splitlines(), 1):
            if re.search(needle, line):
                return number

    return None


def _line_of_key(source: str, keys: Sequence[str]) -> int | None:
    """Return the line of a TOML file that begins a key, from 1."""
    for number, line_keys in _keys_of_lines(source):
        if line_keys[: len(keys)] == list(keys):
            return number

    return None


_HEADER = re.compile(r"\s*\[+([^\]]+)\]+\s*(#.*)?$")
_KEY = re.compile(
    r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)


def _keys_of_lines(source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that begins a table or a key, with the whole key."""
    table: list[str] = []
    for number, line in enumerate(source.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = _parts(header[1])
            yield number, table
            continue

        key = _KEY.match(line)
        if key:
            yield number, [*table, *_parts(key[1])]


def _parts(dotted: str) -> list[str]:
    parts = []
    for part in dotted.split("."):
        parts.append(part.strip().strip("\"'"))

    return parts
