"""Devices of this machine, as torch in a separate process finds them.

    auto               every GPU that torch sees; the CPU where the machine has none
    0,1,3, cuda:1      these GPUs, by torch's numbers
    cuda               the first GPU
    cpu, mps, …        any other device in torch's notation

A GPU that the system lists and torch cannot use is an error, not a reason to train on the CPU.
Trials see their own GPUs alone, through CUDA_VISIBLE_DEVICES (`Device.visible`): one, or the members
of a group.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from archive.errors import SettingsError, first_line
from archive.trainer.fit.memory import device_memory
from archive.trainer.trial import fork_server

VISIBLE = "CUDA_VISIBLE_DEVICES"
PROBE_SECONDS = 60.0
"""Longest wait for a device: a wedged driver never answers."""

_JOIN_SECONDS = 5.0
_LISTING_SECONDS = 20.0
_INDICES = re.compile(r"(?:cuda:)?(\d+)(?:,(?:cuda:)?(\d+))*")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Device:
    """A device for trials.

    Attributes:
        name: In torch's notation, as a trial sees it: a trial sees its own GPU alone, as `cuda`.
            A rank of a trial on several GPUs has the one of its local rank.
        label: In torch's notation, as the trainer's user sees it: `cuda:1`.
        hardware: Name of the hardware.
        memory_bytes: Its memory.
        visible: Value of CUDA_VISIBLE_DEVICES of its trials; None leaves it as it is.
        uuid: Identity of a GPU; empty for other devices, which any number of trainers may use.
        members: The devices of a group, which a trial has together; empty for one device.
    """

    name: str
    label: str
    hardware: str
    memory_bytes: int
    visible: str | None = None
    uuid: str = ""
    members: tuple[Device, ...] = ()

    def __str__(self) -> str:
        """Return label and hardware."""
        return f"{self.label} ({self.hardware})"


def find(request: str) -> list[Device]:
    """Return the devices of a request, as the head of the module lists them.

    Raises:
        SettingsError: There is no such device here, or a GPU does not answer.
    """
    indices = _indices(request)
    if indices is None and request != "auto":
        return [_other(request)]

    rows, problem = _ask(_list, None, request)
    if request == "auto" and not rows:
        _check_no_gpu(problem)
        return [_other("cpu")]

    gpus = [Device(**row) for row in rows]
    if indices is None:
        return gpus

    for index in indices:
        if index >= len(gpus):
            reason = problem or f"torch sees {len(gpus)} GPUs"
            raise SettingsError(f"the device {request!r} cannot be used: {reason}")

    return [gpus[index] for index in indices]


def group(members: Sequence[Device]) -> Device:
    """Return devices that a trial has together, with one rank on each, as one device."""
    first = members[0]
    if len(members) == 1:
        return first

    visible = None
    if first.visible is not None:
        visible = ",".join(member.visible or "" for member in members)

    return Device(
        first.name,
        "+".join(member.label for member in members),
        " + ".join(member.hardware for member in members),
        min(member.memory_bytes for member in members),
        visible,
        members=tuple(members),
    )


def check(device: Device) -> None:
    """Check that a GPU answers.

    Raises:
        SettingsError: It does not; its driver or the GPU has failed, or another process holds it
            exclusively.
    """
    _, problem = _ask(_touch, (device.name, device.visible), device.label)
    if problem:
        raise SettingsError(f"the device {device.label!r} cannot be used: {problem}")


def show_only(visible: str | None) -> None:
    """Let this process see one GPU alone; before its first use of CUDA."""
    if visible is not None:
        os.environ[VISIBLE] = visible


def system_gpus(root: Path = Path("/")) -> list[str]:
    """Return NVIDIA's GPUs by the system, without torch: device files, or lines of `nvidia-smi`."""
    files = sorted(str(path) for path in (root / "dev").glob("nvidia[0-9]*"))
    if files:
        return files

    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LISTING_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return ["nvidia-smi, which does not answer"]
    except OSError:
        return []

    gpus: list[str] = []
    for line in listed.stdout.splitlines():
        if line.startswith("GPU "):
            gpus.append(line.partition(" (UUID")[0])

    return gpus


def free_memory(device: Device) -> int | None:
    """Return the free memory of a GPU in bytes, without torch; None if `nvidia-smi` fails.

    Of a group, it is the memory of the GPU with the least.
    """
    if device.members:
        free = [free_memory(member) for member in device.members]
        return min((memory for memory in free if memory is not None), default=None)

    if not device.uuid:
        return None

    command = [
        "nvidia-smi",
        "--query-gpu=memory.free",
        "--format=csv,noheader,nounits",
        f"--id=GPU-{device.uuid}",
    ]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_LISTING_SECONDS
        )
    except (subprocess.TimeoutExpired, OSError):
        return None

    text = answer.stdout.strip()
    return int(text) << 20 if text.isdecimal() else None


def _indices(request: str) -> list[int] | None:
    if request == "cuda":
        return [0]

    if _INDICES.fullmatch(request) is None:
        return None

    return list(dict.fromkeys(int(part.removeprefix("cuda:")) for part in request.split(",")))


def _other(name: str) -> Device:
    hardware, problem = _ask(_touch, (name, None), name)
    if problem:
        raise SettingsError(f"the device {name!r} cannot be used: {problem}")

    return Device(name, name, hardware, device_memory())


def _check_no_gpu(problem: str) -> None:
    """Check that torch sees no GPU because there is none.

    Raises:
        SettingsError: The system lists one.
    """
    if os.environ.get(VISIBLE, "0").strip() in ("", "-1", "NoDevFiles"):
        return

    if gpus := system_gpus():
        raise SettingsError(
            f"this machine has a GPU ({gpus[0]}) that does not answer: "
            f"{problem or 'torch sees none'}; repair its "
            "driver, or train on the CPU with --devices cpu"
        )


def _ask(question: Callable[[Any, Connection], None], argument: Any, name: str) -> tuple[Any, str]:
    """Return a function's answer in a separate process, and the problem, empty without one."""
    connection, process = fork_server.start(question, argument)
    try:
        if not connection.poll(PROBE_SECONDS):
            process.kill()
            raise SettingsError(
                f"the device {name!r} cannot be used: it did not answer within {PROBE_SECONDS:g} s"
            )

        answer, problem = connection.recv()
    except (EOFError, OSError):
        raise SettingsError(
            f"the device {name!r} cannot be used: torch crashed when asked for it"
        ) from None
    finally:
        process.join(_JOIN_SECONDS)
        connection.close()

    return answer, problem


# The functions below run in a separate process.


def _list(_: None, asker: Connection) -> None:
    asker.send(_try(_gpus, []))


def _touch(argument: tuple[str, str | None], asker: Connection) -> None:
    name, visible = argument
    show_only(visible)

    def hardware() -> str:
        import torch

        torch.zeros(1, device=name)
        return torch.cuda.get_device_name(name) if name.startswith("cuda") else platform.machine()

    asker.send(_try(hardware, ""))


def _try(question: Callable[[], _T], failed: _T) -> tuple[_T, str]:
    try:
        return question(), ""
    except (RuntimeError, AssertionError, ValueError) as error:
        return failed, first_line(error)


def _gpus() -> list[dict[str, Any]]:
    import torch

    torch.zeros(0, device="cuda")  # Raises the reason where `device_count` returns 0.
    count = torch.cuda.device_count()
    tokens = list(filter(None, map(str.strip, os.environ.get(VISIBLE, "").split(","))))
    if len(tokens) < count:
        tokens = []

    return [_gpu(index, tokens) for index in range(count)]


def _gpu(index: int, tokens: Sequence[str]) -> dict[str, Any]:
    import torch

    properties = torch.cuda.get_device_properties(index)
    uuid = str(getattr(properties, "uuid", "")) or f"{platform.node()}-{index}"
    visible = f"GPU-{uuid}" if hasattr(properties, "uuid") else str(index)
    if tokens:
        # A restriction of this process names a part of a GPU by words that torch does not repeat.
        visible = tokens[index]
        if visible.startswith("MIG"):
            uuid = f"{uuid}-{visible}"

    return {
        "name": "cuda",
        "label": f"cuda:{index}",
        "hardware": properties.name,
        "memory_bytes": int(properties.total_memory),
        "visible": visible,
        "uuid": uuid,
    }
