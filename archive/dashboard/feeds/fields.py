"""Fields of the rows of a study: a proposal with its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archive.store.studies.creation import FEASIBLE, MOST_OBJECTIVES, WHOLE

Row = tuple[Any, ...]

OF_OBJECTIVES = {
    f"objective_{index + 1}": f"e['metric_' + $objectives[{index}]]"
    for index in range(1, MOST_OBJECTIVES)
}
"""Values of the objectives beside the first one, whose value is `value`; a study that has fewer
reads null."""

FIELDS: Mapping[str, str] = {
    "number": "p.number",
    "state": "p.state",
    "value": "e.value",
    "mean": "p.mean",
    "std": "p.std",
    "agent": "p.agent",
    "architecture": "p.architecture",
    "epochs": "e.epochs",
    "seconds": "e.seconds",
    "finished": "p.finished",
    "params": "e.metric_params",
    "flops": "e.metric_flops",
    "latency_ms": "e.metric_latency_ms",
    "peak_memory_bytes": "e.metric_peak_memory_bytes",
    "rung": "p.rung",
    "worker": "p.worker",
    "reason": "p.reason",
    "answered_from": "e.answered_from",
    **OF_OBJECTIVES,
    # Parameters stand for the study's node: these queries start from proposals, and it would cost a
    # look-up each.
    "feasible": f"coalesce({FEASIBLE.replace('s.', '$')}, false)",
    "whole": f"coalesce({WHOLE.replace('s.', '$')}, false)",
}
"""Fields of a row with their places in the database."""

NUMBER, STATE, VALUE = (list(FIELDS).index(name) for name in ("number", "state", "value"))
AGENT, REASON, FEASIBLE_AT, WHOLE_AT = (
    list(FIELDS).index(name) for name in ("agent", "reason", "feasible", "whole")
)

COLLECTED = f"collect([{', '.join(FIELDS.values())}])"
"""The rows of several proposals `p` with their evaluations `e`."""
