"""The compose file: pinned, closed, healthy, and its services run as processes, on each server."""

from __future__ import annotations

import json
import re
import shutil
import socket
import stat
import subprocess

import pytest

from archive import __version__
from archive.api import Archive
from archive.database.connection import Connection
from archive.settings import load, read_secret
from archive.store.records import State
from tests.support import ROOT, wait_until
from tests.support.commands import shell, table
from tests.support.docker_files import DOCKER, compose, health, last
from tests.support.neo4j import server

COMPOSE = compose()
SERVICES = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if name != "neo4j"}
KNOWN = {
    *(
        "build",
        "cap_drop",
        "command",
        "depends_on",
        "deploy",
        "environment",
        "expose",
        "healthcheck",
        "image",
        "init",
    ),
    *(
        "ports",
        "profiles",
        "read_only",
        "restart",
        "secrets",
        "security_opt",
        "stop_grace_period",
        "tmpfs",
        "user",
    ),
    "volumes",
}


def dockerfile(service):
    return DOCKER.parent / service["build"]["dockerfile"]


def test_it_says_nothing_that_compose_does_not_know():
    assert {name for name in COMPOSE if not name.startswith("x-")} == {
        "name",
        "services",
        "volumes",
        "secrets",
    }
    assert set().union(*SERVICES.values()) <= KNOWN


def test_every_image_is_pinned():
    assert SERVICES["neo4j"]["image"] == f"neo4j:{server.LTS.version}-community"
    for name, service in OURS.items():
        assert service["image"].endswith(f":{__version__}"), name
        assert dockerfile(service).is_file()
        assert (DOCKER / service["build"]["context"]).resolve() == DOCKER.parent


def test_every_secret_is_a_file_that_is_made_used_and_in_no_environment(tmp_path):
    declared = {name: secret["file"] for name, secret in COMPOSE["secrets"].items()}
    assert {
        secret for service in SERVICES.values() for secret in service["secrets"]
    } == declared.keys()
    subprocess.run([DOCKER / "make-secrets", tmp_path / "secrets"], check=True, capture_output=True)
    made = {path.name for path in (tmp_path / "secrets").iterdir()}
    assert {file.removeprefix("./secrets/") for file in declared.values()} == made
    for name, service in SERVICES.items():
        files = [value for key, value in service["environment"].items() if key.endswith("_FILE")]
        assert files == [f"/run/secrets/{secret}" for secret in service["secrets"]], name
        assert not [
            key
            for key in service["environment"]
            if re.search("PASSWORD|AUTH", key) and not key.endswith("_FILE")
        ]


def test_the_password_is_made_once_and_closed_to_others(tmp_path, monkeypatch):
    folder = tmp_path / "secrets"
    said = [
        subprocess.run(
            [DOCKER / "make-secrets", folder], check=True, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    password = (folder / "password").read_text()
    assert re.fullmatch("[0-9a-f]{48}", password)
    assert (folder / "neo4j_auth").read_text() == f"neo4j/{password}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert password not in "".join(done.stdout + done.stderr for done in said)
    assert "it is kept" in said[1].stderr
    # In a container, the folder is what the runtime makes of it.
    monkeypatch.setattr("archive.settings.RUNTIME_SECRETS", folder)
    assert read_secret(folder / "password") == password


@pytest.mark.parametrize(
    "left", [{"neo4j_auth": "neo4j/x", "password": ""}, {"password": "x"}, {"neo4j_auth": ""}]
)
def test_half_of_the_secrets_is_an_error(tmp_path, left):
    """A run that was interrupted left one of two files, or an empty one."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name, content in left.items():
        (folder / name).write_text(content)

    done = subprocess.run([DOCKER / "make-secrets", folder], capture_output=True, text=True)
    assert done.returncode == 1 and "delete both" in done.stderr
    assert {path.name: path.read_text() for path in folder.iterdir()} == left


def test_the_environment_leads_to_the_server_of_the_file():
    for service in OURS.values():
        given = {
            name: value
            for name, value in service["environment"].items()
            if name != "ARCHIVE_PASSWORD_FILE"
        }
        assert load(environment=given).uri == "bolt://neo4j:7687"


def test_nobody_is_root_and_nothing_more_is_allowed_than_needed():
    for name, service in SERVICES.items():
        user, group = service["user"].split(":")
        assert int(user) > 0 and int(group) > 0
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"]

    for service in OURS.values():
        assert service["user"] == last(dockerfile(service), "USER").value
        assert service["read_only"] and service["init"]

    assert all(port.startswith("127.0.0.1:") for port in SERVICES["neo4j"]["ports"])
    assert not [name for name, service in OURS.items() if "ports" in service]


def test_what_must_last_is_on_volumes():
    used = [volume.split(":") for service in SERVICES.values() for volume in service["volumes"]]
    assert {name for name, _ in used} == COMPOSE["volumes"].keys()
    assert {place for name, place in used if name.startswith("neo4j")} == {"/data", "/logs"}
    for service in OURS.values():
        assert service["volumes"][0].split(":")[1] == last(dockerfile(service), "VOLUME").value


def test_who_needs_the_database_waits_until_it_is_healthy():
    assert all(
        service["depends_on"] == {"neo4j": {"condition": "service_healthy"}}
        for service in OURS.values()
    )
    assert all(service["restart"] != "no" for service in SERVICES.values())
    check = SERVICES["neo4j"]["healthcheck"]
    assert {"test", "interval", "timeout", "retries", "start_period"} == check.keys()
    assert check["test"][0] == "CMD"


def test_the_databases_health_is_an_open_door():
    command = SERVICES["neo4j"]["healthcheck"]["test"][1:]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")

    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        at = [word.replace("7687", str(port)).replace("localhost", "127.0.0.1") for word in command]
        assert subprocess.run(at, capture_output=True, timeout=30).returncode == 0

    assert subprocess.run(at, capture_output=True, timeout=30).returncode != 0


def test_each_trainer_of_a_profile_has_a_gpu_of_its_own():
    profiles = {profile for service in OURS.values() for profile in service.get("profiles", ())}
    assert profiles == {"cpu", "gpu", "gpus-2", "gpus-4", "gpus-8"}
    for profile in profiles - {"cpu"}:
        started = [service for service in OURS.values() if profile in service.get("profiles", ())]
        (*devices,) = (each["deploy"]["resources"]["reservations"]["devices"] for each in started)
        count = int(profile.partition("-")[2] or 1)
        assert devices == [
            [{"driver": "nvidia", "capabilities": ["gpu"], "device_ids": [str(at)]}]
            for at in range(count)
        ]
        # Replicas of a service would share its GPU.
        assert not [service for service in started if "replicas" in service["deploy"]]

    assert "resources" not in SERVICES["trainer-cpu"]["deploy"]
    assert (
        len(
            {
                tuple(service["command"])
                for name, service in OURS.items()
                if name.startswith("trainer")
            }
        )
        == 1
    )


def test_documented_commands_go_to_services_that_are_there():
    """An agent ends with its budget: nothing can be executed in its container any more."""
    text = (ROOT / "docs" / "operations.md").read_text() + (DOCKER / "compose.yaml").read_text()
    commands = re.findall(
        r"docker compose --file docker/compose.yaml (exec|run --rm) (\S+) (.*)", text
    )
    assert len(commands) == 2
    for how, service, words in commands:
        assert how == "run --rm" or SERVICES[service]["restart"] == "unless-stopped"
        assert "profiles" not in SERVICES[service]
        # What `run` gives takes the place of the command, behind the image's entry point.
        assert (
            how == "exec"
            or last(dockerfile(SERVICES[service]), "ENTRYPOINT").value == '["archive"]'
        )
        assert words == "trainer status"


def test_metrics_are_served_to_others_only_if_asked_for():
    for variables, address in (({}, "127.0.0.1"), ({"METRICS_ADDRESS": "0.0.0.0"}, "0.0.0.0")):
        command = compose(variables)["services"]["trainer-cpu"]["command"]
        assert f"--metrics-address={address}" in command


def test_trials_are_given_less_time_than_the_container():
    service = SERVICES["trainer-cpu"]
    (grace,) = [
        word.partition("=")[2] for word in service["command"] if word.startswith("--grace=")
    ]
    assert service["stop_grace_period"] == "2m" and float(grace) < 120


def test_agent_and_trainer_do_together_what_the_file_says(store_settings, request, tmp_path):
    """The services' own commands and health checks, with a small task and another port.

    The check compares indexes with records: the embedded archive has none that other tests deleted.
    """
    if store_settings.embedded:
        store_settings = request.getfixturevalue("home")
        connection = Connection.open(store_settings)
        request.addfinalizer(connection.close)
        archive = Archive(connection)
    else:
        archive = request.getfixturevalue("archive")

    variables = {"TASK": table(tmp_path), "AGENT": "random", "STUDY": "first", "BUDGET": "4"}
    services = compose(variables)["services"]
    port = "--metrics-port=9464"
    assert port in services["trainer-cpu"]["command"]
    with shell(store_settings, tmp_path) as user:
        agent = user.starts(*services["agent"]["command"])
        wait_until(lambda: archive.studies.names() or agent.poll() is not None, 60)
        # One study's table is answered without the seconds that PyTorch takes to load.
        words = [
            word.replace(port, "--metrics-port=0") for word in services["trainer-cpu"]["command"]
        ]
        trainer = user.starts(*words, "--study=first")
        assert agent.wait(120) == 0, user.said
        check = health(dockerfile(services["trainer-cpu"]))
        user.types(*check[1:])
        counts = archive.studies.snapshot("first").counts
        assert counts[State.COMPLETE] == 4
        trainer.terminate()
        assert trainer.wait(60) == 0
        user.types(*check[1:], code=1)
        events = [
            json.loads(line)["event"]
            for line in user.said.splitlines()
            if line.startswith('{"time"')
        ]
        assert (events[0], events[-1]) == ("metrics served", "stopped")
        healthy = user.types(*health(dockerfile(services["agent"]))[1:]).stdout
        assert "4 Evaluation" in healthy
