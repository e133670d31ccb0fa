"""`archive tasks`, `protocols`, `spaces`, `observers` and `kernels`: lists of what is
registered."""

from __future__ import annotations

import json

import pytest

from archive import kernels, settings, spaces
from archive.architecture.graph import Architecture, Layer
from archive.architecture.parameter_operations import graph_of_values
from archive.errors import SettingsError
from archive.registry import Registry
from archive.trainer.observers import registry as observers
from archive.trainer.tasks import registry
from tests.support.commands import Shell, table
from tests.support.networks.torch_nets import residual


@pytest.fixture
def user(tmp_path):
    """A user whose archive has never been started."""
    return Shell(settings.load(home=tmp_path / "none", environment={}), tmp_path)


def listed(user, command, *arguments):
    return json.loads(user.types(command, *arguments, "--json").stdout)[command]


def test_tasks_are_listed_with_their_defaults_first(user):
    rows = {row["task"]: row for row in listed(user, "tasks")}
    assert list(rows) == list(registry.names())
    for name, row in rows.items():
        task = registry.get(name)
        assert (row["protocols"][0], row["spaces"][0]) == (task.protocol().name, task.spaces[0])
        assert (row["objective"], row["direction"], row["summary"]) == (
            task.objective,
            task.direction,
            task.summary,
        )

    shown = user.types("tasks").stdout
    assert all(name in shown for name in rows)


def test_protocols_of_a_task_are_listed_with_every_choice(user):
    rows = listed(user, "protocols", "mnist")
    assert [row["protocol"] for row in rows] == [
        protocol.name for protocol in registry.get("mnist").protocols
    ]
    expected = registry.get("mnist").protocol().as_dict()
    assert {**rows[0], "name": rows[0]["protocol"]} == {
        "task": "mnist",
        "protocol": expected["name"],
        **expected,
    }
    everything = listed(user, "protocols")
    assert {row["task"] for row in everything} == set(registry.names())
    assert [row for row in everything if row["task"] == "mnist"] == rows


def test_protocols_of_a_users_table_are_listed(user, tmp_path):
    task = table(tmp_path)
    (row,) = listed(user, "protocols", task)
    assert row["protocol"] == registry.get(task).protocol().name and row["column"] == "accuracy"
    shown = user.types("protocols", task).stdout
    assert "accuracy" in shown and "optimiser" not in shown


def test_an_unknown_task_has_no_protocols(user):
    (line,) = user.types("protocols", "digit", code=2).stderr.splitlines()
    assert "unknown task 'digit'" in line and "digits" in line


def test_spaces_are_listed_with_operations_and_settings(user):
    rows = {row["space"]: row for row in listed(user, "spaces")}
    assert list(rows) == list(spaces.names())
    for name, row in rows.items():
        space = spaces.get(name)
        assert (row["cells"], row["settings"]) == (space.is_cell, space.config)
        given = {
            "graph": Architecture("graph", [Layer("ip"), Layer("op")], [(0, 1, 0)]),
            "torch": residual(),
            "program": graph_of_values({"lr": 0.1}, name="program"),
        }
        networks = space.initial_pool()[:5] if space.searchable else [given[name]]
        used = {layer.op for network in networks for layer in network.layers}
        assert used - {"ip", "op"} <= set(row["operations"])
        assert spaces.get(name, **row["settings"]) == space

    assert "max_layers=60" in "".join(user.types("spaces").stdout.split())


def test_the_space_of_vectors_is_listed_for_both_kinds_of_task(user):
    (mlp,) = (row for row in listed(user, "spaces") if row["space"] == "mlp")
    assert "classification" in mlp["summary"] and "regression" in mlp["summary"]


def test_kernels_are_listed_with_components_and_settings(user):
    rows = {row["kernel"]: row for row in listed(user, "kernels")}
    assert list(rows) == list(kernels.names())
    for name, row in rows.items():
        # The settings are those that `--set` takes.
        assert list(kernels.get(name, **row["settings"]).components) == row["components"]
        assert row["summary"].endswith(".")

    assert "weisfeiler-lehman" in user.types("kernels").stdout


def test_observers_are_listed_with_their_options(user, monkeypatch):
    rows = {row["observer"]: row for row in listed(user, "observers")}
    assert list(rows) == list(observers.names())
    for name, row in rows.items():
        assert row["options"].keys() == observers.options(observers.get(name)).keys()
        assert (row["missing"], row["extra"]) == ([], observers.get(name).extra)
        assert row["summary"].endswith(".")

    monkeypatch.setattr(observers.get("mlflow"), "requires", ("no_such_module",))
    assert {row["observer"]: row["missing"] for row in listed(user, "observers")}["mlflow"] == [
        "no_such_module"
    ]


@pytest.mark.parametrize(
    "command", [["trainer", "--once"], ["search", "--trainers", "0", "--budget", "1"]]
)
def test_a_mistaken_observer_is_refused_before_a_server_is_started(user, tmp_path, command):
    (line,) = user.types(*command, "--observe", "tensorboard:folde=x", code=2).stderr.splitlines()
    assert line == "error: unknown option of the observer tensorboard 'folde': did you mean folder?"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", ["tasks", "protocols", "spaces", "observers", "kernels"])
def test_a_broken_package_hides_only_its_own_names(user, monkeypatch, command):
    found = Registry.names
    monkeypatch.setattr(Registry, "names", lambda self: (*found(self), "broken"))
    load = Registry.load

    def loaded(self, name):
        if name == "broken":
            raise SettingsError("it cannot be loaded")

        return load(self, name)

    monkeypatch.setattr(Registry, "load", loaded)
    done = user.types(command)
    assert done.stderr == "broken is left out: it cannot be loaded\n"
    assert len(done.stdout.splitlines()) > 3
