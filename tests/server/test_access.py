"""Folders and files of other users: refused or explained in one line, and never obeyed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path

import psutil
import pytest

from archive import settings
from archive.errors import ArchiveError, ServerStartError, SettingsError
from archive.files import fault_of
from archive.launchers import records
from archive.server import access, embedded
from archive.server.run_file import Folder, ServerRun, answers, write_run
from tests.support import java_only

OTHER = 64_001
THIRD = 64_002
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as other users")


@pytest.fixture
def open_folder():
    """A folder that every user can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="archive-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_user(uid, action):
    """Return what an action returns, or the message of its error, in a process of another user."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # a fork with threads, which the child does not use
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()

    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            answer = action()
        except ArchiveError as error:
            answer = f"error: {error}"
        except BaseException as error:
            answer = f"traceback: {error!r}"

        os.write(writing, json.dumps(answer).encode())
        os._exit(0)

    os.close(writing)
    with os.fdopen(reading) as answers:
        answer = json.load(answers)

    os.waitpid(child, 0)
    return answer


def state_of(home):
    status = embedded.status(home)
    return [status.running, status.state, status.error]


@pytest.fixture
def foreign(open_folder):
    """The home of another user, whose server wrote its files and has ended."""
    own = settings.load(home=open_folder / "home", environment=java_only())
    folder = Folder(own.home)

    def create():
        folder.create()
        for path in (folder.lock, folder.password):
            path.touch(0o600)

        process = psutil.Process()
        write_run(folder, ServerRun("ready", process.pid, process.create_time(), host="here"))

    open_folder.chmod(0o777)
    as_user(OTHER, create)
    return own


@as_root
def test_another_user_is_told_whose_server_it_is(foreign):
    for action in (embedded.stop, embedded.start, embedded.ensure_running):
        begin = time.monotonic()
        message = as_user(THIRD, lambda action=action: action(foreign))
        assert message.startswith("error: ") and "\n" not in message, message
        assert (
            str(OTHER) in message and "archive db stop" in message and str(foreign.home) in message
        )
        assert time.monotonic() - begin < 20

    running, state, error = as_user(THIRD, lambda: state_of(foreign))
    assert (running, state) == (False, "foreign")
    assert str(OTHER) in error


@as_root
def test_the_owner_is_told_who_started_the_server(foreign):
    folder = Folder(foreign.home)
    for path in (folder.run, folder.lock):
        os.chown(path, 0, 0)

    message = as_user(OTHER, lambda: embedded.ensure_running(foreign))
    assert message.startswith("error: ") and "the user root" in message
    # Root's own processes would leave files that the owner cannot read.
    with pytest.raises(SettingsError, match=rf"belongs to the user {OTHER}"):
        embedded.ensure_running(foreign)


@as_root
@pytest.mark.parametrize(
    "name", [settings.CONFIG_NAME, "server", "server/config", "fleets/a/fleet.json", "fleets/a"]
)
def test_nothing_of_another_user_is_obeyed(home, name):
    path = home.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if "." not in path.name else path.write_text("")
    if name.startswith("fleets"):
        (home.home / "fleets/a/fleet.json").touch()

    os.chown(path, OTHER, OTHER)
    with pytest.raises(SettingsError, match=rf"{name} belongs to the user {OTHER}"):
        _obey(home)


@pytest.mark.parametrize("name", [settings.CONFIG_NAME, "fleets/a/fleet.json"])
@pytest.mark.parametrize("mode", [0o666, 0o646, 0o602, 0o777])
def test_nothing_that_others_may_write_is_obeyed(home, name, mode):
    path = home.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(mode)
    with pytest.raises(SettingsError, match=rf"{name} may be written by other users .*chmod go-w"):
        _obey(home)


@as_root
@pytest.mark.parametrize(
    ("mode", "group", "fine"), [(0o644, OTHER, True), (0o664, OTHER, False), (0o660, 0, True)]
)
def test_a_group_with_other_members_may_not_write(tmp_path, mode, group, fine):
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 0, group)
    path.chmod(mode)
    assert (fault_of(path, "the file") is None) == fine


def _obey(home):
    settings.load(home=home.home)
    list(records.saved(home))
    embedded.ensure_running(home)


# Open files


def test_too_few_open_files_are_named(home, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    with pytest.raises(ServerStartError, match=r"too few files here \(64.*ulimit -n"):
        embedded.start(home)


def test_the_limit_of_open_files_is_raised_as_far_as_possible(monkeypatch):
    chosen = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: chosen.append(limits))
    access.allow_open_files()
    assert chosen == [(4096, 4096)]


# Processes that stand still


@pytest.mark.whole
@pytest.mark.parametrize("victim", ["pid", "java_pid"])
def test_a_server_that_stands_still_is_not_running(home, victim):
    embedded.start(home)
    status = embedded.status(home)
    assert (status.running, status.state) == (True, "ready")
    os.kill(getattr(status, victim), signal.SIGSTOP)
    try:
        stopped = embedded.status(home)
        assert (stopped.running, stopped.state) == (False, "not answering")
    finally:
        os.kill(getattr(status, victim), signal.SIGCONT)

    assert embedded.status(home).running


def test_a_port_that_accepts_and_does_not_answer(monkeypatch):
    import socket

    from archive.server import run_file

    monkeypatch.setattr(run_file, "ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert not answers(listener.getsockname()[1])
