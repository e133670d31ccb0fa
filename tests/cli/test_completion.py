"""Shell completion: scripts for each shell, and the names that a running archive offers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

from archive import agents, kernels, settings, spaces
from archive.cli import names
from archive.queries import catalogue
from archive.store.records import Study
from archive.trainer.tasks import registry
from tests.support.commands import Shell, completed, shell


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


@pytest.fixture
def nobody(tmp_path):
    """A user whose archive has never been started."""
    return Shell(settings.load(home=tmp_path / "none", environment={}), tmp_path)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("archive search --agent ", agents.names),
        ("archive agents ", agents.names),
        ("archive search --space ", spaces.names),
        ("archive search --task ", registry.names),
        ("archive protocols ", registry.names),
        ("archive arch nearest KEY --kernel ", kernels.names),
        ("archive arch distance A B --kernel ", kernels.names),
        ("archive query show ", catalogue.names),
        ("archive query run ", catalogue.names),
        (
            "archive search --task nb101 --protocol ",
            lambda: ["nb101/108", "nb101/12", "nb101/36", "nb101/4"],
        ),
        (
            "archive search --agent gp-w",
            lambda: [name for name in agents.names() if name.startswith("gp-w")],
        ),
        ("archive search --agent zz", list),
        ("archive bench search --agent ", agents.names),
        ("archive trainer st", lambda: ["start", "status"]),
        ("archive trainer --metrics-", lambda: ["--metrics-port", "--metrics-address"]),
        ("archive query --li", lambda: ["--limit"]),
        ("archive arch nearest KEY --ki", list),
        ("archive completion ", lambda: ["bash", "zsh", "fish"]),
    ],
)
def test_names_are_offered_without_an_archive(nobody, line, expected, tmp_path):
    assert completed(nobody, line) == list(expected())
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "line", ["archive study show ", "archive search --study ", "archive dump FILE --study "]
)
def test_studies_of_a_running_archive_are_offered(user, archive, line):
    for name in ("first", "finer", "other", "$(reboot)", "two words", "b\x1b[2Jell"):
        archive.studies.create(Study(name, "t", "p", "mlp", "value"))

    # What a shell would not take as one word is left out: a name may come from anybody.
    assert completed(user, line) == ["finer", "first", "other"]
    assert completed(user, f"{line}fi") == ["finer", "first"]


def test_the_last_name_of_a_list_is_completed(user, archive):
    for name in ("first", "second", "semi"):
        archive.studies.create(Study(name, "t", "p", "mlp", "value"))

    assert completed(user, "archive search --warm-start first,se") == ["first,second", "first,semi"]
    assert completed(user, "archive search --warm-start first,semi,") == ["first,semi,second"]


def test_studies_of_an_archive_that_does_not_run_are_not_offered_and_start_nothing(
    nobody, tmp_path
):
    assert completed(nobody, "archive study show ") == []
    assert not (tmp_path / "none").exists()


def test_an_archive_that_cannot_be_asked_offers_nothing(nobody, monkeypatch):
    with socket.socket() as listener:
        # Bound and not listening: nobody answers, and nobody else takes it.
        listener.bind(("127.0.0.1", 0))
        address = f"bolt://127.0.0.1:{listener.getsockname()[1]}"
        assert completed(nobody, f"archive --db {address} study show ") == []

    assert completed(nobody, "archive --db ftp://example.org study show ") == []


def test_a_server_that_never_answers_is_left_alone(monkeypatch):
    own = settings.load(uri="neo4j://example.org", environment={})
    asked = []
    monkeypatch.setattr(
        socket,
        "create_connection",
        lambda address, timeout: asked.append((address, timeout)) or 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        names._reachable(own)

    assert asked == [(("example.org", 7687), names.REACH_SECONDS)]


def test_what_a_library_writes_does_not_reach_the_terminal(capsys):
    def noisy(ctx, prefix):
        print("a warning", file=sys.stderr)
        raise RuntimeError("no names")

    assert names.Name(noisy).shell_complete(None, None, "") == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_this_program(nobody, name):
    script = nobody.types("completion", name).stdout
    assert f"_ARCHIVE_COMPLETE={name}_complete" in script and "archive" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script(nobody, tmp_path):
    script = tmp_path / "completion.bash"
    script.write_text(nobody.types("completion", "bash").stdout)
    # The program as an installed command; bash then asks it as on a Tab.
    program = tmp_path / "archive"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m archive.cli.main "$@"\n')
    program.chmod(0o755)
    asked = (
        f"source {script}; COMP_WORDS=(archive completion f); COMP_CWORD=2; "
        "_archive_completion archive; "
    )
    environment = nobody.environment | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", asked + 'printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("fish\n", "")


def test_an_unknown_shell_is_one_line(nobody):
    (line,) = nobody.types("completion", "tcsh", code=2).stderr.splitlines()
    assert line.startswith("error: ") and "'tcsh'" in line and "bash" in line
