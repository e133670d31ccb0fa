"""Spaces in files: Python and TOML say the same, and faults name their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from archive import space
from archive.errors import SettingsError
from archive.parameters.files import SpaceFileError, is_file

TOML = """
constraints = ["width * depth <= 512"]

[parameters]
depth = {integer = [2, 12]}
width = [32, 64, 128]
act = ["relu", "gelu"]
lr = {real = [1e-5, 1e-1], log = true, prior = [1e-3, "high"]}
dropout = {real = [0, 0.5], when = "depth >= 4"}
size = {ordinal = ["small", "base"], default = "base"}
batch = {integer = [16, 64], step = 16}
seed = 3

[parameters.stage]
repeat = "depth"
parameters.op = ["conv3", "skip"]
parameters.kernel = {choice = [3, 5], when = "op != 'skip'"}

[parameters.optimiser]
when = "depth > 2"
parameters.momentum = {real = [0, 1], step = 0.1}
"""

PYTHON = """
from archive import space

search = space.Space(
    depth=space.integer(2, 12),
    width=space.choice([32, 64, 128]),
    act=space.choice(["relu", "gelu"]),
    lr=space.real(1e-5, 1e-1, log=True, prior=(1e-3, "high")),
    dropout=space.real(0, 0.5, when="depth >= 4"),
    size=space.ordinal(["small", "base"], default="base"),
    batch=space.integer(16, 64, step=16),
    seed=space.constant(3),
    stage=space.repeat(
        {
            "op": space.choice(["conv3", "skip"]),
            "kernel": space.choice([3, 5], when="op != 'skip'"),
        },
        "depth",
    ),
    optimiser=space.group({"momentum": space.real(0, 1, step=0.1)}, when="depth > 2"),
    constraints=["width * depth <= 512"],
)
print("the file's own output")
"""


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_both_kinds_of_file_describe_one_space(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = space.load(write(tmp_path, "space.toml", TOML))
    python = space.load(write(tmp_path, "space.py", PYTHON) + ":search")
    assert toml == python
    assert toml == space.load(str(tmp_path / "space.py"))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("1e-5, 1e-1], log", "0, 1e-1], log", "line 8: lr: a log scale begins above 0, got low 0"),
        ("[2, 12]}", "[12, 2]}", "line 5: depth: the bounds are reversed"),
        ("[2, 12]}", "[2, 3, 12]}", "line 5: depth: integer is a list of two bounds"),
        (
            "[2, 12]}",
            "[2, 12], lgo = true}",
            "line 5: depth: a key does not belong to integer, got lgo",
        ),
        ("depth >= 4", "dpeth >= 4", "line 9: 'dpeth >= 4': there is no parameter 'dpeth'"),
        ("<= 512", "<= 2", "line 2: 'width \\* depth <= 2': no configuration meets it"),
        (
            "[2, 12]}",
            '[2, 12], when = "dropout > 0"}',
            "line 5: conditions form a cycle: depth -> dropout",
        ),
        ('"conv3", "skip"', '"skip", "skip"', "line 16: op: the option '\"skip\"' stands twice"),
        ('repeat = "depth"', 'repeat = "width_"', "line 14: stage is repeated 'width_' times"),
        ('repeat = "depth"', "repeat = 0", "line 14: stage: a group is repeated 1 to 1000 times"),
        ('repeat = "depth"', "repaet = 3", "line 14: stage: unknown key 'repaet'"),
        ("ordinal", "ordnal", "line 10: size: a parameter has one of the keys integer, real"),
        ("seed = 3", "seed = 1979-05-27", "line 12: seed is no parameter"),
        ("seed = 3", "and = 3", "line 12: 'and' is a word of the language"),
        ("seed = 3", "seed = 3\nseed = 4", "line 13: is no TOML: Cannot overwrite a value$"),
        ("seed = 3", "seed = [3", "is no TOML: "),
        ("seed = 3", "seed = []", "line 12: seed: a choice has one option or more, got none"),
        ("seed = 3", "seed = [nan]", "line 12: seed: a value is a JSON value, got nan"),
        ("[2, 12]}", "[2, 12], log = 'yes'}", "line 5: depth: log is true or false, got 'yes'"),
        ("[2, 12]}", "[2, 12.5]}", "line 5: depth: an integer has whole bounds"),
        ("1e-5, 1e-1], log", "nan, 1e-1], log", "line 8: lr: a real has finite bounds, got nan"),
        ("1e-5, 1e-1], log", "1, inf], log", "line 8: lr: a real has finite bounds, got inf"),
        ('prior = [1e-3, "high"]', "prior = 3", "line 8: lr: the value of the prior must be"),
        ("depth >= 4", "depth >=", "line 9: dropout: 'depth >=': expected a value"),
        ('when = "depth >= 4"', "when = 4", "line 9: dropout: '4': a condition must be a text"),
        ("\n[parameters]", 'model = "build"\n[parameters]', "line 3: the model is given as"),
        ("\n[parameters]", 'model = "m.py:f"\n[parameters]', "line 3: a model needs an example"),
        ("\n[parameters]", "model = 3\n[parameters]", "line 3: model is the text file.py:function"),
        ("\n[parameters]", "example = [3]\n[parameters]", "line 3: example is of a model"),
        (
            "[32, 64, 128]",
            str([*range(10001)]),
            "line 6: width: a choice has at most 10,000 options",
        ),
        ("constraints = [", "constraint = [", "line 2: unknown key 'constraint'"),
        ('constraints = ["width * depth <= 512"]', "constraints = 3", "line 2: constraints are a"),
        (TOML, "", "there are no parameters: write them below"),
        (TOML, "parameters = 3", "line 1: there are no parameters"),
    ],
)
def test_a_fault_in_a_toml_file_is_one_line_with_its_place(
    tmp_path: Path, before: str, after: str, fault: str
) -> None:
    assert before in TOML
    path = write(tmp_path, "space.toml", TOML.replace(before, after, 1))
    with pytest.raises(SpaceFileError, match=fault) as caught:
        space.load(path)

    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("1e-5, 1e-1, log", "1, 1e-1, log", "line 8: the bounds are reversed"),
        ("depth >= 4", "dpeth >= 4", "line 9: 'dpeth >= 4': there is no parameter 'dpeth'"),
        ("<= 512", "<= 2", "line 21: 'width \\* depth <= 2': no configuration meets it"),
        ("integer(2, 12)", "integer(2, 12, when='dropout > 0')", "line 5: conditions form a cycle"),
        ("space.choice([32", "spce.choice([32", "line 6: NameError: name 'spce' is not defined"),
        ("depth=space", "depth=depth=space", "line 5: is no Python: "),
        ("search = ", "search = a = 3 and ", "must make one space.Space"),
        ("print(", "raise SystemExit(3)\nprint(", "line 23: SystemExit: 3"),
        ("print(", "raise ValueError('a\\nb')\nprint(", "line 23: ValueError: a"),
        ("print(", "import no_such_package\nprint(", "line 23: ModuleNotFoundError: No module"),
        ("integer(2, 12)", "integer(2, 12, lgo=True)", "line 5: TypeError: integer"),
        ("integer(2, 12)", "integer('2', 12)", "line 5: an integer has whole bounds"),
        ("choice([32, 64, 128])", "choice(range(10**6))", "at most 10,000 options, got 1,000,000"),
        ("print(", "other = space.Space(a=[1])\nprint(", "several, name one: .*space.py:search"),
    ],
)
def test_a_fault_in_a_python_file_is_one_line_with_its_place(
    tmp_path: Path, before: str, after: str, fault: str
) -> None:
    assert before in PYTHON
    path = write(tmp_path, "space.py", PYTHON.replace(before, after, 1))
    if "search = a" in after:
        path = write(tmp_path, "space.py", "search = 3\n")

    with pytest.raises(SpaceFileError, match=fault) as caught:
        space.load(path)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "text"), [("space.toml", TOML), ("space.py", PYTHON)])
def test_files_of_windows_are_read(tmp_path: Path, name: str, text: str) -> None:
    plain = space.load(write(tmp_path, name, text))
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert space.load(str(tmp_path / name)) == plain
    # Lines are counted as an editor shows them.
    fault = text.replace("dropout", "dpeth").replace("[2, 12]", "[12, 2]").replace("(2,", "(22,")
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + fault.replace("\n", "\r\n").encode())
    with pytest.raises(SpaceFileError, match="line 5: "):
        space.load(str(tmp_path / name))


def test_what_is_no_file_of_a_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"in a \.py or a \.toml file, got 'cnn'"):
        space.load("cnn")
    with pytest.raises(SpaceFileError, match=r"missing\.toml: cannot be read: No such file"):
        space.load(str(tmp_path / "missing.toml"))
    with pytest.raises(SpaceFileError, match="has no space 'serch': it has search"):
        space.load(write(tmp_path, "space.py", PYTHON) + ":serch")
    with pytest.raises(SettingsError, match="a TOML file describes one space"):
        space.load(write(tmp_path, "space.toml", TOML) + ":search")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpaceFileError, match="is no text in UTF-8"):
        space.load(str(tmp_path / "binary.toml"))
    (tmp_path / "huge.toml").write_bytes(b"#" * 2**21)
    with pytest.raises(SpaceFileError, match="at most 1 MiB"):
        space.load(str(tmp_path / "huge.toml"))
    assert is_file("space.py:search") and is_file("a/b.toml")
    assert not is_file("cnn") and not is_file("my.module:thing")
