"""The embedded server: one for each folder, restarted after a kill, ended when idle."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from archive import settings
from archive.database.connection import Connection
from archive.database.user_query import run_query
from archive.errors import ServerStartError, SettingsError, StoreError
from archive.server import embedded, engine, run_file, supervisor
from archive.server.process import end_orphan
from archive.server.run_file import Folder
from tests.support import ROOT, WHOLE, java_only, wait_until, whole

pytestmark = pytest.mark.lasts(0.6)

ON_LINUX = sys.platform.startswith("linux")


@pytest.fixture
def folder(home):
    return Folder(home.home)


@pytest.fixture
def running(home):
    embedded.start(home)
    return embedded.status(home)


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """Settings of a server for tests that do not change it."""
    own = settings.load(home=tmp_path_factory.mktemp("standing"), environment=java_only())
    embedded.start(own)
    yield own
    embedded.stop(own)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """Settings of a server that tests stop and kill: each of them begins with a start."""
    own = settings.load(home=tmp_path_factory.mktemp("mortal"), environment=java_only())
    yield own
    embedded.stop(own)


def client(home, code):
    """A separate process that uses the server over `home`."""
    imports = "from archive import settings; from archive.server import embedded as server"
    script = f"{imports}; s = settings.load(home={str(home.home)!r}); {code}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def servers_over(folder):
    """Return the process ids of all supervisors over a folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "archive.server.supervisor" in words and str(folder.home) in words:
            found.append(process.pid)

    return found


def remember(home, value):
    with Connection.open(home) as connection:
        run_query(connection, "CREATE (:Memory {value: $value})", {"value": value}, write=True)


def remembered(home):
    with Connection.open(home) as connection:
        return [
            value
            for (value,) in run_query(
                connection, "MATCH (m:Memory) RETURN m.value ORDER BY m.value"
            ).rows
        ]


# Start, status, stop


def test_a_folder_without_a_server(home):
    assert embedded.status(home) == embedded.Status(running=False, folder=home.home)
    assert embedded.stop(home) is False
    assert not home.home.exists()


def test_start_and_status(standing):
    running = embedded.status(standing)
    assert running.running
    assert running.state == "ready"
    assert running.folder == standing.home
    assert running.rss_bytes > 0
    assert running.uptime_seconds >= 0
    assert psutil.pid_exists(running.pid) and psutil.pid_exists(running.java_pid)
    assert embedded.ensure_running(standing).port == running.port


def test_starting_again_finds_the_same_server(standing):
    running = embedded.status(standing)
    again = embedded.start(standing)
    assert (again.pid, again.java_pid, again.port) == (running.pid, running.java_pid, running.port)


def test_stop_ends_both_processes_and_keeps_the_data(mortal):
    running = embedded.start(mortal)
    remember(mortal, 1)
    assert embedded.stop(mortal) is True
    assert gone(running.java_pid)
    # Its folder is unlocked a moment before the supervisor is gone.
    wait_until(lambda: gone(running.pid), what="the end of the supervisor")
    assert embedded.status(mortal).state == "stopped"
    assert embedded.stop(mortal) is False
    assert 1 in remembered(mortal)


@pytest.mark.whole
def test_a_new_start_prefers_the_last_port(running, home):
    embedded.stop(home)
    assert embedded.start(home).port == running.port


@pytest.mark.whole
def test_a_port_that_is_taken_is_left_alone(running, home):
    embedded.stop(home)
    with socket.create_server(("127.0.0.1", running.port)):
        assert embedded.start(home).port != running.port


def test_many_processes_at_once_get_one_server(home, folder):
    code = (
        "f = server.ensure_running(s); print(server.status(s).pid, server.status(s).java_pid, "
        "f.port)"
    )
    clients = [client(home, code) for _ in range(8 if WHOLE else 4)]
    answers = {each.communicate(timeout=120)[0] for each in clients}
    assert len(answers) == 1
    assert len(servers_over(folder)) == 1


def test_two_supervisors_never_share_a_folder(standing):
    running = embedded.status(standing)
    command = [sys.executable, "-m", "archive.server.supervisor", str(standing.home), "128", "60"]
    second = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60, check=False
    )
    assert second.returncode == run_file.ALREADY_RUNNING
    assert embedded.status(standing).java_pid == running.java_pid


@pytest.mark.whole
def test_a_starter_that_is_killed_half_way_does_no_harm(home, folder):
    starter = client(home, "server.ensure_running(s)")
    wait_until(lambda: servers_over(folder), what="a supervisor")
    starter.kill()
    starter.communicate()
    assert embedded.start(home).running
    # A second supervisor that found the folder locked may be ending.
    wait_until(lambda: len(servers_over(folder)) == 1, what="one supervisor")


@pytest.mark.whole
def test_a_damaged_run_file_of_a_living_server_is_mended(home, folder):
    running = embedded.start(home)
    folder.run.write_text("garbage")
    wait_until(lambda: embedded.status(home).running, what="the run file")
    assert embedded.status(home).java_pid == running.java_pid
    folder.run.unlink()
    wait_until(lambda: embedded.status(home).running, what="the run file")
    assert embedded.stop(home)


def test_the_server_is_out_of_reach_of_the_starters_terminal(standing):
    running = embedded.status(standing)
    assert os.getsid(running.pid) == running.pid != os.getsid(0)
    assert os.getpgid(running.java_pid) != os.getpgid(0)


# Kills


def test_a_killed_database_comes_back_on_its_port(mortal):
    running = embedded.start(mortal)
    remember(mortal, 2)
    kill(running.java_pid)
    assert 2 in remembered(mortal)
    after = embedded.status(mortal)
    assert (after.pid, after.port) == (running.pid, running.port)
    assert after.restarts == running.restarts + 1
    assert after.java_pid != running.java_pid


@pytest.mark.skipif(not ON_LINUX, reason="the kernel ends the orphan only on Linux")
def test_the_database_dies_with_its_supervisor(mortal):
    running = embedded.start(mortal)
    kill(running.pid)
    wait_until(lambda: gone(running.java_pid), what="the end of the database")


@pytest.mark.whole
def test_a_killed_supervisor_is_replaced(running, home):
    remember(home, 1)
    kill(running.pid)
    assert remembered(home) == [1]
    assert embedded.status(home).pid != running.pid


@pytest.mark.whole
def test_everything_killed_at_once(running, home, folder):
    remember(home, 1)
    kill(running.pid)
    kill(running.java_pid)
    assert remembered(home) == [1]
    assert len(servers_over(folder)) == 1


def test_the_database_inherits_the_lock(standing):
    if not ON_LINUX:
        pytest.skip("needs /proc")

    inherited = set()
    for descriptor in Path(f"/proc/{embedded.status(standing).java_pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            inherited.add(descriptor.readlink())

    assert Folder(standing.home).lock in inherited


@pytest.mark.whole
def test_a_database_that_keeps_dying_is_given_up(running, home, folder):
    seen = set()
    for _ in range(supervisor.MAX_RESTARTS):
        now = wait_until(
            lambda: (
                (found := embedded.status(home)).java_pid not in {0, *seen}
                and found.running
                and found
            )
        )
        seen.add(now.java_pid)
        kill(now.java_pid)

    wait_until(lambda: gone(running.pid), what="the end of the supervisor")
    assert embedded.status(home).state == "failed"
    assert "died 5 times" in embedded.status(home).error
    assert embedded.start(home).running


# Stale files


@pytest.mark.parametrize(
    "content", ["", "{", "null", '{"port": 1}', '{"pid": 1, "nonsense": 2}', "\0\0\0"]
)
def test_a_run_file_without_sense_is_no_obstacle(home, folder, content):
    folder.create()
    folder.run.write_text(content)
    assert embedded.status(home).running is False
    assert run_file.read_run(folder) is None


@pytest.mark.parametrize("step", [-86_400.0, 3.0])
def test_a_server_is_known_again_after_the_clock_was_set(standing, monkeypatch, step):
    before = embedded.status(standing)
    start = psutil.Process.create_time
    # What every process sees from then on: the start of a process is its age, subtracted from the
    # clock.
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: start(self) + step)
    run = run_file.read_run(Folder(standing.home))
    end_orphan(run)
    now = embedded.status(standing)
    assert now.running and (now.pid, now.java_pid, now.restarts) == (
        before.pid,
        before.java_pid,
        before.restarts,
    )
    assert embedded.find(standing) is not None


@pytest.mark.whole
def test_a_copy_of_a_folder_has_a_server_of_its_own(running, home, tmp_path):
    remember(home, 1)
    copied = settings.load(home=tmp_path / "copy", environment=java_only())
    # As `cp -r` while the server runs. The data of a copy are whole only after a stop, so it gets
    # none here.
    shutil.copytree(home.home, copied.home, ignore=shutil.ignore_patterns("database", "turn.*"))
    assert not embedded.status(copied).running and embedded.find(copied) is None
    assert embedded.stop(copied) is False and embedded.status(home).pid == running.pid
    try:
        remember(copied, 2)
        assert embedded.status(copied).pid not in (0, running.pid)
        assert (remembered(home), remembered(copied)) == ([1], [2])
    finally:
        embedded.stop(copied)

    assert embedded.status(home).pid == running.pid


@pytest.mark.whole
def test_a_stale_run_file_of_a_process_id_used_again(home, folder):
    folder.create()
    here = socket.gethostname()
    stale = run_file.ServerRun(
        "ready", pid=os.getpid(), created=1.0, java=os.getpid(), port=1, host=here
    )
    run_file.write_run(folder, stale)
    folder.lock.touch()
    assert embedded.status(home).running is False
    assert embedded.start(home).running
    assert psutil.pid_exists(os.getpid())


def test_a_folder_in_use_elsewhere_names_the_machine(home, folder):
    folder.create()
    run_file.write_run(
        folder, run_file.ServerRun("ready", pid=1, created=1.0, port=1, host="elsewhere")
    )
    with folder.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ServerStartError, match=r"machine elsewhere.* archive load"):
            embedded.ensure_running(home, timeout=0.5)

        with pytest.raises(ServerStartError, match="machine elsewhere"):
            embedded.stop(home, timeout=0.5)


@pytest.mark.whole
def test_a_lost_password_is_made_anew(running, home, folder):
    remember(home, 1)
    before = folder.password.read_text()
    embedded.stop(home)
    folder.password.unlink()
    assert remembered(home) == [1]
    assert folder.password.read_text() != before


# Idle end


def test_it_leaves_when_nobody_is_connected(home):
    own = replace(home, idle_seconds=0.5)
    with Connection.open(own) as connection:
        alive = embedded.status(own)
        time.sleep(1.5)
        assert run_query(connection, "RETURN 1").rows == [(1,)]
        assert embedded.status(own).pid == alive.pid

    wait_until(lambda: gone(alive.pid) and gone(alive.java_pid), what="the idle end")
    assert embedded.status(own).state == "stopped"


@pytest.mark.whole
def test_it_leaves_a_folder_that_was_removed(running, home):
    shutil.rmtree(home.home)
    wait_until(lambda: gone(running.pid) and gone(running.java_pid), what="the end")


# Failures with a reason


@pytest.mark.parametrize("where", ["file/below", "/proc/archive-home"])
def test_a_folder_that_cannot_be_written(tmp_path, where):
    tmp_path.joinpath("file").touch()
    own = settings.load(home=tmp_path / where)
    with pytest.raises(
        SettingsError, match=f"cannot write to the archive's folder {own.home}.*ARCHIVE_HOME"
    ):
        embedded.ensure_running(own)


def test_a_folder_with_the_name_of_a_variable(tmp_path):
    own = settings.load(home=tmp_path / "${HOME}" / "archive")
    with pytest.raises(SettingsError, match=r"folder .*\$\{HOME\}/archive has \$\{ in its name"):
        embedded.ensure_running(own)

    assert not list(tmp_path.iterdir())


def test_a_folder_of_somebody_else(home, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Folder, "create", refuse)
    with pytest.raises(SettingsError, match="Permission denied"):
        embedded.ensure_running(home)


def test_a_disk_that_is_nearly_full(home, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 2**20))
    with pytest.raises(ServerStartError, match=r"is full \(1.0 MiB free"):
        embedded.ensure_running(home)


def test_nothing_is_written_to_a_disk_that_is_nearly_full(standing, monkeypatch):
    remember(standing, 5)
    with Connection.open(standing) as connection:
        monkeypatch.setattr(
            shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 2**20)
        )
        with pytest.raises(StoreError, match=r"is full \(1.0 MiB free"):
            connection.write(
                lambda transaction: transaction.run("CREATE (:Memory {value: 6})").consume()
            )

        with pytest.raises(StoreError, match="is full"):
            run_query(connection, "CREATE (:Memory {value: 6})", write=True)

        assert run_query(connection, "MATCH (m:Memory) WHERE m.value > 4 RETURN m.value").rows == [
            (5,)
        ]


def test_a_disk_that_is_full(home, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Folder, "create", refuse)
    with pytest.raises(ServerStartError, match="is full"):
        embedded.ensure_running(home)


def test_a_database_that_cannot_start_says_why(home, folder):
    folder.create()
    # A folder is in the place of the file of users.
    folder.config.joinpath("server-users.jsonl").mkdir()
    with pytest.raises(ServerStartError, match=r"ended with status 1 \(log: .*\): .*server-users"):
        embedded.ensure_running(home)

    assert embedded.status(home).state == "failed"


def test_java_that_cannot_start_says_why_in_one_line(home):
    with pytest.raises(
        ServerStartError, match="initialization of VM; Initial heap size set to a larger"
    ):
        embedded.ensure_running(replace(home, java_options="-Xmx1k"))


# Secrets


def test_no_password_where_others_can_read_it(standing):
    remember(standing, 1)
    running = embedded.status(standing)
    folder = Folder(standing.home)
    password = embedded.ensure_running(standing).password
    assert len(password) >= 32
    for pid in (running.pid, running.java_pid):
        process = psutil.Process(pid)
        assert password not in " ".join(process.cmdline())
        assert password not in json.dumps(process.environ())

    for path in [
        path for path in folder.home.rglob("*") if path.is_file() and path != folder.password
    ]:
        assert password.encode() not in path.read_bytes(), path

    assert password not in repr(embedded.ensure_running(standing))


def test_files_are_closed_to_others(standing):
    folder = Folder(standing.home)
    for path in [folder.server, folder.database, folder.password, folder.run, folder.console]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_only_the_loopback_interface_listens(standing):
    listening = [
        c
        for c in psutil.Process(embedded.status(standing).java_pid).net_connections("tcp")
        if c.status == psutil.CONN_LISTEN
    ]
    assert {connection.laddr.ip.removeprefix("::ffff:") for connection in listening} == {
        "127.0.0.1"
    }


def test_a_folder_may_have_any_name_in_the_locale_c(home, monkeypatch):
    monkeypatch.delenv("LANG", raising=False)
    monkeypatch.setenv("LC_ALL", "C")
    odd = replace(home, home=home.home / "Größe ☃ 100%")
    try:
        assert embedded.start(odd).running
        assert Folder(odd.home).config.joinpath("server-users.jsonl").exists()
    finally:
        embedded.stop(odd)


def test_the_locale_of_java_is_that_of_the_user_where_it_has_more_than_ascii():
    def locale(**variables):
        return engine.java_environment({"PATH": "/bin", "OTHER": "x", **variables})

    utf8 = {"PATH": "/bin", "LC_CTYPE": "C.UTF-8"}
    assert locale() == locale(LC_ALL="C") == locale(LC_ALL="", LC_CTYPE="POSIX") == utf8
    assert locale(LANG="C", LC_CTYPE="") == {**utf8, "LANG": "C"}
    for user in (
        {"LC_ALL": "de_DE.UTF-8", "LANG": "C"},
        {"LC_CTYPE": "C.UTF-8"},
        {"LANG": "de_DE.ISO-8859-1"},
    ):
        assert locale(**user) == {"PATH": "/bin", **user}


def test_an_option_that_java_does_not_know_is_named(home):
    with pytest.raises(ServerStartError, match="Unrecognized VM option 'Nonsense'"):
        embedded.start(replace(home, java_options="-XX:Nonsense"))


@pytest.mark.parametrize("heap_mb", [999_999_999, whole(10**16)])
def test_a_heap_that_java_refuses_is_named_with_its_setting(home, heap_mb):
    with pytest.raises(
        ServerStartError,
        match=r"heap_mb \(ARCHIVE_HEAP_MB\) to less than "
        rf"{heap_mb} MiB",
    ):
        embedded.start(replace(home, heap_mb=heap_mb))

    # The options of Java come after the setting, and count.
    with pytest.raises(ServerStartError, match=r"(?s)^(?!.*ARCHIVE_HEAP_MB)"):
        embedded.start(replace(home, java_options=f"-Xmx{heap_mb}m"))


@pytest.mark.whole
def test_variables_for_java_and_of_the_archive_stay_out(home, monkeypatch):
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dnonsense=1")
    monkeypatch.setenv("ARCHIVE_PASSWORD", "of-another-server")
    status = embedded.start(replace(home, java_options="-Dgreeting='good day' -Xlog:gc"))
    assert {"-Dgreeting=good day", "-Xlog:gc"} < set(psutil.Process(status.java_pid).cmdline())
    for pid in (status.pid, status.java_pid):
        assert "of-another-server" not in json.dumps(psutil.Process(pid).environ())

    assert "JAVA_TOOL_OPTIONS" not in psutil.Process(status.java_pid).environ()
