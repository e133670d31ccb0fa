"""Spaces of stored studies: which tables are opened for them."""

from __future__ import annotations

import pytest

from archive import spaces
from archive.architecture.graph import Architecture, Layer
from archive.errors import SettingsError, UnknownNameError
from archive.spaces import stored_spaces
from tests.support.commands import table


@pytest.fixture(autouse=True)
def no_reference_data(monkeypatch):
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)


def test_a_table_from_the_database_is_opened_where_this_machine_allows_it(tmp_path, monkeypatch):
    home = tmp_path / "home"
    path = table(tmp_path).removeprefix("table:").removesuffix("#accuracy")

    def refused(at=path):
        with pytest.raises(SettingsError) as caught:
            stored_spaces.of_record("nasbench201", {"table": at}, home)

        return str(caught.value)

    assert "ARCHIVE_DATA_DIR" in refused() and path in refused()
    # The refusal is the same for a file that exists and one that does not.
    assert refused(f"{path}x").replace(f"{path}x", path) == refused()
    assert len(stored_spaces.of_record("nasbench201", {"table": path}, None).members()) == 10

    stored_spaces.name_table(spaces.get("nasbench201", table=path), home)
    assert len(stored_spaces.of_record("nasbench201", {"table": path}, home).members()) == 10
    with open(path, "a") as file:
        file.write("\n")

    refused()
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    assert len(stored_spaces.of_record("nasbench201", {"table": path}, home).members()) == 10
    refused("/etc/passwd")
    refused(f"{tmp_path}/../../etc/passwd")


def test_a_space_without_a_table_needs_no_permission(tmp_path):
    assert stored_spaces.of_record("mlp", {}, tmp_path).name == "mlp"


def test_a_stored_space_of_another_package_names_the_way_out():
    message = (
        "unknown space 'chains': did you mean choices, or is the package that defines it "
        "not installed?"
    )
    for made in (
        lambda: stored_spaces.of_record("chains", {}, None),
        lambda: Architecture("chains", [Layer("ip"), Layer("op")], [(0, 1)]).canonical,
    ):
        with pytest.raises(UnknownNameError) as caught:
            made()

        assert str(caught.value) == message
