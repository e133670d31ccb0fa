"""A Ray cluster that does not answer is an error at once; none of the tests needs Ray."""

from __future__ import annotations

import socket
import sys

import pytest

from archive import ray_connection
from archive.errors import LaunchError
from archive.launchers.ray_cluster import RayLauncher
from archive.launchers.records import TrainerFleet
from archive.settings import Settings


@pytest.fixture
def unused_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """An import of Ray would fail."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "localhost:{}"])
def test_an_address_without_a_cluster_is_refused_at_once(form, unused_port):
    address = form.format(unused_port)
    with (
        pytest.raises(
            LaunchError,
            match=rf"^no Ray cluster answers at {address}: is its head .* "
            r"\(Connection refused\)$",
        ),
        ray_connection.connected(address),
    ):
        pass


def test_another_cluster_is_another_connection(monkeypatch):
    calls = []

    class Ray:
        exceptions = type("exceptions", (), {"RayError": KeyError})
        opened = None

        def is_initialized(self):
            return self.opened is not None

        def init(self, address, **settings):
            calls.append(address)
            self.opened = address

        def shutdown(self):
            calls.append("shutdown")
            self.opened = None

    monkeypatch.setitem(sys.modules, "ray", ray := Ray())
    monkeypatch.setattr(ray_connection, "_check_port", lambda address: None)
    monkeypatch.setattr(ray_connection, "_opened", [])
    for address in ("one:1", "one:1", "two:2", "one:1"):
        with ray_connection.connected(address) as given:
            assert given is ray and ray.opened == address

    assert calls == ["one:1", "shutdown", "two:2", "shutdown", "one:1"]
    # A connection of somebody else is used as it is.
    ray_connection._opened.clear()
    with ray_connection.connected("three:3"):
        assert ray.opened == "one:1"


@pytest.mark.parametrize("address", ["no-such-host.invalid:6379", "127.0.0.1:99999", "a..b:6379"])
def test_an_impossible_address_is_refused_at_once(address):
    with (
        pytest.raises(LaunchError, match=f"^no Ray cluster answers at {address}: "),
        ray_connection.connected(address),
    ):
        pass


def test_the_address_of_the_environment_is_checked(unused_port, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{unused_port}")
    with pytest.raises(LaunchError, match=f"no Ray cluster answers at 127.0.0.1:{unused_port}"):
        with ray_connection.connected("auto"):
            pass


def test_a_dry_run_does_not_wait_for_a_cluster(unused_port):
    assert RayLauncher(address=f"127.0.0.1:{unused_port}").elsewhere()


@pytest.mark.parametrize("address", ["auto", "local"])
def test_an_address_without_a_port_is_left_to_ray(address):
    with pytest.raises(ImportError), ray_connection.connected(address):
        pass


def test_a_trainer_in_an_actor_has_one_node(tmp_path):
    fleet = TrainerFleet("ray", "ray", Settings(tmp_path))
    for call in (RayLauncher(nodes=2).preview, RayLauncher(nodes=2).start):
        with pytest.raises(LaunchError, match=r"archive trainer --trials-on ray:nodes=2$"):
            call(fleet, 1)
