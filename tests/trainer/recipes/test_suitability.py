"""A task, a space and a recipe that do not fit each other are refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import space, spaces
from archive.errors import SettingsError, UsageError
from archive.store.records import Study
from archive.trainer.recipes import model_process, suitability
from archive.trainer.recipes.declarations import read_declaration, recipe
from archive.trainer.recipes.registry import RecipeAccess
from archive.trainer.recipes.suitability import check_model, check_suitable
from archive.trainer.tasks import registry
from tests.support.networks.model_processes import InProcess

TRAINING = """
import archive
import no_such_package


@archive.recipe(tasks="classification", spaces="parameters")
def declared(trial):
    parameters = trial.parameters
    return {"valid_accuracy": parameters["lr"]}


@archive.recipe(tasks=["regression"])
def of_values(trial):
    return {"valid_mse": train(trial)}


@archive.recipe(inputs="images")
def of_images(trial):
    return {"valid_accuracy": trial.module()}


def reads(trial):
    for epoch in range(trial.epochs):
        trial.report(epoch, {"valid_accuracy": trial.parameters["lr"]})


def reads_perhaps(trial):
    if trial.architecture.space != "parameters":
        return {"valid_accuracy": 1}
    rate = trial.parameters["lr"] if "lr" in trial.parameters else trial.parameters["rate"]
    return {"valid_accuracy": trial.parameters["lr"]}


def alike(trial):
    data = trial.data()
    return {"valid_accuracy": len(data.train)}


class Training:
    tasks = "regression"

    def __call__(self, trial):
        return {"valid_mse": trial.parameters["width"]}


made = Training()
"""

RECIPES = """
declared = {fit = "train.py:declared"}
of-values = {fit = "train.py:of_values"}
of-images = {fit = "train.py:of_images"}
with-model = {fit = "train.py:of_images", model = "models.py:build"}
reads = {fit = "train.py:reads"}
perhaps = {fit = "train.py:reads_perhaps"}
alike = {fit = "train.py:alike"}
made = {fit = "train.py:made"}
gone = {fit = "gone.py:fit"}
program = {command = ["true"], tasks = "regression"}
again = {fit = "train.py:declared", tasks = ["classification", "regression"]}
"""


@pytest.fixture
def recipes(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "recipes.toml").write_text(RECIPES)
    return RecipeAccess(tmp_path)


KNOBS = space.Space(lr=space.real(1e-4, 1, log=True), width=[8, 16])
OTHERS = space.Space(width=[8, 16], deep=space.group({"lr": [1, 2]}))


def study_of(task, name, searched):
    """Return a study of a recipe on a built-in space, by its name, or on parameters."""
    if isinstance(searched, tuple):
        found = spaces.beside(*searched)
    else:
        found = spaces.get(searched) if isinstance(searched, str) else spaces.of(searched)

    task = registry.get(task)
    protocol = f"{task.protocols[0].name}+recipe:{name}"
    if name == "default":
        protocol = task.protocols[0].name

    return Study("mine", task.name, protocol, found.name, task.objective, space_config=found.config)


@pytest.mark.parametrize(
    ("task", "name", "searched", "fault"),
    [
        ("digits", "declared", KNOBS, None),
        (
            "diabetes",
            "declared",
            KNOBS,
            "'declared' is for classification (train.py, line 6), and the task 'diabetes' is a "
            "regression: ",
        ),
        ("diabetes", "again", KNOBS, None),
        ("digits", "of-values", "cnn", "is for regression (train.py, line 12)"),
        ("digits", "made", KNOBS, "is for regression (train.py, line 39)"),
        ("diabetes", "made", KNOBS, None),
        ("digits", "program", KNOBS, "is for regression (recipes.toml)"),
        (
            "digits",
            "declared",
            "cnn",
            "is for a space of parameters (train.py, line 6), and this is the space cnn: name its "
            "file, --space space.toml",
        ),
        (
            "diabetes",
            "of-images",
            "mlp",
            "takes images (train.py, line 17), and an input of the task 'diabetes' is 10 numbers",
        ),
        ("digits", "of-images", "cnn", None),
        (
            "digits",
            "of-images",
            KNOBS,
            "trains trial.module() (train.py, line 19), and nothing makes one of the parameters",
        ),
        ("digits", "with-model", KNOBS, None),
        ("digits", "reads", KNOBS, None),
        (
            "digits",
            "reads",
            OTHERS,
            "reads trial.parameters['lr'] (train.py, line 24), and the space has no such "
            "parameter: it has width, deep",
        ),
        ("digits", "reads", "cnn", "and networks of the space cnn have no parameters"),
        ("digits", "reads", ("cnn", KNOBS), None),
        ("digits", "reads", ("cnn", OTHERS), "and the space has no such parameter: it has width"),
        ("digits", "perhaps", "cnn", None),
        ("digits", "perhaps", OTHERS, None),
        ("digits", "alike", KNOBS, "reads no parameters, so that all trials"),
        ("digits", "alike", "cnn", None),
        ("digits", "gone", "cnn", None),
        ("digits", "default", KNOBS, "the built-in training makes no network of parameters"),
        ("digits", "default", "cnn", None),
    ],
)
def test_what_does_not_fit_is_one_line(recipes, task, name, searched, fault):
    study = study_of(task, name, searched)
    if fault is None:
        check_suitable(study, registry.get(task), recipes)
        return

    with pytest.raises(UsageError) as caught:
        check_suitable(study, registry.get(task), recipes)

    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('tasks="clasification"', "tasks must be classification or regression"),
        ("tasks=KINDS", "line 5: a declaration is read without importing the file"),
        ('inputs="pictures"', "inputs must be any or images or features"),
        ("spaces=3", "line 5: spaces is a text or a list of texts, got 3"),
    ],
)
def test_a_wrong_declaration_names_its_place(tmp_path, text, fault):
    file = tmp_path / "wrong.py"
    file.write_text(f"import archive\n\n\n\n@archive.recipe({text})\ndef fit(trial):\n    pass\n")
    with pytest.raises(SettingsError, match=fault):
        read_declaration(file, "fit")


PIECES = st.sampled_from(
    [
        "fit",
        "trial",
        "def fit(trial):",
        "@archive.recipe(tasks='regression')",
        "@archive.recipe(",
        "class fit:",
        "    trial.parameters['a']",
        "    x = trial.parameters",
        "    if x: return x['b']",
        "fit = fit()",
        "\x00",
        "(" * 200,
        "fit = lambda trial: trial",
    ]
)


@given(lines=st.lists(PIECES, max_size=8))
def test_any_file_is_read_or_names_its_fault(tmp_path_factory, lines):
    """A trial says what is wrong with a file that is no Python."""
    file = tmp_path_factory.mktemp("any") / "any.py"
    file.write_text("\n".join(lines))
    try:
        declaration = read_declaration(file, "fit")
    except SettingsError as error:
        assert "any.py, line" in str(error)
    else:
        assert set(declaration.reads) <= {"a"}


def test_a_declaration_leaves_the_function_as_it_is():
    def fit(trial):
        return None

    assert recipe(tasks="classification")(fit) is fit
    with pytest.raises(SettingsError, match=r"archive\.recipe: tasks must be"):
        recipe(tasks="clustering")


MODELS = """
from torch import nn


def build(width, broken=False, classes=10, flat=True):
    if broken:
        raise KeyError("no such layer")
    first = nn.Flatten() if flat else nn.Identity()
    return nn.Sequential(first, nn.Linear(64, width), nn.BatchNorm1d(width), nn.Linear(width, classes))


def images(width):
    return nn.Sequential(nn.Conv2d(1, width, 3), nn.Flatten(), nn.LazyLinear(10))


def script(width):
    return __import__("no_such_module")
"""


OWN = """
own = {fit = "own.py:fit"}
anyhow = {fit = "own.py:fit", inputs = "any"}

[models]
"suitable_nets.py:build" = "suitable_nets.py:build"
"suitable_nets.py:images" = "suitable_nets.py:images"
"suitable_nets.py:script" = "suitable_nets.py:script"
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folder with a module of models, which a process imports once by its name."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "suitable_nets.py").write_text(MODELS)
    (folder / "recipes.toml").write_text(OWN)
    (folder / "own.py").write_text("def fit(trial):\n    trial.module()\n")
    return folder


@pytest.mark.parametrize(
    ("task", "name", "function", "example", "further", "fault"),
    [
        ("digits", "default", "build", [64], "", None),
        (
            "digits",
            "default",
            "build",
            [64],
            "classes = 3",
            "has outputs of 3 for each input, and the task 'digits' has 10 classes: let it return "
            "(inputs, 10)",
        ),
        (
            "digits",
            "default",
            "build",
            [64],
            "flat = false",
            "does not take inputs of the task 'digits', an image of 1 x 8 x 8: RuntimeError",
        ),
        (
            "digits",
            "default",
            "build",
            [64],
            "broken = true",
            "cannot be built: KeyError: 'no such layer' (suitable_nets.py, line 7)",
        ),
        ("digits", "default", "build", [64], "broken = [true, false]", None),
        ("digits", "default", "script", [64], "", "cannot be built: ModuleNotFoundError"),
        ("diabetes", "default", "build", [64], "classes = 1", "10 numbers: RuntimeError"),
        # A recipe may flatten inputs, but makes no images of ten numbers.
        ("digits", "own", "build", [64], "flat = false", None),
        ("digits", "own", "build", [64], "classes = 3", None),
        ("diabetes", "own", "images", [1, 8, 8], "", "does not take inputs of the task 'diabetes'"),
        ("diabetes", "anyhow", "images", [1, 8, 8], "", None),
        ("diabetes", "own", "build", [64], "classes = 1", None),
    ],
)
def test_a_model_is_tried_with_an_input_of_the_task(
    models, monkeypatch, task, name, function, example, further, fault
):
    monkeypatch.setattr(model_process, "ModelProcess", InProcess)
    (models / "space.toml").write_text(
        f'model = "suitable_nets.py:{function}"\nexample = {example}\n'
        f"[parameters]\nwidth = [2, 3]\n{further}\n"
    )
    parameters = space.load(str(models / "space.toml"))
    recipes = RecipeAccess(models)
    source = recipes.find(name)
    if fault is None:
        check_model(parameters, registry.get(task), source, recipes)
        return

    with pytest.raises(UsageError) as caught:
        check_model(parameters, registry.get(task), source, recipes)

    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_of_hyperparameters_are_those_of_the_default_recipe():
    from dataclasses import fields

    from archive.trainer.fit.hyperparameters import Hyperparameters

    assert suitability.HYPERPARAMETERS == tuple(field.name for field in fields(Hyperparameters))
