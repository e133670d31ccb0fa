"""Recipes by name: those of this machine, those that may run, and none that only the database
names."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from click.testing import CliRunner

from archive.cli.main import archive
from archive.errors import SettingsError, UnknownNameError
from archive.registry import Registry
from archive.trainer.recipes import registry
from archive.trainer.recipes.registry import RecipeAccess
from archive.trainer.recipes.source import RecipeSource
from tests.support import recipes

MINE = '[mine]\nfit = "tests.support.recipes:depth"\n'


@pytest.fixture
def home(tmp_path):
    """Writes the recipes of a machine, and returns its folder."""

    def home(text):
        path = tmp_path / "recipes.toml"
        path.write_text(text)
        path.chmod(0o600)
        return tmp_path

    return home


def test_a_machine_has_the_built_in_recipe(tmp_path):
    access = RecipeAccess(tmp_path)
    assert access.find("default").target == "archive.trainer.fit.train:fit"
    access.check()


def test_listing_and_finding_recipes_imports_none(home):
    code = (
        "import sys; from pathlib import Path; from archive.trainer.recipes.registry import "
        "RecipeAccess;"
        f"assert RecipeAccess(Path({str(home(MINE))!r})).find('mine').target == "
        "'tests.support.recipes:depth';"
        "assert not {'torch', 'tests.support.recipes', 'archive.trainer.fit'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_recipe_of_the_machine_is_a_function_of_a_module(home):
    source = RecipeAccess(home(MINE)).find("mine")
    assert source.load() is recipes.depth
    digest = hashlib.sha256(Path(recipes.__file__).read_bytes()).hexdigest()[:16]
    assert source.record() == {"recipe": "mine", "recipe_version": f"sha256:{digest}"}
    assert RecipeAccess(home(MINE)).find("default").record() == {}


def test_a_recipe_of_the_machine_is_a_function_of_a_file(home, monkeypatch):
    folder = home('[own]\nfit = "deep/own_training.py:fit"\n') / "deep"
    folder.mkdir()
    folder.joinpath("beside_it.py").write_text("VALUE = 0.25\n")
    folder.joinpath("own_training.py").write_text(
        "from beside_it import VALUE\n\ndef fit(trial):\n    return {'valid_mse': VALUE}\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    source = RecipeAccess(folder.parent).find("own")
    assert source.load()(None) == {"valid_mse": 0.25}
    before = source.record()["recipe_version"]
    assert before.startswith("sha256:")
    folder.joinpath("own_training.py").write_text("def fit(trial): ...\n")
    assert source.record()["recipe_version"] not in (before, "recipes.toml")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "gone",
            "the recipe 'gone' is not on this machine: install its package, or name it in "
            "recipes.toml",
        ),
        (
            "defualt",
            "the recipe 'defualt' is not on this machine: did you mean default. Else "
            "install its package",
        ),
        ("os:system", "the recipe 'os:system' is not on this machine"),
        ("tests.support.recipes:depth", "is not on this machine"),
        ("/etc/passwd", "is not on this machine"),
    ],
)
def test_what_is_not_on_this_machine_is_left_to_others(tmp_path, name, reason):
    with pytest.raises(SettingsError, match=reason):
        RecipeAccess(tmp_path).find(name)


def test_a_trainer_may_allow_some_recipes_only(home):
    access = RecipeAccess(home(MINE), ("mine",))
    access.check()
    assert access.find("mine")
    with pytest.raises(
        SettingsError, match="'default' may not run here: start the trainer with --recipes default"
    ):
        access.find("default")

    with pytest.raises(UnknownNameError, match="unknown recipe 'mien': did you mean mine"):
        RecipeAccess(home(MINE), ("mien",)).check()


@pytest.fixture
def offer(monkeypatch):
    """Offers recipes of packages."""

    def offer(points):
        monkeypatch.setattr(
            "archive.registry.entry_points", lambda group: points if group == registry.GROUP else []
        )
        monkeypatch.setattr(
            registry, "registry", Registry("recipe", registry.GROUP, registry.registry.built_in)
        )

    return offer


def test_packages_add_recipes_and_take_over_none(offer, home):
    points = [
        EntryPoint("sgd/2", "some_package.training:fit", "archive.recipes"),
        EntryPoint("default", "some_package.training:fit", "archive.recipes"),
    ]
    offer(points)
    sources = RecipeAccess(home("")).sources
    assert list(sources) == ["default", "sgd/2"]
    assert sources["sgd/2"] == RecipeSource("sgd/2", "some_package.training:fit", "another package")
    assert sources["default"].origin == "built-in"
    with pytest.raises(
        SettingsError,
        match=r"'sgd/2' in .*recipes.toml has the name of one of another package: "
        r"choose another name",
    ):
        RecipeAccess(home('["sgd/2"]\nfit = "a:b"')).check()


def test_a_name_of_two_packages_is_refused_and_said(offer, home, monkeypatch):
    points = [EntryPoint("sgd", f"{package}:fit", registry.GROUP) for package in ("one", "two")]
    offer([*points, EntryPoint("default", "one:fit", registry.GROUP)])
    twice = (
        "the recipe 'sgd' is not used: another package and another package both have it, "
        "uninstall one of them"
    )
    access = RecipeAccess(home(""))
    assert list(access.sources) == ["default"]
    with pytest.raises(SettingsError, match=f"^{twice}$"):
        access.find("sgd")

    with pytest.raises(
        SettingsError,
        match=r"'sgd' in .*has the name of one of another package: "
        r"choose another name",
    ):
        RecipeAccess(home('[sgd]\nfit = "a:b"')).check()

    shown = CliRunner().invoke(archive, ["--home", str(home("")), "recipes", "--json"])
    assert [row["recipe"] for row in json.loads(shown.stdout)["recipes"]] == ["default"]
    taken = "the recipe 'default' of another package is not used: a built-in recipe has this name"
    assert shown.stderr.splitlines() == [taken, twice]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[mine", r"cannot read .*recipes\.toml: Expected"),
        ("mine = 3", r"the recipe 'mine' in .*recipes\.toml must have either fit = .*, got 3$"),
        ("[mine]\n", "must have either fit = .*, got no key$"),
        ('[mine]\nfitt = "a:b"', "must have either fit = .*, got fitt$"),
        ('[recipes.mine]\nfit = "a:b"', r"write \[mine\] in place of \[recipes\.mine\]"),
        ('[mine]\nfit = "a:b"\nfat = 1', "must have either fit = .*, got fat, fit$"),
        ('[mine]\nfit = "a:b"\ncommand = ["true"]', "must have either fit = .*, got command, fit$"),
        ('[mine]\ncommand = "rm -rf /"', r"must have command = \[.*got 'rm -rf /'"),
        ("[mine]\ncommand = []", r"must have command = \["),
        ('[mine]\ncommand = ["a", 3]', r"must have command = \["),
        (
            '[mine]\ncommand = ["a", "b\\u0000c"]',
            r"must have a command without NUL bytes, got "
            r"'b\\x00c'",
        ),
        (
            '[mine]\ncommand = ["a\\u0000/b"]',
            r"must have a command without NUL bytes, got "
            r"'a\\x00/b'",
        ),
        (
            '[mine]\nfit = "a\\u0000.py:fit"',
            r"must have fit without NUL bytes, got 'a\\x00.py:fit'",
        ),
        ('[mine]\ncommand = ["a"]\ndata = 1', "must have data = true or false, got 1"),
        ("[mine]\nfit = 3", "must have fit = 'module:function' or 'file.py:function', got 3"),
        ('[mine]\nfit = "module"', "must have fit = .* got 'module'"),
        ('["a b"]\nfit = "a:b"', "the name of a recipe must be .* got 'a b'"),
        (
            '[default]\nfit = "a:b"',
            "'default' in .* has the name of the built-in one: choose another name",
        ),
    ],
)
def test_a_faulty_file_is_refused_at_the_start(home, text, reason):
    with pytest.raises(SettingsError, match=reason):
        RecipeAccess(home(text)).check()


def test_a_file_that_others_may_write_is_refused(home):
    folder = home(MINE)
    os.chmod(folder / "recipes.toml", 0o620)
    with pytest.raises(
        SettingsError,
        match=r"other users may write to .*recipes\.toml.*: run "
        r"chmod 600",
    ):
        RecipeAccess(folder).find("mine")


@pytest.mark.parametrize("entry", ['fit = "own.py:fit"', 'command = ["./own.py"]'])
def test_code_that_all_users_may_write_is_refused(home, entry, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = home(f"[mine]\n{entry}\n")
    (folder / "own.py").write_text("def fit(trial): ...\n")
    os.chmod(folder / "own.py", 0o664)
    access = RecipeAccess(folder)
    assert access.find("mine", with_file=True).load()
    os.chmod(folder / "own.py", 0o646)
    reason = (
        r"the recipe 'mine' cannot be loaded: all users may write to .*own\.py, .*: run "
        r"chmod o-w .*own\.py$"
    )
    with pytest.raises(SettingsError, match=reason):
        access.find("mine", with_file=True)

    with pytest.raises(SettingsError, match=reason):
        access.find("mine").load()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            "no_such_package.training:fit",
            r"cannot be loaded \(no_such_package.*\): "
            r"ModuleNotFoundError",
        ),
        ("tests.support.recipes:gone", "cannot be loaded .*: AttributeError"),
        ("tests.support.recipes:NO_FUNCTION", "must be a function of a TrialContext, got int"),
        (
            "/no/such/file.py:fit",
            "the recipe 'mine' cannot be loaded: there is no file /no/such/file.py",
        ),
    ],
)
def test_what_is_no_recipe_is_refused(target, reason, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SettingsError, match=reason):
        RecipeSource("mine", target).load()


def test_a_file_with_the_name_of_another_module_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "json.py").write_text("def fit(trial): ...\n")
    with pytest.raises(SettingsError, match="a module 'json' exists already, give it another name"):
        RecipeSource("mine", f"{tmp_path}/json.py:fit").load()


def test_a_file_whose_name_is_no_module_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "v1.2.py").write_text("def fit(trial): ...\n")
    with pytest.raises(SettingsError, match=r"must have no dot before \.py, got 'v1\.2\.py'"):
        RecipeSource("mine", f"{tmp_path}/v1.2.py:fit").load()


def test_models_are_named_beside_a_recipe_or_for_all(home):
    text = '[mine]\nfit = "train.py:fit"\nmodel = "own.py:build"\n[models]\n"nets.py:make" = "deep/nets.py:make"\n'
    access = RecipeAccess(home(text))
    folder = access.home
    assert access.names == ("default", "mine")
    mine = access.find("mine")
    assert access.model_of(mine, "nets.py:make").target == f"{folder}/own.py:build"
    default = access.find("default")
    assert access.model_of(default, "nets.py:make").target == f"{folder}/deep/nets.py:make"
    assert access.model_of(default, "os:system") is None
    assert access.model_of(default, None) is None


def test_a_recipe_may_be_called_models(home):
    access = RecipeAccess(home('[models]\nfit = "train.py:fit"\n'))
    assert access.find("models").target.endswith("train.py:fit")
    assert not access.models
