"""Years of the families of timm, from the papers that its model files name: `archive/queries/families.json`.

    python docs/scripts/family_years.py

A file names its papers by their addresses at arXiv, whose numbers begin with year and month, or by
`year = {2022}`. Files that name none are left out.
"""

from __future__ import annotations

import ast
import json
import re
from importlib.util import find_spec
from pathlib import Path

OUTPUT = Path(__file__).parents[2] / "archive" / "queries" / "families.json"

ARXIV = re.compile(r"arxiv\.org/(?:abs|pdf)/(\d{2})\d{2}\.\d{4,5}", re.IGNORECASE)
YEAR = re.compile(r"year\s*=\s*[{\"']?(\d{4})")


def main() -> None:
    """Write the first and the last year of each family that names a paper."""
    spec = find_spec("timm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    years = {}
    for file in sorted(Path(spec.submodule_search_locations[0], "models").glob("*.py")):
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        named = [2000 + int(year) for year in ARXIV.findall(text)]
        named += map(int, YEAR.findall(text))
        if named and not file.stem.startswith("_"):
            years[file.stem] = [min(named), max(named)]

    lines = [f"{json.dumps(family)}: {json.dumps(span)}" for family, span in years.items()]
    OUTPUT.write_text("{\n " + ",\n ".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
