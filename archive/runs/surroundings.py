"""What the result of a run may depend on beside its program: packages, devices, settings.

Values of environment variables are kept for the names in `VARIABLES` alone: any other may be a
secret.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED", "WORLD_SIZE",
    "RANK", "LOCAL_RANK", "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "SLURM_GPUS", "CUBLAS_WORKSPACE_CONFIG",
    "TORCH_COMPILE_DISABLE", "CONDA_DEFAULT_ENV",
)  # fmt: skip

MOST_PACKAGES = 400
GPU_SECONDS = 5.0


def describe(interpreter: str | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the surroundings of a run as a JSON object.

    Args:
        interpreter: Path or name of the Python that runs the program; None for another language.
        environment: Environment variables of the program.
    """
    described: dict[str, Any] = {
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
    }
    variables = {name: environment[name] for name in VARIABLES if name in environment}
    if variables:
        described["variables"] = variables

    packages = None if interpreter is None else _packages_of(interpreter)
    if packages:
        described["packages"] = packages

    gpus = _gpus()
    if gpus:
        described["gpus"] = gpus

    return described


def _packages_of(interpreter: str) -> dict[str, str]:
    """Return the installed packages of a Python, read from the names of their folders."""
    path = shutil.which(interpreter)
    if path is None:
        return {}

    packages: dict[str, str] = {}
    # A virtual environment is the folder above the link; the system's Python has another place.
    for folder in sorted(Path(path).absolute().parent.parent.glob("lib/python*/*-packages")):
        for about in sorted(folder.glob("*.dist-info")):
            name, _, version = about.name.removesuffix(".dist-info").partition("-")
            if version and len(packages) < MOST_PACKAGES:
                packages.setdefault(name.lower().replace("_", "-"), version)

    return packages


def _gpus() -> list[str]:
    """Return the names of the machine's GPUs; none without NVIDIA's program."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []

    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(
            [program, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=GPU_SECONDS,
            check=True,
        )
        return [line.strip() for line in listed.stdout.splitlines() if line.strip()]

    return []
