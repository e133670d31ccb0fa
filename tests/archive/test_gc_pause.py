"""The collector is paused while results are read, and restored afterwards, also after an error."""

from __future__ import annotations

import gc

import pytest

from archive import gc_pause


@pytest.fixture(autouse=True)
def collecting():
    gc.enable()
    yield
    gc.enable()


def test_it_rests_within_and_works_again_afterwards():
    with gc_pause.paused():
        assert not gc.isenabled()
        with gc_pause.paused():
            assert not gc.isenabled()

        assert not gc.isenabled()

    assert gc.isenabled()


def test_it_works_again_after_an_error():
    @gc_pause.paused()
    def fails():
        assert not gc.isenabled()
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            fails()

        assert gc.isenabled()


def test_who_had_it_off_finds_it_off():
    gc.disable()
    with gc_pause.paused():
        pass

    assert not gc.isenabled()
