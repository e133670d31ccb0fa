"""Version of a module, without an import: that of the package that installed its file, or a digest
of the file.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distributions
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path


def version_of(module: str) -> str | None:
    """Return `package version`, or the digest of a module that no package installed;

    None if it has no file.
    """
    spec = _spec_of(module)
    if spec is None or spec.origin is None or not spec.has_location:
        return None

    file = Path(spec.origin)
    return next(_packages(file), None) or digest_of(file)


def digest_of(file: Path) -> str | None:
    """Return a digest of a file, whose content is private to the machine;

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
