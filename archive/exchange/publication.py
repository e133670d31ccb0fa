"""Publication of results: what a published file has of each property of the data model.

| content    | in a published file                                                      |
|------------|--------------------------------------------------------------------------|
| `RESULT`   | always; folders of paths, and names of hosts and users, are cut out      |
| `HOSTS`    | if hosts are asked for: workers, their machines and attempts             |
| `PATHS`    | if paths are asked for: addresses of weights                             |
| `NOTES`    | if notes are asked for: what people wrote, and logs                      |
| `INTERNAL` | never: a load computes it again, or only this archive's processes use it |

A property that is not in `CONTENTS` is left out, such as one that a user has set by Cypher.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

from archive.errors import UsageError
from archive.exchange.record_schema import Record
from archive.store.properties import study_of
from archive.store.studies.creation import agent_id


class Content(Enum):
    """Content of a property, which decides whether it is published."""

    RESULT = "results"
    HOSTS = "hosts"
    PATHS = "paths"
    NOTES = "notes"
    INTERNAL = "internal"


PRIVATE = (Content.HOSTS.value, Content.PATHS.value, Content.NOTES.value)
"""Contents that are published only if they are asked for."""


def _contents(**names: str) -> dict[str, Content]:
    """Return the content of each property, from the names of the properties of each content."""
    contents = {}
    for content, properties in names.items():
        for name in properties.split():
            contents[name] = Content[content.upper()]

    return contents


CONTENTS: Mapping[str, Mapping[str, Content]] = {
    "Study": _contents(
        result="name objective direction objectives directions constrained operators bounds budget"
        " config seed created",
        notes="note tags",
        internal="revision admitted next_number rung_borders rewritten",
    ),
    "Task": _contents(result="id name protocol direction", internal="measured"),
    "Space": _contents(result="id name config"),
    "Agent": _contents(result="id kind config version created"),
    "Worker": _contents(
        hosts="id host pid device slots study fleet tasks spaces recipes devices memory_bytes"
        " started heartbeat ended rests_until rest_reason",
        internal="revision",
    ),
    "Proposal": _contents(
        result="id study number state architecture functional_key agent priority acquisition mean"
        " std fidelity hyperparameters configuration parameter_* inspired_by based_on seconds"
        " attempts cause memory_bytes repeat alone cancelled retried rung rung_values"
        " rung_constrained created started finished",
        hosts="worker refused_by",
        notes="motivation reason",
        internal="open request token lease lease_until suspected touched change_token curve_epoch"
        " curve_*",
    ),
    "Evaluation": _contents(
        result="id value metric_* metric_params metric_flops metric_latency_ms"
        " metric_latency_iqr_ms metric_latency_batch metric_peak_memory_bytes curve_epoch curve_*"
        " epochs seconds seed device hardware environment answered_from partial created source"
        " license commit model family pretraining",
    ),
    "Architecture": _contents(
        result="key functional_key space depth layers edges mass params flops code",
        notes="note tags",
        internal="revision",
    ),
    "Layer": _contents(result="index op units stride module", internal="block"),
    # All properties of a block follow from its layers.
    "Block": _contents(internal="*"),
    "Weights": _contents(paths="uri sha256 bytes", internal="used revision"),
    "SchemaMigration": _contents(internal="version name applied"),
    "FEEDS": _contents(result="arguments"),
    "CLAIMED": _contents(
        hosts="at ended outcome cause rung value epochs promoted",
        notes="reason log",
        internal="token",
    ),
    "MORPHED_INTO": _contents(result="operations"),
    "BUILDS": _contents(result="model version reads state built"),
    "DISTANCE": _contents(result="otmann otmann_normalised wasserstein gromov_wasserstein"),
    "MEASURED": _contents(result="source proxy_* undefined created"),
}
"""Label or type of relationship to the content of each of its properties."""

_LABELS = {
    "study": "Study",
    "worker": "Worker",
    "architecture": "Architecture",
    "build": "BUILDS",
    "evaluation": "Evaluation",
    "proposal": "Proposal",
    "proxies": "MEASURED",
}
"""Kind of record to the label of its `properties`."""

_FOLDERS = re.compile(r"(?<![\w.~/:-])(?:file://)?(?:~[\w.-]*)?/(?:[^/\s\"',:;\\]+/)+")
_FOLDERS_OF_TASK = re.compile(r"(?<=[a-z]:)(?:~[\w.-]*)?/(?:[^/\s\"',:;\\]+/)+")
"""Folders behind the kind of a task: `csv:/home/ann/data.csv`."""


_LEAST_NAME = 3
"""Length from which the name of a host or a user is cut out of texts."""
_USUAL = ("root", "localhost")


class Publication:
    """Choice of what is published of each record.

    Args:
        contents: Of `PRIVATE`, what is published all the same.
        imported: Whether imported results are published, which belong to no study.
        source: Source of one's own results, for those without one.
        license: Licence of one's own results, likewise.

    Raises:
        UsageError: A content is none of `PRIVATE`.
    """

    def __init__(
        self,
        contents: Collection[str] = (),
        *,
        imported: bool = False,
        source: str | None = None,
        license: str | None = None,
    ) -> None:
        """Check the contents."""
        for content in contents:
            if content not in PRIVATE:
                raise UsageError(f"a publication has {', '.join(PRIVATE)}, got {content!r:.40}")

        self.imported = imported
        self._contents = {Content.RESULT, *map(Content, contents)}
        self._provenance: dict[str, str] = {}
        for name, text in (("source", source), ("license", license)):
            if text is not None:
                self._provenance[name] = text

        self._agents: dict[str, str] = {}
        self._names: set[str] = set()
        self._pattern = re.compile(r"(?!)")
        self._hide({platform.node(), _user()})

    def select(self, kind: str, record: Record) -> Record | None:
        """Return what is published of a record; None if nothing is.

        Agents come before the proposals that refer to them, and workers before results.
        """
        if kind == "worker" and Content.HOSTS not in self._contents:
            self._hide({str(record["properties"].get("host", ""))})
            return None

        selected = {**record}
        if "properties" in record and kind in _LABELS:
            selected["properties"] = self._properties(_LABELS[kind], record["properties"])

        if kind == "evaluation":
            self._select_of_evaluation(selected)

        if kind == "proposal":
            selected["claims"] = self._claims(record["claims"])

        if kind == "architecture":
            # Its layers have a key, which a change would falsify.
            properties = self._cut(selected["properties"])
            return {**selected, "properties": properties}

        cut: Record = self._cut(selected)
        if kind == "agent":
            former = agent_id(record["kind"], record["config"], record["version"])
            self._agents[former] = agent_id(cut["kind"], cut["config"], cut["version"])

        if kind == "proposal" and record["agent"] is not None:
            cut["agent"] = self._agents[record["agent"]]

        return cut

    def _properties(self, label: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        published = {}
        for name, value in properties.items():
            if content_of(label, name) in self._contents:
                published[name] = value

        return published

    def _select_of_evaluation(self, record: Record) -> None:
        if Content.PATHS not in self._contents:
            record["weights"] = None

        if study_of(record["id"]) and "source" not in record["properties"]:
            record["properties"] |= self._provenance

    def _claims(self, claims: list[Any]) -> list[Any]:
        if Content.HOSTS not in self._contents:
            return []

        published = []
        for worker, time, about in claims:
            published.append([worker, time, self._properties("CLAIMED", about)])

        return published

    def _cut(self, value: Any) -> Any:
        """Return a value whose texts have no folders and no names of hosts and users."""
        if isinstance(value, dict):
            return {name: self._cut(item) for name, item in value.items()}

        if isinstance(value, list):
            return list(map(self._cut, value))

        if not isinstance(value, str):
            return value

        if Content.PATHS not in self._contents:
            value = _FOLDERS_OF_TASK.sub("", _FOLDERS.sub("", value))

        # Shorter than any name: a merge keeps the longer text.
        return self._pattern.sub("-", value)

    def _hide(self, names: set[str]) -> None:
        """Cut names of hosts and users out of all further texts."""
        new = {name for name in names if len(name) >= _LEAST_NAME}
        new -= {*_USUAL, *self._names}
        if new and Content.HOSTS not in self._contents:
            self._names |= new
            words = sorted(map(re.escape, self._names), key=len, reverse=True)
            self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)")


def content_of(label: str, name: str) -> Content:
    """Return the content of a property; `INTERNAL` of one that `CONTENTS` does not have."""
    contents = CONTENTS.get(label, {})
    if name in contents:
        return contents[name]

    for pattern, content in contents.items():
        if pattern.endswith("*") and name.startswith(pattern[:-1]):
            return content

    return Content.INTERNAL


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
