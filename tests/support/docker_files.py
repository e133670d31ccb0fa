"""The files of docker/, read: a Dockerfile's stages and instructions, the compose file with its
variables."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from dockerfile_parse import DockerfileParser

from tests.support import ROOT

DOCKER = ROOT / "docker"
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile; `stage` counts its FROM lines."""

    stage: int
    name: str
    value: str

    @property
    def arguments(self) -> list[str]:
        """The words of an instruction in JSON form, such as `CMD ["archive"]`."""
        return list(json.loads(self.value))


def instructions(path: Path) -> list[Instruction]:
    """Return the instructions of a Dockerfile, comments left out."""
    # Given a path, the parser would make the file where it is not.
    parser = DockerfileParser(fileobj=io.BytesIO(path.read_bytes()))
    found = []
    stage = -1
    for each in parser.structure:
        stage += each["instruction"] == "FROM"
        if each["instruction"] != "COMMENT":
            found.append(Instruction(stage, each["instruction"], each["value"]))

    return found


def last(path: Path, name: str) -> Instruction:
    """Return the instruction of this name that counts: the last one of the last stage."""
    found = [each for each in instructions(path) if each.name == name]
    assert found, f"{path.name} has no {name}"
    return found[-1]


def health(path: Path) -> list[str]:
    """Return the command of a Dockerfile's health check."""
    return list(json.loads(last(path, "HEALTHCHECK").value.partition("CMD ")[2]))


def compose(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the compose file as it is with these variables, `<<` and `${NAME:-default}`
    resolved."""
    content = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))
    return _filled(content, variables or {})


def ignored(path: Path) -> bool:
    """Return whether .dockerignore keeps a path out of the context; the last rule that fits
    counts."""
    parts = path.parts
    out = False
    for rule in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if not rule or rule.startswith("#"):
            continue

        pattern = (
            re.escape(rule.removeprefix("!")).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*")
        )
        if any(re.fullmatch(pattern, "/".join(parts[: count + 1])) for count in range(len(parts))):
            out = not rule.startswith("!")

    return out


def copy_context(folder: Path) -> None:
    """Copy what a build would get to see: links stay links."""
    for top, folders, files in os.walk(ROOT):
        here = Path(top).relative_to(ROOT)
        folders[:] = [name for name in folders if name not in (".git", "__pycache__")]
        for name in [*files, *(name for name in folders if (Path(top) / name).is_symlink())]:
            source = Path(top) / name
            if not ignored(here / name):
                target = folder / here / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.is_symlink():
                    target.symlink_to(os.readlink(source))
                else:
                    target.write_bytes(source.read_bytes())


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(item, variables) for name, item in value.items()}

    if isinstance(value, list):
        return [_filled(item, variables) for item in value]

    if isinstance(value, str):
        return _VARIABLE.sub(
            lambda found: variables.get(found["name"], found["default"] or ""), value
        )

    return value
