"""Trainers as jobs of Kubernetes: one job each, created by kubectl in its current context.

    kubectl create   the objects that `archive.launchers.kubernetes` renders, as one list
    kubectl get      lists the jobs by their label, which is the fleet's id: Kubernetes keeps the list, no file does
    kubectl delete   SIGTERM, upon which a trainer returns its proposals, and SIGKILL after the grace period

A pod that is evicted fails its job, and the queue's keeper starts another one. Trainers that follow
the queue without a keeper, and everything around them, are in the Helm chart
(`deploy/helm/nas-archive`).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shlex
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from typing import Any, ClassVar

from archive import __version__
from archive.errors import LaunchError
from archive.launchers.base import LaunchedTrainer, Launcher, TrainerFailure
from archive.launchers.options import launch_option
from archive.launchers.records import PASSWORD, PASSWORD_FILE, TrainerFleet

CONTAINER = "trainer"
FLEET_LABEL = "nas-archive/fleet"
HOME = "/var/lib/archive"
"""Home of the image (docker/trainer.Dockerfile)."""
_USER = 10001
_MOUNTED = "/run/secrets/archive"
_LONGEST = 40


@dataclass
class KubernetesRequest:
    """What a trainer asks Kubernetes for.

    Attributes are the options of `KubernetesLauncher`; times are in seconds, sizes in bytes.
    """

    image: str = launch_option(
        "Image of the trainers.", default=f"nas-archive-trainer:{__version__}"
    )
    namespace: str | None = launch_option("Namespace.", shown="that of the context")
    context: str | None = launch_option("Context of kubectl.", shown="the current one")
    secret: str = launch_option(
        "Secret with the database's password, under the key password.", default="nas-archive"
    )
    gpus: int = launch_option("GPUs of each trainer.", "count", 0)
    gpu_resource: str = launch_option(
        "Name of the resource that counts GPUs.", default="nvidia.com/gpu"
    )
    cpus: float = launch_option("Processor cores of each trainer.", "number", 1.0)
    memory: int | None = launch_option("Memory limit of each trainer.", "size")
    claim: str | None = launch_option(
        "Volume claim for the archive's home: weights, checkpoints, undelivered results."
    )
    service_account: str | None = launch_option(
        "Service account of the pods.", shown="the namespace's"
    )
    node_selector: tuple[str, ...] = launch_option(
        "Label NAME=VALUE that the nodes must have.", "texts", ()
    )
    toleration: tuple[str, ...] = launch_option(
        "Taint of nodes that the pods tolerate.", "texts", ()
    )
    env: tuple[str, ...] = launch_option(
        "Further variable NAME=VALUE of the trainers.", "texts", ()
    )
    env_from: tuple[str, ...] = launch_option(
        "Secret whose keys are variables of the trainers.", "texts", ()
    )
    keep: float = launch_option(
        "Time for which ended jobs are kept with their logs.", "duration", 3600.0, "1h"
    )


def objects(fleet: TrainerFleet, request: KubernetesRequest, count: int) -> list[dict[str, Any]]:
    """Return the jobs of new trainers, with names that no earlier ones have.

    Args:
        fleet: The fleet.
        request: What each trainer asks for.
        count: Number of trainers.
    """
    return [_job(fleet, request, f"{label_of(fleet)}-{secrets.token_hex(4)}") for _ in range(count)]


def render_objects(jobs: list[dict[str, Any]], fleet: TrainerFleet | None = None) -> str:
    """Return objects as YAML.

    Args:
        jobs: The objects.
        fleet: Fleet whose command is shown in a comment.
    """
    import yaml

    comment = "" if fleet is None else f"# each: archive trainer {shlex.join(fleet.arguments)}\n"
    # Twice the same object would become an anchor and an alias.
    plain = json.loads(json.dumps(jobs))
    return comment + str(
        yaml.safe_dump_all(
            plain, sort_keys=False, width=120, allow_unicode=True, explicit_start=True
        )
    )


def label_of(fleet: TrainerFleet) -> str:
    """Return the id of a fleet as a label and a part of names: lower case, and short."""
    plain = re.sub(r"[^a-z0-9]+", "-", fleet.id.lower()).strip("-")
    if plain == fleet.id and len(plain) <= _LONGEST:
        return plain

    digest = hashlib.sha256(fleet.id.encode()).hexdigest()[:6]
    return f"{plain[:_LONGEST].strip('-')}-{digest}"


def _job(fleet: TrainerFleet, request: KubernetesRequest, name: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "nas-archive", "app.kubernetes.io/component": "trainer"}
    labels[FLEET_LABEL] = label_of(fleet)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": round(request.keep),
            "template": {"metadata": {"labels": labels}, "spec": _pod(fleet, request)},
        },
    }


def _pod(fleet: TrainerFleet, request: KubernetesRequest) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": round(fleet.grace_seconds) + 10,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(fleet, request)],
        "volumes": _volumes(fleet, request),
    }  # fmt: skip
    if request.service_account:
        pod["serviceAccountName"] = request.service_account

    if request.node_selector:
        pod["nodeSelector"] = dict(map(_pair, request.node_selector))

    taints = [*request.toleration, *([request.gpu_resource] if request.gpus else [])]
    if taints:
        pod["tolerations"] = [{"key": taint, "operator": "Exists"} for taint in taints]

    return pod


def _container(fleet: TrainerFleet, request: KubernetesRequest) -> dict[str, Any]:
    variables = _variables(fleet, request) | dict(map(_pair, request.env))
    limits: dict[str, Any] = {} if request.memory is None else {"memory": request.memory}
    if request.gpus:
        limits[request.gpu_resource] = request.gpus

    mounts: list[dict[str, Any]] = [
        {"name": "home", "mountPath": HOME},
        {"name": "scratch", "mountPath": "/tmp"},
    ]
    mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": request.image,
        # The image's entry point is `archive`.
        "args": ["trainer", *fleet.arguments],
        "env": [{"name": name, "value": value} for name, value in sorted(variables.items())],
        "resources": {"requests": {"cpu": f"{request.cpus:g}"}, "limits": limits},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
    }  # fmt: skip
    if fleet.password_file is not None:
        mounts.append({"name": "password", "mountPath": _MOUNTED, "readOnly": True})

    if request.env_from:
        container["envFrom"] = [{"secretRef": {"name": name}} for name in request.env_from]

    return container | {"volumeMounts": mounts}


def _variables(fleet: TrainerFleet, request: KubernetesRequest) -> dict[str, str]:
    """Return the way to the archive, from inside of a pod, and the threads of a trial."""
    # A request of cores limits no process: without this, each would use all cores of its node.
    threads = {"OMP_NUM_THREADS": str(max(1, int(request.cpus) // fleet.slots))}
    variables = {**fleet.environment(), "ARCHIVE_HOME": HOME, **threads}
    variables.pop(PASSWORD, None)
    if variables.pop(PASSWORD_FILE, None) is not None:
        variables[PASSWORD_FILE] = f"{_MOUNTED}/password"

    return variables


def _volumes(fleet: TrainerFleet, request: KubernetesRequest) -> list[dict[str, Any]]:
    home = (
        {"persistentVolumeClaim": {"claimName": request.claim}}
        if request.claim
        else {"emptyDir": {}}
    )
    volumes: list[dict[str, Any]] = [{"name": "home", **home}, {"name": "scratch", "emptyDir": {}}]
    # The worker processes of data loaders hand over batches in shared memory; a container has 64 MB
    # otherwise.
    volumes.append({"name": "shm", "emptyDir": {"medium": "Memory"}})
    if fleet.password_file is not None:
        secret = {
            "secretName": request.secret,
            "defaultMode": 0o440,
            "items": [{"key": "password", "path": "password"}],
        }
        volumes.append({"name": "password", "secret": secret})

    return volumes


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


COMMAND_SECONDS = 60.0
"""Longest wait for an answer of the API server."""
MOST_LINES = 3
"""Most lines of an error of kubectl that are shown, each for all that differ in names and numbers
only."""

_NAME_OR_NUMBER = re.compile(r'"[a-z0-9][a-z0-9.-]*"|\d+')


@dataclass
class KubernetesLauncher(KubernetesRequest, Launcher):
    """A Kubernetes cluster that kubectl reaches, with an image and a way to the database."""

    name: ClassVar[str] = "kubernetes"
    where: ClassVar[str] = "the nodes of Kubernetes"
    requires: ClassVar[tuple[str, ...]] = ("yaml",)
    extra: ClassVar[str | None] = "kubernetes"
    poll_seconds: ClassVar[float] = 10.0
    grace_seconds: ClassVar[float] = 110.0

    def elsewhere(self) -> bool:
        """Yes: a pod has a separate network."""
        return True

    def start(self, fleet: TrainerFleet, count: int) -> None:
        """Create jobs."""
        self._kubectl("create", "--filename=-", text=render_objects(objects(fleet, self, count)))

    def running(self, fleet: TrainerFleet) -> list[LaunchedTrainer]:
        """Return the jobs that have not ended."""
        jobs = self._list("jobs", fleet)
        pods = {_job_of(pod): pod for pod in self._list("pods", fleet)}
        active = list(filterfalse(_has_ended, jobs))
        active.sort(key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]))
        trainers = []
        for job in active:
            name = job["metadata"]["name"]
            trainers.append(_trainer(name, pods.get(name, {})))

        return trainers

    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """Delete jobs with their pods; Kubernetes kills those that do not end in time."""
        names = {job["metadata"]["name"] for job in self._list("jobs", fleet)}
        if listed := [id_ for id_ in ids if id_ in names]:
            options = ("--ignore-not-found", "--cascade=foreground", "--wait=false")
            self._kubectl("delete", "jobs", *listed, *options)

    def preview(self, fleet: TrainerFleet, count: int) -> str:
        """Return the objects as YAML for `kubectl create`."""
        return render_objects(objects(fleet, self, count), fleet)

    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failed pods; Kubernetes keeps ended jobs for the time of `keep`."""
        pods = [pod for pod in self._list("pods", fleet) if _job_of(pod) in ids]
        failed = [(pod, ended) for pod in pods if (ended := _status(pod)) is not None]
        failed.sort(key=lambda failure: str(failure[1].get("finishedAt")))
        return [_failure(pod, ended) for pod, ended in failed]

    def _list(self, kind: str, fleet: TrainerFleet) -> list[dict[str, Any]]:
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
    """Return the lines of an error as one: a full quota has a line for each refused job."""
    alike: dict[str, list[str]] = {}
    for words in filter(None, map(str.split, text.splitlines())):
        line = " ".join(words)
        alike.setdefault(_NAME_OR_NUMBER.sub("", line), []).append(line)

    shown = []
    for alike_jobs in alike.values():
        shown.append(
            f"{alike_jobs[0]} ({len(alike_jobs):,} such lines)"
            if len(alike_jobs) > 1
            else alike_jobs[0]
        )

    others = sum(map(len, [*alike.values()][MOST_LINES:]))
    return " ".join([*shown[:MOST_LINES], *([f"(and {others:,} other lines)"] if others else [])])


def _has_ended(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    met = {condition["type"] for condition in conditions if condition["status"] == "True"}
    ended = not met.isdisjoint({"Complete", "Failed"})
    return ended or "deletionTimestamp" in job["metadata"]


def _job_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", ""))


def _trainer(name: str, pod: dict[str, Any]) -> LaunchedTrainer:
    status = pod.get("status", {})
    if status.get("phase") == "Running":
        return LaunchedTrainer(name, "running", pod["spec"].get("nodeName"))

    waiting = []
    for container in status.get("containerStatuses", ()):
        waiting.append(container["state"].get("waiting", {}).get("reason"))

    unscheduled = []
    for condition in status.get("conditions", ()):
        if condition["status"] == "False":
            unscheduled.append(condition.get("message"))

    reason = next(filter(None, (*waiting, *unscheduled)), None)
    return LaunchedTrainer(name, "pending", reason=reason)


def _failure(pod: dict[str, Any], ended: dict[str, Any]) -> TrainerFailure:
    # The termination message is the end of the log.
    words = " | ".join((ended.get("message") or ended.get("reason") or "").splitlines()[-3:])
    return TrainerFailure(
        _job_of(pod), ended.get("exitCode"), f"see kubectl logs {pod['metadata']['name']}: {words}"
    )


def _status(pod: dict[str, Any]) -> dict[str, Any] | None:
    """Return the end of the trainer's container; None unless it failed."""
    for container in pod.get("status", {}).get("containerStatuses", ()):
        ended: dict[str, Any] | None = container.get("state", {}).get("terminated")
        if container["name"] == CONTAINER and ended is not None and ended.get("exitCode"):
            return ended

    return None
