"""Observers by name and options, as a command line gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.trainer.observers import registry
from archive.trainer.observers.base import TrialObserver, redact
from archive.trainer.observers.mlflow import MlflowObserver, _key
from tests.support.observers import Counts

HOME = Path("/home/me/.archive")


@pytest.fixture
def counts(monkeypatch):
    """Make the test's own observer known, as an entry point would."""
    monkeypatch.setitem(registry.registry.built_in, "counts", "tests.support.observers:Counts")


def test_options_are_converted_to_their_kinds(counts):
    name, observer = registry.create("counts:fault=rs,number=7,rate=0.25,quick=yes", HOME)
    assert name == "counts"
    assert vars(observer) == vars(Counts(HOME, "rs", 7, 0.25, True))
    assert vars(registry.create("counts", HOME)[1]) == vars(Counts(HOME))


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("val//loss", "val/loss"),
        ("loss/", "loss"),
        ("../x", "x"),
        ("a/./b", "a/b"),
        ("/", "_"),
        ("top-1 (%)", "top-1 ___"),
    ],
)
def test_mlflow_accepts_every_name(name, kept):
    from mlflow.utils.validation import _validate_metric_name

    assert _key(name) == kept
    _validate_metric_name(kept)


def test_an_option_may_be_annotated_in_either_form(monkeypatch):
    class Annotated(Counts):
        def __init__(self, home, every: Optional[int] = None, rate: float | None = None):  # noqa: UP045
            self.options = every, rate

    monkeypatch.setitem(registry.registry._loaded, "annotated", Annotated)
    assert registry.create("annotated:every=5,rate=3", HOME)[1].options == (5, 3.0)
    with pytest.raises(UsageError, match="must be a whole number"):
        registry.create("annotated:every=abc", HOME)


def test_a_path_is_absolute_before_another_process_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    for text, folder in (("runs", tmp_path / "runs"), ("~/runs", Path("/home/me/runs"))):
        assert registry.create(f"tensorboard:folder={text}", HOME)[1].folder == folder


def test_a_value_may_hold_commas_colons_and_equal_signs():
    _, observer = registry.create("mlflow:uri=http://host:5000/?a=b,c,experiment=one, two", HOME)
    assert isinstance(observer, MlflowObserver)
    assert (observer.uri, observer.experiment) == ("http://host:5000/?a=b,c", "one, two")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("count", UnknownNameError, "unknown observer 'count': did you mean counts?"),
        (
            "counts:faul=x",
            UnknownNameError,
            "unknown option of the observer counts 'faul': did you mean fault?",
        ),
        (
            "counts:fault",
            UsageError,
            "an option of the observer counts must be key=value, got 'fault'",
        ),
        (
            "counts:fault=a,fault=b",
            UsageError,
            "the option fault of the observer counts is given twice",
        ),
        (
            "counts:number=x",
            UsageError,
            "the option number of the observer counts must be a whole number, got 'x'",
        ),
        (
            "counts:rate=x",
            UsageError,
            "the option rate of the observer counts must be a number, got 'x'",
        ),
        (
            "counts:quick=x",
            UsageError,
            "the option quick of the observer counts must be true or false, got 'x'",
        ),
        (
            "wandb:mode=x",
            UsageError,
            "the mode of the observer wandb must be online or offline, got 'x'",
        ),
    ],
)
def test_a_mistake_is_named(counts, text, kind, message):
    with pytest.raises(kind) as error:
        registry.create(text, HOME)

    assert str(error.value) == message


def test_a_login_in_an_option_is_refused_without_quoting_it():
    with pytest.raises(UsageError) as error:
        registry.create("mlflow:uri=https://me:hunter22@host/", HOME)

    assert "environment" in str(error.value) and "hunter22" not in str(error.value)


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(MlflowObserver, "requires", ("no_such_module",))
    with pytest.raises(SettingsError) as error:
        registry.create("mlflow", HOME)

    assert "needs the package no_such_module" in str(error.value)
    assert str(error.value).endswith("pip install 'nas-archive[mlflow]'")


def test_an_entry_point_that_is_no_observer_is_refused(monkeypatch):
    monkeypatch.setitem(registry.registry.built_in, "other", "pathlib:Path")
    # Other tests list what is loaded.
    monkeypatch.setattr(registry.registry, "_loaded", {})
    with pytest.raises(
        SettingsError, match="the observer 'other' of another package must be a TrialObserver"
    ):
        registry.create("other", HOME)


def test_an_observer_that_cannot_be_made_is_one_message(monkeypatch):
    class Broken(TrialObserver):
        def __init__(self, home):
            raise RuntimeError("no network")

    monkeypatch.setitem(registry.registry._loaded, "broken", Broken)
    monkeypatch.setattr(Broken, "__abstractmethods__", frozenset())
    with pytest.raises(
        SettingsError, match="'broken' of another package cannot be made: RuntimeError: no network"
    ):
        registry.create("broken", HOME)


def test_secrets_are_removed_from_what_is_logged():
    variables = {
        "TRACKER_TOKEN": "abcdef-123",
        "MY_API_KEY": "abcdef",
        "SHORT_KEY": "a",
        "PLACE": "visible",
    }
    text = "abcdef-123 and abcdef at https://me:pw@host/x?y=visible and s3://bucket/a@b"
    assert redact(text, variables) == (
        "*** and *** at https://***@host/x?y=visible and s3://bucket/a@b"
    )
    assert redact("https://me:s3cr@t-word@host/mlflow", {}) == "https://***@host/mlflow"
