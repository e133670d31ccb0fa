"""The tables of scikit-learn are read without importing it, and nothing else heavy is imported to
train."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

from archive.errors import TrainingError
from archive.trainer.datasets import scikit_learn
from archive.trainer.tasks import registry
from tests.support import ROOT


def test_the_tables_are_those_that_scikit_learn_gives():
    inputs, targets = load_digits(return_X_y=True)
    table = scikit_learn._table("digits.csv.gz", delimiter=",")
    np.testing.assert_array_equal(table[:, :-1], inputs)
    np.testing.assert_array_equal(table[:, -1], targets)
    inputs, targets = load_diabetes(return_X_y=True, scaled=False)
    np.testing.assert_array_equal(scikit_learn._table("diabetes_data_raw.csv.gz"), inputs)
    np.testing.assert_array_equal(scikit_learn._table("diabetes_target.csv.gz"), targets)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(TrainingError, match="scikit-learn"):
        registry.get("digits").load()


def test_training_loads_neither_the_compiler_of_torch_nor_scikit_learn():
    code = (
        "import sys; from archive.trainer.tasks import registry as tasks;"
        "from archive.trainer.trial import fork_server_preload; from archive.trainer.fit.train "
        "import train;"
        "from tests.support.networks.nets import TINY_CNN, TINY_MLP;"
        "train(TINY_MLP, tasks.get('diabetes'), epochs=1);"
        "train(TINY_CNN, tasks.get('digits'), epochs=1);"
        "assert not {'torch._dynamo', 'sklearn', 'scipy'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
