"""`archive db shell`: statements of a pipe and of a terminal."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.database.read_only import split_statements
from tests.support import ROOT, wait_until

SLOW = (
    "UNWIND range(1, 30000) AS i UNWIND range(1, 30000) AS j WITH i * j AS k WHERE k % 7 = 1 "
    "RETURN count(k)"
)


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (" \n// nothing\n", [], ""),
        ("RETURN 1;", ["RETURN 1"], ""),
        ("RETURN 1; // so", ["RETURN 1"], ""),
        (";;RETURN 1;;", ["RETURN 1"], ""),
        ("RETURN 1;\nRETURN 2", ["RETURN 1"], "\nRETURN 2"),
        ("RETURN ';' AS `a;b` /* ; */;", ["RETURN ';' AS `a;b` /* ; */"], ""),
        ("RETURN ';", [], "RETURN ';"),
        ("RETURN 1; RETURN /* ;", ["RETURN 1"], " RETURN /* ;"),
    ],
)
def test_statements_of_a_text(text, statements, rest):
    assert split_statements(text) == (statements, rest)


@given(
    st.lists(
        st.sampled_from(["RETURN 1", "'a;b'", "`;`", "/* ; */ x", 'RETURN ";\'"', "// ;\nx"]),
        max_size=6,
    )
)
def test_statements_come_back(statements):
    assert split_statements(";".join(statements) + ";" if statements else "") == (statements, "")


@pytest.fixture
def command(store_settings, connection):
    if connection.dialect != "embedded":
        pytest.skip("the shell is the same on Neo4j")

    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "ARCHIVE_HOME": str(store_settings.home),
        "TERM": "dumb",
    }
    return [sys.executable, "-m", "archive.cli.main", "db", "shell"], environment


def test_statements_of_a_pipe_end_with_the_first_error(command):
    arguments, environment = command
    text = "RETURN 1 AS first; CREATE (:Shell); RETURN 2 AS second"
    ended = subprocess.run(arguments, env=environment, input=text, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "first" in ended.stdout and "second" not in ended.stdout
    assert ended.stderr.count("\n") == 1 and "--write" in ended.stderr


@pytest.mark.whole
def test_statements_of_a_pipe_that_may_write(command):
    arguments, environment = command
    text = "CREATE (:Shell); RETURN 2 AS second"
    written = subprocess.run(
        [*arguments, "--write"], env=environment, input=text, capture_output=True, text=True
    )
    assert written.returncode == 0, written.stderr
    assert "second" in written.stdout


@pytest.mark.whole
def test_a_conversation(command):
    arguments, environment = command
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        arguments,
        env=environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    seen = ""

    def until(pattern):
        nonlocal seen
        deadline = time.monotonic() + 60
        while not re.search(pattern, seen):
            assert time.monotonic() < deadline, seen
            seen += os.read(master, 4096).decode()

        shown = seen
        seen = ""
        return shown

    def type_line(line):
        os.write(master, f"{line}\n".encode())

    until("archive> ")
    type_line("RETURN 40 +")
    until(r"\.\.\.> ")
    type_line("2 AS answer;")
    assert "42" in until("42[^>]*archive> ")
    type_line("RETURN nothing;")
    assert "error" in until("error[^>]*archive> ")
    type_line(":help")
    assert "Ctrl-D" in until("Ctrl-D[^>]*archive> ")
    type_line(
        "UNWIND range(1, 30000) AS i UNWIND range(1, 30000) AS j WITH i * j AS k WHERE k % 7 "
        "= 1 "
        "RETURN count(k);"
    )
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    until("interrupted[^>]*archive> ")

    def running():
        type_line("SHOW TRANSACTIONS YIELD currentQuery RETURN count(*) AS running;")
        return re.search(r"\b(\d+)\s+archive>", until(r"━[^>]*archive> "))[1]

    wait_until(lambda: running() == "1")
    type_line(":quit")
    process.wait(30)
    os.close(master)
    assert process.returncode == 0
