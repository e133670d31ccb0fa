"""Publication of results: what a published file has of each property of the data model.

| content    | in a published file                                                      |
|------------|--------------------------------------------------------------------------|
| `RESULT`   | always; folders of paths are cut out                                     |
| `TEXTS`    | always; names of hosts and of the user are cut out as well               |
| `HOSTS`    | if hosts are asked for: workers, their machines and attempts             |
| `PATHS`    | if paths are asked for: addresses of weights                             |
| `NOTES`    | if notes are asked for: what people wrote, and logs                      |
| `INTERNAL` | never: a load computes it again, or only this archive's processes use it |

A property that is not in `CONTENTS` is left out, such as one that a user has set by Cypher.

Names are never cut out of identities and of choices, such as a kind of agent: a user may be called
`random`. A study or a task whose name holds a host is refused.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any

from archive.errors import UsageError
from archive.exchange.record_schema import Record
from archive.store.properties import study_of, to_json
from archive.store.studies.creation import agent_id


class Content(Enum):
    """Content of a property, which decides whether it is published."""

    RESULT = "results"
    TEXTS = "texts"
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
        " seed created",
        texts="config",
        notes="note tags",
        internal="revision admitted next_number rung_borders rewritten",
    ),
    "Task": _contents(result="id name protocol direction", internal="measured"),
    "Space": _contents(result="id name", texts="config"),
    "Agent": _contents(result="id kind version created", texts="config"),
    "Worker": _contents(
        hosts="id host pid device slots study fleet tasks spaces recipes devices memory_bytes"
        " started heartbeat ended rests_until rest_reason",
        internal="revision",
    ),
    # The texts of a run (`RunText`) are in the record of its proposal.
    "Proposal": _contents(
        result="id study number state architecture functional_key agent priority acquisition mean"
        " std fidelity hyperparameters configuration parameter_* inspired_by seconds"
        " attempts cause memory_bytes repeat alone cancelled retried rung rung_values"
        " rung_constrained created started finished program exit_status code code_commit derived_from",
        texts="based_on",
        hosts="worker refused_by",
        notes="motivation reason command diff changed log_end code_branch",
        paths="folder kept",
        internal="open request token lease lease_until suspected touched change_token curve_epoch"
        " curve_*",
    ),
    "Evaluation": _contents(
        result="id value metric_* metric_params metric_flops metric_latency_ms"
        " metric_latency_iqr_ms metric_latency_batch metric_latency_prefill_ms"
        " metric_latency_decode_ms metric_cache_bytes metric_peak_memory_bytes curve_epoch curve_*"
        " epochs seconds seed device partial created source license commit model family"
        " pretraining",
        texts="hardware environment answered_from",
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

_IDENTITIES = {
    "study": ("name", "task", "protocol"),
    "task": ("task", "protocol"),
    "evaluation": ("id", "task", "protocol"),
}
"""Fields by which other records and archives refer to a record: no host may be part of them."""
_SETTINGS = {"agent": "config", "study": "space_config"}
"""Fields with the `config` of a node. The user's name as a whole value is a choice: `adam`."""
_CHOICES = "hyperparameters"
"""Part of an environment that holds choices."""

_FOLDER = r"""[^/\\\s"',:;]+"""
_WIDE_FOLDER = r"""[^/\\\n"',:;]{1,64}"""
_CREDENTIALS = re.compile(r"""(?<=://)[^/\s"']+@""")
_HOME = re.compile(
    rf"(?:file:)?(?:(?<![a-z])[a-z]:)?[/\\]+(?:home|Users)[/\\]+(?:{_WIDE_FOLDER}[/\\]+|{_FOLDER})",
    re.IGNORECASE,
)
"""Home of any user, whose name may have spaces if a folder or a file follows."""
_FOLDERS = re.compile(
    "|".join(
        (
            rf"(?<!\w)~(?:[A-Za-z_][\w.-]*)?[/\\]+(?:{_FOLDER}[/\\]+)*",
            rf"(?<![A-Za-z])[A-Za-z]:[/\\]+(?:{_WIDE_FOLDER}[/\\]+)*",
            rf"(?<![\\\w:])\\\\(?:{_FOLDER}\\)+",
            rf"file:/+(?:{_FOLDER}/+)+",
            # Behind an option (`-I/opt/x`); behind a colon, unless an address follows.
            r"(?:(?<![\w.~/:])/|(?<=(?<![\w-])-[A-Za-z])/|(?<=:)/(?!/)|(?<=:)//(?=/))"
            rf"/*(?:{_FOLDER}/+)+",
        )
    )
)
"""Folders of a user, of a drive, of a network's machine and of the root."""

_LEAST_NAME = 2
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
        self._contents = {Content.RESULT, Content.TEXTS, *map(Content, contents)}
        self._provenance: dict[str, str] = {}
        for name, text in (("source", source), ("license", license)):
            if text is not None:
                self._provenance[name] = text

        self._agents: dict[str, str] = {}
        self._former: dict[tuple[str, str], str] = {}
        self._hosts: set[str] = set()
        self._user = _user()
        home = os.path.expanduser("~").rstrip("~/\\")
        self._home = re.compile(rf"{re.escape(home) or '(?!)'}(?![^\W_])")
        self.hide([platform.node()])

    def hide(self, hosts: Iterable[str]) -> None:
        """Cut names of hosts out of all further texts, unless hosts are published.

        Args:
            hosts: Names of hosts, with or without a domain.
        """
        for host in hosts:
            self._hosts |= {host, host.partition(".")[0]}

        self._host_names = _names(self._hosts)
        self._all_names = _names({*self._hosts, self._user})

    def select(self, kind: str, record: Record) -> Record | None:
        """Return the published part of a record; None if there is none.

        Agents come before the proposals that refer to them.

        Raises:
            UsageError: A name holds a host, or would be the same as another one without folders.
        """
        if kind == "worker" and Content.HOSTS not in self._contents:
            return None

        published: Record = {}
        for field, value in record.items():
            if field == "properties" and kind in _LABELS:
                published[field] = self._properties(_LABELS[kind], value)
            elif field == "claims":
                published[field] = self._claims(value)
            elif field == "weights":
                published[field] = value if Content.PATHS in self._contents else None
            elif field == "architecture" and kind == "architecture":
                # Its layers have a key, which a change would falsify.
                published[field] = value
            elif field == _SETTINGS.get(kind):
                published[field] = self._cut(value, names=True, choice=self._user)
            else:
                published[field] = self._cut(value)

        for field in _IDENTITIES.get(kind, ()):
            self._check_identity(field, record[field], published[field])

        if kind == "evaluation" and study_of(record["id"]) and "source" not in record["properties"]:
            published["properties"] |= self._provenance

        if kind == "agent":
            former = agent_id(record["kind"], record["config"], record["version"])
            self._agents[former] = agent_id(
                published["kind"], published["config"], published["version"]
            )

        if kind == "proposal" and record["agent"] is not None:
            published["agent"] = self._agents[record["agent"]]

        return published

    def _properties(self, label: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        published = {}
        for name, value in properties.items():
            content = content_of(label, name)
            if content not in self._contents:
                continue

            if name == "environment":
                value = self._without_host(value)

            choice = self._user if name in ("config", "based_on") else None
            names = content in (Content.TEXTS, Content.NOTES)
            published[name] = self._cut(value, names=names, choice=choice)

        return published

    def _without_host(self, text: str) -> str:
        """Return an environment without its host, whose worker may be deleted."""
        environment = json.loads(text)
        host = environment.get("host")
        if Content.HOSTS in self._contents or host is None:
            return text

        self.hide([str(host)])
        del environment["host"]
        return to_json(environment)

    def _claims(self, claims: list[Any]) -> list[Any]:
        if Content.HOSTS not in self._contents:
            return []

        published = []
        for worker, time, about in claims:
            published.append([self._cut(worker), time, self._properties("CLAIMED", about)])

        return published

    def _check_identity(self, field: str, former: str, name: str) -> None:
        if Content.HOSTS not in self._contents and self._host_names.search(name):
            raise UsageError(
                f"the {field} {name!r:.80} holds the name of a host: publish other studies "
                "(--study), or hosts as well (--with hosts)"
            )

        if field == "name" and name != former:
            raise UsageError(
                f"the study {former!r:.80} holds folders: publish other studies (--study), or "
                "paths as well (--with paths)"
            )

        if field == "id":
            return

        other = self._former.setdefault((field, name), former)
        if other != former:
            raise UsageError(
                f"the {field}s {other!r:.80} and {former!r:.80} differ in their folders only: "
                "publish their studies separately (--study), or paths as well (--with paths)"
            )

    def _cut(self, value: Any, *, names: bool = False, choice: str | None = None) -> Any:
        """Return a value whose texts have no folders.

        Args:
            value: Text, which may be JSON, or a list or a map of values.
            names: Whether to cut out names of hosts and of the user, too.
            choice: Text that is kept where it is a whole value.
        """
        if isinstance(value, dict):
            cut = {}
            for name, item in value.items():
                key = self._cut(name, names=names, choice=choice)
                cut[key] = self._cut(item, names=names and name != _CHOICES, choice=choice)

            return cut

        if isinstance(value, list):
            return [self._cut(item, names=names, choice=choice) for item in value]

        if not isinstance(value, str) or value == choice:
            return value

        if not names and "/" not in value and "\\" not in value:
            return value

        settings = _settings(value)
        if settings is not None:
            cut = self._cut(settings, names=names, choice=choice)
            return value if cut == settings else to_json(cut)

        # What is left of two paths may be a third one.
        former = None
        while value != former:
            former = value
            value = self._cut_once(value, names=names)

        return value

    def _cut_once(self, text: str, *, names: bool) -> str:
        text = _CREDENTIALS.sub("", text)
        if Content.PATHS not in self._contents:
            text = _HOME.sub("~/", self._home.sub("~", text))
            text = _FOLDERS.sub("", text)

        if names and Content.HOSTS not in self._contents:
            # Shorter than any name: a merge keeps the longer text.
            text = self._all_names.sub("-", text)

        return text


def _settings(text: str) -> dict[str, Any] | None:
    """Return the map of a JSON text; None if it is another text."""
    if not text.startswith("{"):
        return None

    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        return None

    return settings if isinstance(settings, dict) else None


def _names(words: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of names, which letters and digits delimit."""
    names = []
    for word in sorted(words, key=len, reverse=True):
        if len(word) >= _LEAST_NAME and word not in _USUAL and not word.isdigit():
            names.append(re.escape(word))

    # Without a name, a pattern that matches nothing.
    choice = "|".join(names) or "(?!)"
    return re.compile(rf"(?<![^\W_])(?:{choice})(?![^\W_])", re.IGNORECASE)


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
