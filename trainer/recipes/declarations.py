"""Declarations of a recipe: the kinds of tasks, the spaces and the inputs that it is written for.

    import archive

    @archive.recipe(tasks="classification", spaces="parameters")
    def fit(trial):
        rate = trial.parameters["lr"]

A search compares them with its task and its space before anything starts. They are read from the
text of the recipe's file, which is not imported: a training that fails at its import, or takes
seconds for it, costs a search nothing. A recipe that is a class instance may have attributes of the
same names in its class, and `recipes.toml` may have them as keys.

The text also tells which parameters the recipe reads in every trial, `trial.parameters["lr"]`.
Reads that depend on a condition are no declarations, nor are the reads of other functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from archive.errors import SettingsError
from archive.values import brief

KINDS = ("classification", "regression", "language")
"""Kinds of tasks."""

INPUTS = ("any", "images", "features")
"""Inputs that a recipe takes: inputs of any task, images, or one row of numbers."""

KEYS = ("tasks", "spaces", "inputs")
"""Names of the declarations, in code and in `recipes.toml`."""

_MARK = "recipe"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class RecipeDeclaration:
    """What a recipe is written for.

    Attributes:
        tasks: Kinds of tasks; empty for all.
        spaces: Names of spaces; empty for all.
        inputs: `any`, `images` or `features`; None without a declaration.
        place: Where the declaration is, as `train.py, line 3`; empty without one.
        reads: Places of the parameters that every trial reads, by name.
        module: Place at which every trial asks for its module; empty where none does.
        configured: Whether the recipe may use a configuration: it reads parameters or the
            architecture, asks for the module, or passes its trial on.
    """

    tasks: tuple[str, ...] = ()
    spaces: tuple[str, ...] = ()
    inputs: str | None = None
    place: str = ""
    reads: Mapping[str, str] = field(default_factory=dict, hash=False)
    module: str = ""
    configured: bool = True

    def declare(self, values: Mapping[str, Any], where: str) -> RecipeDeclaration:
        """Return the declaration with values of other keys, which come first.

        Args:
            values: A text or texts by the name of the declaration.
            where: Where they are.

        Raises:
            SettingsError: A value cannot be declared.
        """
        checked = check_declared(values, where)
        return replace(self, **checked, place=where) if checked else self


def recipe(
    *,
    tasks: str | Sequence[str] = (),
    spaces: str | Sequence[str] = (),
    inputs: str = "any",
) -> Callable[[Function], Function]:
    """Declare what a recipe is written for: a search refuses other tasks and spaces at once.

    The values are written as plain texts, because they are read without importing the file.

    Args:
        tasks: `"classification"`, `"regression"`, or both; empty for all tasks.
        spaces: Names of spaces, `"parameters"` for a space in a file; empty for all.
        inputs: `"images"` or `"features"`, one row of numbers; `"any"` for a recipe that also
            changes inputs to the form that its network takes.

    Raises:
        SettingsError: There is no such kind of task or of inputs.
    """
    check_declared({"tasks": tasks, "spaces": spaces, "inputs": inputs}, "archive.recipe")

    def declare(function: Function) -> Function:
        return function

    return declare


def check_declared(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return declared values as attributes of a `RecipeDeclaration`.

    Raises:
        SettingsError: A value cannot be declared; the message names the place.
    """
    checked: dict[str, Any] = {}
    for key, value in values.items():
        if key == "inputs":
            checked[key] = _one_of(key, value, INPUTS, where)
            continue

        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise SettingsError(f"{where}: {key} is a text or a list of texts, got {brief(value)}")

        if key == "tasks":
            for text in texts:
                _one_of(key, text, KINDS, where)

        checked[key] = tuple(texts)

    return checked


def _one_of(key: str, value: Any, options: Sequence[str], where: str) -> str:
    if value not in options:
        raise SettingsError(f"{where}: {key} must be {' or '.join(options)}, got {brief(value)}")

    text: str = value
    return text


def read_declaration(file: Path | None, name: str) -> RecipeDeclaration:
    """Return the declaration of a recipe in a Python file, which is not imported.

    Args:
        file: The file; None for a recipe without one.
        name: Name of the function in it.

    Returns:
        An empty declaration where the file cannot be read, or defines no function of this name.

    Raises:
        SettingsError: The declaration has another form than the one of `recipe`.
    """
    if file is None:
        return RecipeDeclaration()

    try:
        return _read(file, name, file.stat().st_mtime_ns)
    except (OSError, ValueError, SyntaxError, RecursionError):
        # The trial that imports the file says what is wrong with it.
        return RecipeDeclaration()


@lru_cache(maxsize=64)
def _read(file: Path, name: str, _modified: int) -> RecipeDeclaration:
    tree = ast.parse(file.read_text("utf-8"))
    definitions: dict[str, ast.stmt] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            definitions[statement.targets[0].id] = statement

    definition = definitions.get(name)
    if isinstance(definition, ast.Assign) and isinstance(definition.value, ast.Call):
        made = definition.value.func
        definition = definitions.get(made.id) if isinstance(made, ast.Name) else None
        if isinstance(definition, ast.ClassDef):
            return _of_class(definition, file)

    return _of_function(definition, file) if isinstance(definition, ast.FunctionDef) else _EMPTY


_EMPTY = RecipeDeclaration()


def _of_function(function: ast.FunctionDef, file: Path) -> RecipeDeclaration:
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments:
        return _EMPTY

    declaration = _Reader(file, arguments[0].arg).read(function.body)
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or _last_name(decorator.func) != _MARK:
            continue

        where = _place(file, decorator)
        values = {}
        for keyword in decorator.keywords:
            if keyword.arg in KEYS:
                values[keyword.arg] = _literal(keyword.value, where)

        declaration = declaration.declare(values, where)

    return declaration


def _of_class(definition: ast.ClassDef, file: Path) -> RecipeDeclaration:
    declaration = _EMPTY
    values = {}
    where = _place(file, definition)
    for statement in definition.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            key = statement.targets[0].id
            if key in KEYS:
                values[key] = _literal(statement.value, where)

        if isinstance(statement, ast.FunctionDef) and statement.name == "__call__":
            arguments = [*statement.args.posonlyargs, *statement.args.args]
            if len(arguments) > 1:
                declaration = _Reader(file, arguments[1].arg).read(statement.body)

    return declaration.declare(values, where)


def _literal(value: ast.expr, where: str) -> Any:
    try:
        return ast.literal_eval(value)
    except ValueError:
        raise SettingsError(
            f"{where}: a declaration is read without importing the file: write plain texts in it"
        ) from None


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr

    return function.id if isinstance(function, ast.Name) else ""


def _place(file: Path, node: ast.expr | ast.stmt) -> str:
    return f"{file.name}, line {node.lineno}"


class _Reader:
    """Finds what a function reads of its trial.

    Args:
        file: The file of the function.
        trial: Name of the argument.
    """

    def __init__(self, file: Path, trial: str) -> None:
        self._file = file
        self._trial = trial
        self._reads: dict[str, str] = {}
        self._module = ""
        self._aliases: set[str] = set()

    def read(self, body: Sequence[ast.stmt]) -> RecipeDeclaration:
        """Return what the statements of a function read."""
        for statement in body:
            if self._read_statement(statement):
                break

        return RecipeDeclaration(
            reads=self._reads, module=self._module, configured=self._is_configured(body)
        )

    def _read_statement(self, statement: ast.stmt) -> bool:
        """Note the reads of a statement, and return whether the function may end at it."""
        if isinstance(statement, ast.Assign) and self._is_parameters(statement.value):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    self._aliases.add(target.id)

        for node in _certain(statement):
            name = _subscript(node)
            if name is not None and self._is_parameters(node.value):  # type: ignore[attr-defined]
                self._reads.setdefault(name, _place(self._file, node))  # type: ignore[arg-type]

            if isinstance(node, ast.Call) and self._is_member(node.func, "module"):
                self._module = self._module or _place(self._file, node)

        ends = (ast.Return, ast.Raise, ast.Break, ast.Continue)
        conditional = isinstance(statement, ast.If | ast.Try | ast.Match)
        return conditional and any(isinstance(node, ends) for node in ast.walk(statement))

    def _is_parameters(self, node: ast.expr) -> bool:
        alias = isinstance(node, ast.Name) and node.id in self._aliases
        return alias or self._is_member(node, "parameters")

    def _is_member(self, node: ast.expr, name: str) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and node.attr == name
            and isinstance(node.value, ast.Name)
            and node.value.id == self._trial
        )

    def _is_configured(self, body: Sequence[ast.stmt]) -> bool:
        """Return whether the trial's configuration is read anywhere, or the trial is passed on."""
        members = 0
        names = 0
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == self._trial:
                    names += 1

                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    if node.value.id != self._trial:
                        continue

                    members += 1
                    if node.attr in ("parameters", "module", "architecture"):
                        return True

        return names > members


_CONDITIONAL = (
    ast.If,
    ast.IfExp,
    ast.Try,
    ast.Match,
    ast.BoolOp,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
)


def _certain(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement that are evaluated whenever it is."""
    if isinstance(node, _CONDITIONAL):
        return

    yield node
    for part in ast.iter_child_nodes(node):
        yield from _certain(part)


def _subscript(node: ast.AST) -> str | None:
    """Return the constant text by which a value is read; None for another expression."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return None

    key = node.slice
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value

    return None
