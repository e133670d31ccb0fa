"""Shared parts of the tests of dumps: an archive with one record of every kind, and forged
files."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path

from archive.architecture.graph import Architecture
from archive.exchange.dump import dump
from archive.store.evaluations import Evaluations
from archive.store.records import Result, Weights
from tests.support.stores import Suggestion, cells, study

STATES = ("COMPLETE", "PRUNED", "FAILED", "WAITING", "RUNNING", "COMPLETE")


def fill(
    archive, name: str = "one", first: int = 0, *, agent: str = "random"
) -> list[Architecture]:
    """Create a study with a proposal in each state, external results, distances, a morph and a warm
    start."""
    networks = list(cells(first + 8)[first:])
    proposals = archive.proposals
    made = archive.proposals.register_agent(agent, {"depth": [1, 2]}, "1")
    archive.studies.create(study(f"{name}-source", seed=first))
    archive.studies.create(
        study(name, seed=first, config={"agent": agent}, space_config={"most": 3})
    )
    archive.studies.warm_start(f"{name}-source", [])
    suggestions = [
        Suggestion(
            network,
            0.5,
            0.25,
            0.125,
            networks[7],
            ("swap", "drop"),
            {"learning_rate": 0.1},
            priority,
        )
        for priority, network in zip((6.0, 5.0, 4.0, 0.0, 1.0, 7.0), networks, strict=False)
    ]
    basis = {
        "observations": {name: "", f"{name}-source": "0-3"},
        "pending": "",
        "failed": "",
        "wanted": 6,
    }
    basis["coupling"] = {f"{name}-source": 0.5}
    proposals.create(name, made, suggestions, basis=basis, seconds=0.75)
    proposals.register_worker(f"worker-{name}", "host", "cpu")
    curve = {"train_loss": [2.0, math.nan], "valid_accuracy": [0.5, 0.75]}
    for state in ("COMPLETE", "COMPLETE", "PRUNED", "FAILED", "RUNNING"):
        claim = proposals.claim(f"worker-{name}", study=name, lease_seconds=1000)
        proposals.report(claim.id, claim.token, curve, 1000)
        saved = Weights(f"file:///{claim.proposal.architecture_key}", "ab" * 32, 10)
        environment = {"torch": "2.8"}
        result = Result(0.75, {"accuracy": 0.75}, curve, 2, 1.5, 7, "cpu", environment, saved)
        if state in ("COMPLETE", "PRUNED"):
            proposals.complete(claim.id, claim.token, result, pruned=state == "PRUNED")
        elif state == "FAILED":
            proposals.fail(claim.id, claim.token, "out of memory", log="a traceback")

    Evaluations(archive.connection, archive.architectures).add(
        "table",
        "table/1",
        [(f"table/{name}/{first}", networks[0].key, Result(math.nan, {"odd": math.inf}))],
    )
    archive.architectures.add([networks[6]])
    keys = sorted(network.key for network in networks[:4])
    pairs = [(a, b) for a in keys for b in keys if a < b]
    archive.proxies.add(
        "digits", "digits/1", "archive/1", {keys[0]: {"synflow": 3.5, "naswot": math.nan}}
    )
    archive.distances.store(
        pairs, {"otmann": [[0.1 * at, 1.0] for at in range(6)], "edit": list(range(6))}
    )
    return networks


def dumped(archive, path: Path, **options) -> bytes:
    """Return the bytes of a dump."""
    dump(archive.connection, path, force=True, **options)
    return path.read_bytes()


def records(path: Path) -> list[dict]:
    """Return every line of a dump, the first and the last included."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def forged(path: Path, change: Callable[[list[dict]], object]) -> Path:
    """Write a changed dump with matching digest and counts."""
    import hashlib
    from collections import Counter

    lines = records(path)
    change(lines)
    head, *body = lines[:-1]
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in (head, *body)).encode()
    counts = Counter(line.get("record") for line in body)
    end = {"counts": dict(counts), "sha256": hashlib.sha256(text).hexdigest()}
    path.write_bytes(gzip.compress(text + json.dumps(end).encode() + b"\n"))
    return path
