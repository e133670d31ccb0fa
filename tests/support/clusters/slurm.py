"""A real Slurm cluster on this machine: a controller and nodes, each a separate process, without
munge or systemd.

Debian's packages are enough: apt-get install slurm-wlm. Every node has its own port, and all run on
this machine, with its file systems; jobs are as real as elsewhere. Authentication is off, so it
must not run where others could reach it.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

START_SECONDS = 90.0
CONTROLLER = "slurmctld"
COMMANDS = (CONTROLLER, "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2,requeue_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdTimeout=120
SlurmctldTimeout=120
MessageTimeout=60
KillWait={kill_wait}
MinJobAge=600
InactiveLimit=0
ReturnToService=2
{nodes}
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmCluster:
    """A controller, and nodes of two processors each.

    Args:
        folder: Folder of its files; short, since the path of a socket is limited.
        nodes: Number of nodes.
        kill_wait: Seconds between SIGTERM and SIGKILL of a job.
    """

    def __init__(self, folder: Path, nodes: int = 2, kill_wait: int = 10) -> None:
        self.folder = folder
        self.nodes = [f"n{at}" for at in range(1, nodes + 1)]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state").mkdir()
        host = socket.gethostname().partition(".")[0]
        ports = _free_ports(nodes + 1)
        lines = [
            (
                f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 "
                "State=UNKNOWN"
            )
            for name, port in zip(self.nodes, ports[1:], strict=True)
        ]
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(
            CONFIGURATION.format(
                host=host, controller=ports[0], user=getpass.getuser(), folder=folder, nodes="\n".join(lines),
                kill_wait=kill_wait,
            )
        )  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which Slurm's commands find the cluster."""
        return {"SLURM_CONF": str(self.configuration)}

    def start(self) -> None:
        """Start everything, and wait until all nodes are idle."""
        self._start(CONTROLLER, "-D")
        for name in self.nodes:
            self.start_node(name)

        deadline = time.monotonic() + START_SECONDS
        while self.states() != dict.fromkeys(self.nodes, "idle"):
            assert time.monotonic() < deadline, (
                f"Slurm does not start: {self.states()} {self.log()}"
            )
            time.sleep(0.2)

    def start_node(self, name: str) -> None:
        """Start the daemon of a node."""
        (self.folder / f"spool-{name}").mkdir(exist_ok=True)
        self._start("slurmd", "-D", "-N", name, key=name)

    def kill_node(self, name: str) -> None:
        """End a node as a power cut would: its daemon and all processes of its jobs at once,
        without a warning."""
        daemon = self._processes.pop(name)
        # A job's supervisor leaves the family of the daemon.
        supervisors = [each for each in psutil.process_iter() if self._supervises(each, name)]
        for process in [
            daemon,
            *supervisors,
            *(child for each in supervisors for child in _children(each)),
        ]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

        daemon.wait()

    def lose_node(self, name: str) -> None:
        """Kill a node, and tell the controller, which would notice after SlurmdTimeout."""
        self.kill_node(name)
        self.command("scontrol", "update", f"nodename={name}", "state=down", "reason=killed")

    def states(self) -> dict[str, str]:
        """Return the state of each node, as `sinfo` names it, without its flags."""
        done = self.command("sinfo", "--noheader", "--Node", "--format=%N %t")
        pairs = [line.split() for line in done.stdout.splitlines() if line.strip()]
        return {name: state.rstrip("*~#!%$@^-+") for name, state in pairs}

    def command(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm."""
        variables = {**os.environ, **(environment or {}), **self.environment}
        return subprocess.run(arguments, capture_output=True, text=True, env=variables, timeout=60)

    def log(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(
            path.read_text(errors="replace")[-1500:] for path in sorted(self.folder.glob("*.log"))
        )

    def stop(self) -> None:
        """End everything, jobs included."""
        for name in [name for name in self._processes if name != CONTROLLER]:
            self.kill_node(name)

        for process in self._processes.values():
            # With SIGTERM, the controller ends its helper process, too.
            process.terminate()
            process.wait()

    def _start(self, program: str, *arguments: str, key: str | None = None) -> None:
        with (self.folder / f"{key or program}.out").open("ab") as out:
            self._processes[key or program] = subprocess.Popen(
                [shutil.which(program) or program, *arguments],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **self.environment},
            )  # fmt: skip

    def _supervises(self, process: psutil.Process, node: str) -> bool:
        """Whether a process is the supervisor of a job on a node: it writes the log of the node's
        daemon."""
        try:
            logs = process.open_files() if process.name().startswith("slurmstepd") else ()
        except psutil.Error:
            return False

        return str(self.folder / f"slurmd-{node}.log") in [log.path for log in logs]


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()

    return ports


@contextmanager
def cluster(folder: Path, **options: int) -> Iterator[SlurmCluster]:
    """Run a cluster; skip the test where Slurm is not installed."""
    if missing := [name for name in COMMANDS if shutil.which(name) is None]:
        pytest.skip(f"Slurm is not installed: {missing[0]} (apt-get install slurm-wlm)")

    running = SlurmCluster(folder, **options)
    with _alone():
        try:
            running.start()
            yield running
        finally:
            running.stop()


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process of the tests runs a cluster: their trainers would starve each
    other."""
    with (Path(tempfile.gettempdir()) / f"archive-tests-slurm-{os.getuid()}.lock").open(
        "w"
    ) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
