"""The objects of a fleet for Kubernetes: a job for each trainer.

The pods have no privileges, by the Pod Security Standard `restricted`, and a read-only root file
system. The password is a key of a secret, mounted as a file; the secret is created by the user, or
with the Helm chart.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shlex
from dataclasses import dataclass
from typing import Any

from archive import __version__
from archive.launchers.fleet import PASSWORD, PASSWORD_FILE, TrainerFleet
from archive.launchers.options import launch_option

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


def rendered(jobs: list[dict[str, Any]], fleet: TrainerFleet | None = None) -> str:
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
        pod["nodeSelector"] = dict(_pair(text) for text in request.node_selector)

    taints = [*request.toleration, *([request.gpu_resource] if request.gpus else [])]
    if taints:
        pod["tolerations"] = [{"key": taint, "operator": "Exists"} for taint in taints]

    return pod


def _container(fleet: TrainerFleet, request: KubernetesRequest) -> dict[str, Any]:
    variables = _variables(fleet, request) | dict(_pair(text) for text in request.env)
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
