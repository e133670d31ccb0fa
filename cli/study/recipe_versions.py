"""Versions of the recipe that the results of a study come from: results of two versions are not
comparable.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.values import counted

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study

_ENVIRONMENTS = """
MATCH (:Study {name: $study})-[:PROPOSED]->(:Proposal)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.answered_from IS NULL
RETURN e.environment
"""


def recipe_versions(archive: Archive, study: Study) -> list[dict[str, Any]]:
    """Return each version of the recipe with the number of its results, the most frequent first.

    Returns:
        Empty for the default recipe, which is a part of the package, and where no result is of a
        known version.
    """
    if ProtocolName.parse(study.protocol).recipe == DEFAULT_RECIPE:
        return []

    rows = archive.query(_ENVIRONMENTS, {"study": study.name}).rows
    versions = (json.loads(environment or "{}").get("recipe_version") for (environment,) in rows)
    found = Counter(str(version) for version in versions if version is not None)
    return [{"version": version, "evaluations": count} for version, count in found.most_common()]


def several(versions: list[dict[str, Any]]) -> str | None:
    """Return the sentence about results of several versions; None for one or none."""
    if len(versions) < 2:
        return None

    listed = ", ".join(f"{each['version'][:19]} ({each['evaluations']})" for each in versions)
    total = counted(len(versions), "version")
    return (
        f"results of {total} of the recipe, which are not comparable: {listed}; give a "
        "changed recipe another name"
    )
