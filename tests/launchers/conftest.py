"""What all tests of launchers share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from archive.launchers.records import fleets_folder


@pytest.fixture(autouse=True)
def no_fleet_stays(store_settings) -> Iterator[None]:
    """Forget the fleets of a test: the home of the server is that of other tests, too."""
    yield
    shutil.rmtree(fleets_folder(store_settings.home), ignore_errors=True)
