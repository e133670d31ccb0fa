"""Trainers as jobs of Kubernetes: one job each, created by kubectl in its current context.

    kubectl create   the objects that `archive.launchers.kubernetes_objects` renders, as one list
    kubectl get      lists the jobs by their label, which is the fleet's id: Kubernetes keeps the list, no file does
    kubectl delete   SIGTERM, upon which a trainer returns its proposals, and SIGKILL after the grace period

A pod that is evicted fails its job, and the queue's keeper starts another one. Trainers that follow
the queue without a keeper, and everything around them, are in the Helm chart
(`deploy/helm/nas-archive`).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from archive.errors import LaunchError
from archive.launchers.base import LaunchedTrainer, Launcher, TrainerFailure
from archive.launchers.fleet import TrainerFleet
from archive.launchers.kubernetes_objects import (
    CONTAINER,
    FLEET_LABEL,
    KubernetesRequest,
    label_of,
    objects,
    rendered,
)

COMMAND_SECONDS = 60.0
"""Longest wait for an answer of the API server."""
MOST_LINES = 3
"""Most lines of an error of kubectl that are shown, each for all that differ in names and numbers
only."""

_NAME_OR_NUMBER = re.compile(r'"[a-z0-9][a-z0-9.-]*"|\d+')


@dataclass
class KubernetesLauncher(KubernetesRequest, Launcher):
    """A Kubernetes cluster that kubectl reaches, with an image of this package and a way to the
    database.
    """

    name: ClassVar[str] = "kubernetes"
    where: ClassVar[str] = "the nodes of Kubernetes"
    requires: ClassVar[tuple[str, ...]] = ("yaml",)
    extra: ClassVar[str | None] = "kubernetes"
    poll_seconds: ClassVar[float] = 10.0
    grace_seconds: ClassVar[float] = 110.0

    def elsewhere(self) -> bool:
        """Yes: a pod has a network of its own."""
        return True

    def start(self, fleet: TrainerFleet, count: int) -> None:
        """Create jobs."""
        self._kubectl("create", "--filename=-", text=rendered(objects(fleet, self, count)))

    def running(self, fleet: TrainerFleet) -> list[LaunchedTrainer]:
        """Return the jobs that have not ended."""
        jobs = self._listed("jobs", fleet)
        pods = {_job_of(pod): pod for pod in self._listed("pods", fleet)}
        own = [job for job in jobs if not _ended(job)]
        own.sort(key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]))
        return [
            _trainer(job["metadata"]["name"], pods.get(job["metadata"]["name"], {})) for job in own
        ]

    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """Delete jobs with their pods; Kubernetes kills those that do not end in time."""
        own = {job["metadata"]["name"] for job in self._listed("jobs", fleet)}
        if chosen := [id_ for id_ in ids if id_ in own]:
            options = ("--ignore-not-found", "--cascade=foreground", "--wait=false")
            self._kubectl("delete", "jobs", *chosen, *options)

    def preview(self, fleet: TrainerFleet, count: int) -> str:
        """Return the objects as YAML for `kubectl create`."""
        return rendered(objects(fleet, self, count), fleet)

    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failed pods; Kubernetes keeps ended jobs for the time of `keep`."""
        pods = [pod for pod in self._listed("pods", fleet) if _job_of(pod) in ids]
        failed = [(pod, ended) for pod in pods if (ended := _status(pod)) is not None]
        failed.sort(key=lambda each: str(each[1].get("finishedAt")))
        return [_failure(pod, ended) for pod, ended in failed]

    def _listed(self, kind: str, fleet: TrainerFleet) -> list[dict[str, Any]]:
        text = self._kubectl(
            "get", kind, f"--selector={FLEET_LABEL}={label_of(fleet)}", "--output=json"
        )
        return list(json.loads(text)["items"])

    def _kubectl(self, *command: str, text: str | None = None) -> str:
        """Run kubectl, and return its output.

        Raises:
            LaunchError: It is missing, fails, or does not answer.
        """
        where = [f"--namespace={self.namespace}"] if self.namespace else []
        where += [f"--context={self.context}"] if self.context else []
        try:
            done = subprocess.run(
                ["kubectl", *command, *where, f"--request-timeout={COMMAND_SECONDS:g}s"],
                input=text, capture_output=True, text=True, errors="replace", timeout=2 * COMMAND_SECONDS,
                stdin=subprocess.DEVNULL if text is None else None,
            )  # fmt: skip
        except FileNotFoundError:
            raise LaunchError(
                "kubectl is not on this machine: https://kubernetes.io/docs/tasks/tools"
            ) from None
        except subprocess.TimeoutExpired:
            raise LaunchError(
                f"kubectl has not answered within {2 * COMMAND_SECONDS:g} s"
            ) from None

        if done.returncode:
            raise LaunchError(f"kubectl {command[0]} failed: {_summary(done.stderr)}")

        return done.stdout


def _summary(text: str) -> str:
    """Return the lines of an error as one: a quota that refuses many jobs has a line for each of
    them.
    """
    alike: dict[str, list[str]] = {}
    for line in filter(None, (" ".join(each.split()) for each in text.splitlines())):
        alike.setdefault(_NAME_OR_NUMBER.sub("", line), []).append(line)

    shown = [
        f"{each[0]} ({len(each):,} such lines)" if len(each) > 1 else each[0]
        for each in alike.values()
    ]
    others = sum(map(len, [*alike.values()][MOST_LINES:]))
    return " ".join([*shown[:MOST_LINES], *([f"(and {others:,} other lines)"] if others else [])])


def _ended(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    ended = any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions
    )
    return ended or "deletionTimestamp" in job["metadata"]


def _job_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", ""))


def _trainer(name: str, pod: dict[str, Any]) -> LaunchedTrainer:
    status = pod.get("status", {})
    if status.get("phase") == "Running":
        return LaunchedTrainer(name, "running", pod["spec"].get("nodeName"))

    waiting = [
        each["state"].get("waiting", {}).get("reason")
        for each in status.get("containerStatuses", ())
    ]
    unscheduled = [
        each.get("message") for each in status.get("conditions", ()) if each["status"] == "False"
    ]
    return LaunchedTrainer(
        name, "pending", reason=next((why for why in (*waiting, *unscheduled) if why), None)
    )


def _failure(pod: dict[str, Any], ended: dict[str, Any]) -> TrainerFailure:
    # The termination message is the end of the log.
    words = " | ".join((ended.get("message") or ended.get("reason") or "").splitlines()[-3:])
    return TrainerFailure(
        _job_of(pod), ended.get("exitCode"), f"see kubectl logs {pod['metadata']['name']}: {words}"
    )


def _status(pod: dict[str, Any]) -> dict[str, Any] | None:
    """Return the end of the trainer's container; None unless it failed."""
    for each in pod.get("status", {}).get("containerStatuses", ()):
        ended: dict[str, Any] | None = each.get("state", {}).get("terminated")
        if each["name"] == CONTAINER and ended is not None and ended.get("exitCode"):
            return ended

    return None
