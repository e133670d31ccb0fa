"""Tasks on files of users: accepted files, the kind of their targets, and refusals in one line."""

from __future__ import annotations

import dataclasses
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import TrainingError, UsageError
from archive.store.records import Study
from archive.trainer.datasets import sources
from archive.trainer.datasets.user_readers import read_csv, read_npz
from archive.trainer.fit.train import train
from archive.trainer.tasks import registry
from archive.trainer.tasks.file_access import FileAccess, label_of
from tests.support import examples
from tests.support.networks.nets import TINY_CNN, TINY_MLP


def table(path, rows, head="a,b,y"):
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]))
    return path


def numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n)).round(6)
    return [(x, y, round(2 * x - y, 6)) for x, y in zip(a, b, strict=True)]


def test_a_csv_is_a_task_that_is_trained(tmp_path):
    path = table(tmp_path / "houses.csv", numbers(500))
    task = registry.get(f"csv:{path}#y")
    protocol = task.protocol()
    assert (task.kind, task.metric, task.input_shape, task.spaces) == (
        "regression",
        "mse",
        (2,),
        ("mlp",),
    )
    assert (protocol.train, protocol.valid, protocol.test, protocol.split) == (
        300,
        100,
        100,
        "shuffled",
    )
    assert task.label == "houses-y"
    assert protocol.name.startswith("csv/")
    task, protocol = pickle.loads(pickle.dumps((task, protocol)))
    outcome = train(TINY_MLP, task, protocol)
    assert outcome.value < 0.5
    assert train(TINY_MLP, task, protocol).value == outcome.value
    inputs = np.concatenate(
        [part.inputs for part in (task.load().train, task.load().valid, task.load().test)]
    )
    assert len(np.unique(inputs, axis=0)) == 500


def test_protocol_depends_on_the_content_and_target_on_the_name(tmp_path):
    path = table(tmp_path / "t.csv", numbers())
    first = registry.get(f"csv:{path}#y")
    second = registry.get(f"csv:{path}#a")
    assert first.protocol().name == second.protocol().name
    assert not np.array_equal(first.load().train.targets, second.load().train.targets)
    copy = table(tmp_path / "copy.csv", numbers())
    assert registry.get(f"csv:{copy}#y").protocol() == first.protocol()
    other = table(tmp_path / "other.csv", numbers(seed=1))
    assert registry.get(f"csv:{other}#y").protocol().name != first.protocol().name


@pytest.mark.parametrize("column", ["# of rooms", "a#b", "#"])
@pytest.mark.parametrize("file", ["houses.csv", "houses #1.csv", "houses.txt"])
def test_columns_and_files_may_have_a_number_sign_in_their_names(tmp_path, file, column):
    path = table(tmp_path / file, numbers())
    path.write_text(path.read_text().replace("y", column, 1))
    assert path.read_text().splitlines()[0].split(",")[-1] == column
    if file.endswith(".csv"):
        task = registry.get(f"csv:{path}#{column}")
        assert task.name == f"csv:{path}#{column}"
        assert label_of(task.name) == f"csv:{file}#{column}"
    else:
        # Without the ending of a table, the last number sign separates the two.
        with pytest.raises(UsageError, match=r"cannot read|named as"):
            registry.get(f"csv:{path}#{column}")


def test_a_file_that_changes_is_another_task_and_no_trial_takes_it_for_the_old_one(tmp_path):
    path = table(tmp_path / "t.csv", numbers())
    task = registry.get(f"csv:{path}#y")
    table(path, numbers(seed=1))
    os.utime(path, ns=(1, 1))
    with pytest.raises(TrainingError, match="has changed since"):
        task.load()

    assert registry.get(f"csv:{path}#y").protocol().name != task.protocol().name


def test_a_file_is_one_task_from_every_folder(tmp_path, monkeypatch):
    path = table(tmp_path / "t.csv", numbers())
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert registry.get("csv:../t.csv#y").name == f"csv:{path}#y"
    np.savez(tmp_path / "t.npz", x=ONES, y=np.arange(20) % 2)
    assert registry.get("npz:../sub/../t.npz").name == f"npz:{tmp_path / 't.npz'}"


def test_the_parent_of_a_linked_folder_is_that_of_its_target(tmp_path):
    (tmp_path / "far" / "folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "folder")
    table(tmp_path / "t.csv", numbers())
    far = table(tmp_path / "far" / "t.csv", numbers(seed=1))
    linked = registry.get(f"csv:{tmp_path}/link/../t.csv#y")
    assert linked.name == f"csv:{tmp_path}/link/../t.csv#y"
    assert linked.protocol() == registry.get(f"csv:{far}#y").protocol()


@pytest.mark.parametrize(
    ("targets", "kind", "outputs"),
    [
        ([0, 1] * 30, "classification", 2),
        ([-3, 7, 100] * 20, "classification", 3),
        (["cat", "dog"] * 30, "classification", 2),
        (["1.0", "2.0"] * 30, "classification", 2),
        ([0.5, 1.5] * 30, "regression", 1),
        (list(range(60)), "regression", 1),
    ],
)
def test_kind_of_a_target_is_inferred(tmp_path, targets, kind, outputs):
    path = table(tmp_path / "t.csv", [(i, -i, target) for i, target in enumerate(targets)])
    task = registry.get(f"csv:{path}#y")
    assert (task.kind, task.outputs) == (kind, outputs)
    assert task.protocol().split == ("stratified" if kind == "classification" else "shuffled")
    # Results on file are comparable only while these stay the rules of files, whatever a built-in
    # task's default is.
    rules = (
        registry.get("digits").protocol("digits/1")
        if kind == "classification"
        else registry.DIABETES.protocol()
    )
    parts = {
        name: getattr(task.protocol(), name)
        for name in ("name", "train", "valid", "test", "split", "data")
    }
    assert task.protocol() == dataclasses.replace(rules, **parts)


def test_kind_of_a_target_can_be_given(tmp_path):
    path = table(tmp_path / "t.csv", [(i, -i, i % 3) for i in range(60)])
    assert registry.get(f"csv:{path}#y:values").kind == "regression"
    path = table(tmp_path / "u.csv", [(i, -i, i % 30) for i in range(300)])
    assert registry.get(f"csv:{path}#y").kind == "regression"
    task = registry.get(f"csv:{path}#y:classes")
    assert task.outputs == 30
    assert task.label == "u-y-classes"
    path = table(tmp_path / "v.csv", [(i, -i, f"c{i % 3}") for i in range(60)])
    with pytest.raises(UsageError, match=r"row 1 .* a finite number in the column 'y', got 'c0'"):
        registry.get(f"csv:{path}#y:values")


HOSTILE = {
    "no column": ("a,b,y\n" + "1,2,3\n" * 12, "q", "no column 'q' to predict: it has a, b, y"),
    "two columns": ("a,y,y\n" + "1,2,3\n" * 12, "y", "two columns 'y'"),
    "two inputs of one name": ("a,a,y\n" + "1,2,3\n" * 12, "y", "two columns 'a'"),
    "nothing beside": ("y\n" + "1\n2\n" * 12, "y", "no column beside"),
    "empty": ("", "y", "is no CSV: it is empty"),
    "header alone": ("a,b,y\n", "y", "at least 10 rows, got 0"),
    "few": ("a,b,y\n" + "1,2,3.5\n" * 9, "y", "at least 10 rows, got 9"),
    "infinite": ("a,b,y\n" + "1,2,3.5\n" * 12 + "1,-inf,4\n", "y", "column 'b', got '-inf'"),
    "huge": (
        "a,b,y\n" + "1,2,3.5\n" * 12 + "1,1e200,4\n",
        "y",
        "number up to 3.4e.38 in the column 'b', got '1e200'",
    ),
    "huge target": (
        "a,b,y\n" + "1,2,3.5\n" * 12 + "1,2,-1e39\n",
        "y",
        "in the column 'y', got '-1e39'",
    ),
    "grouped digits": (
        "a,b,y\n" + "".join(f"1,{i},{i}.5\n" for i in range(30)) + "1,1_000,3.5\n",
        "y",
        "row 31 .* a plain number like nearly all others in the column 'b', got '1_000'",
    ),
    "grouped target": (
        "a,b,y\n" + "1,2,3.5\n" * 12 + "1,2,1_0\n",
        "y:values",
        "row 13 .* column 'y', got '1_0'",
    ),
    "no target": (
        "a,b,y\n" + "1,2,x\n" * 12 + "1,2,\n",
        "y",
        "row 13 .* nothing in the column 'y'",
    ),
    "target nan": (
        "a,b,y\n" + "1,2,0.5\n1,2,1.5\n" * 12 + "1,2,nan\n",
        "y",
        "row 25 .*column 'y', got 'nan'",
    ),
    "short row": (
        "a,b,y\n" + "1,2,3.5\n" * 12 + "1,2\n",
        "y",
        "row 13 .* has 2 entries, the header has 3",
    ),
    "one class": ("a,b,y\n" + "1,2,x\n" * 12, "y", "two classes or more, got 1"),
    "one value": ("a,b,y\n" + "1,2,0.5\n" * 12, "y", "is 0.5 in every row"),
    "rare class": ("a,b,y\n" + "1,2,x\n" * 12 + "1,2,z\n", "y", "rarest of 2 has 1$"),
    "rare number": (
        "a,b,y\n" + "1,2,3\n" * 12 + "1,2,4\n",
        "y",
        "rarest of 2 has 1: append :values",
    ),
    "no text": (b"\xff\xfe\x00", "y", "is no UTF-8 text: save it as UTF-8"),
    "semicolons": (
        "a;b;z\n" + "1,5;2,5;3\n" * 12,
        "y",
        "has no column 'y' to predict: it has a, b, z",
    ),
    "blank lines": (
        "\n \na,b,y\n\n,,\n" + "1,2,x\n" * 12 + "\n1,2,z\n\n",
        "y",
        "rarest of 2 has 1$",
    ),
    "open quote": ('a,b,y\n"1,2,3\n', "y", "is no CSV"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_csv_that_cannot_be_learned_from_is_refused_in_one_line(tmp_path, name):
    content, target, said = HOSTILE[name]
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=said) as error:
        registry.get(f"csv:{path}#{target}")

    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name",
    [
        *("csv:", "csv:t.csv", "csv:#y", "csv:t.csv#", "npz:", "csv:/nowhere/t.csv#y", "npz:/t"),
        *("csv:~nobody-of-this-name/t.csv#y", "npz:t\0.npz"),
    ],
)
def test_unusable_name_of_a_file_is_explained(name):
    with pytest.raises(UsageError, match=r"named as|cannot read|no home folder"):
        registry.get(name)


CELLS = st.one_of(
    st.integers(-5, 5).map(str), st.floats().map(str), st.text(max_size=4), st.just("")
)


@examples(5)
@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=24),
    st.sampled_from([None, "classes", "values"]),
)
def test_any_csv_gives_rows_or_a_one_line_error(tmp_path_factory, rows, kind):
    import csv
    import io

    text = io.StringIO()
    csv.writer(text).writerows([["a", "b", "y"], *rows])
    content = text.getvalue().encode("utf-8", "surrogatepass")
    try:
        found = read_csv(tmp_path_factory.getbasetemp(), content, "y", kind)
    except UsageError as error:
        assert "\n" not in str(error) or any("\n" in cell for row in rows for cell in row)
    else:
        check(found)


def check(found):
    assert np.isfinite(found.rows.inputs).all()
    assert len(found.rows.inputs) == len(found.rows.targets) >= 10
    if found.kind == "classes":
        assert np.array_equal(np.unique(found.rows.targets), np.arange(found.classes))
    else:
        assert np.isfinite(found.rows.targets).all()


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 2)), min_size=30, max_size=60))
def test_numbers_come_out_of_a_csv_as_they_went_in(tmp_path_factory, rows):
    values = np.array([value for value, _ in rows])
    labels = np.array([label for _, label in rows])
    content = "y,a\n" + "".join(f"{label},{value!r}\n" for value, label in rows)
    try:
        found = read_csv(tmp_path_factory.getbasetemp(), content.encode(), "y", "classes")
    except UsageError:
        assert np.unique(labels, return_counts=True)[1].min() < 5 or len(np.unique(labels)) < 2
    else:
        np.testing.assert_array_equal(found.rows.inputs[:, 0], values)
        np.testing.assert_array_equal(np.unique(labels)[found.rows.targets], labels)


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_arrays_are_a_task_and_images_train_a_cnn(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    x = rng.integers(0, 60, (80, 8, 8)) + 60 * y[:, None, None]
    task = registry.get(f"npz:{saved(tmp_path / 'im.npz', x=x.astype(np.uint8), y=y)}")
    assert (task.kind, task.outputs, task.input_shape, task.spaces) == (
        "classification",
        4,
        (1, 8, 8),
        ("cnn", "mlp"),
    )
    assert task.label == "im"
    assert train(TINY_CNN, task).value > 0.25
    task = registry.get(
        f"npz:{saved(tmp_path / 'flat.npz', x=rng.normal(size=(50, 3)), y=rng.normal(size=50))}"
    )
    assert (task.kind, task.input_shape, task.spaces) == ("regression", (3,), ("mlp",))


def test_the_parts_of_a_file_are_kept(tmp_path):
    x = np.arange(100.0)[:, None] * np.ones(3)
    y = np.array(["no", "yes"])[np.arange(100) % 2]
    own = {"x_train": x[:60], "y_train": y[:60], "x_test": x[60:], "y_test": y[60:]}
    task = registry.get(f"npz:{saved(tmp_path / 'two.npz', **own)}")
    protocol = task.protocol()
    assert (protocol.train, protocol.valid, protocol.test, protocol.split) == (
        48,
        12,
        40,
        "held-out",
    )
    splits = task.load()
    assert splits.test.inputs.min() > max(splits.train.inputs.max(), splits.valid.inputs.max())
    own = {"x_train": x[:60], "y_train": y[:60], "x_valid": x[60:75], "y_valid": y[60:75]}
    task = registry.get(f"npz:{saved(tmp_path / 'three.npz', **own, x_test=x[75:], y_test=y[75:])}")
    protocol = task.protocol()
    assert (protocol.train, protocol.valid, protocol.test, protocol.split) == (60, 15, 25, "given")
    splits = task.load()
    assert (np.diff(splits.train.inputs[:, 0]) > 0).all()
    np.testing.assert_array_equal(splits.valid.targets, (np.arange(60, 75) % 2))


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


ONES = np.ones((20, 2))
BAD = {
    "objects": (
        {"x": np.array([Bomb()] * 20, dtype=object), "y": np.arange(20)},
        "no file of numpy arrays",
    ),
    "object targets": (
        {"x": ONES, "y": np.array([Bomb()] * 20, dtype=object)},
        "no file of numpy arrays",
    ),
    "no y": ({"x": ONES}, "must have x and y, .*: it has x"),
    "nothing": ({}, "it has nothing"),
    "lengths": ({"x": ONES, "y": np.arange(19)}, r"got \(20, 2\) and \(19,\)"),
    "rank": ({"x": np.ones(20), "y": np.arange(20)}, r"must be \(n, features\)"),
    "no features": ({"x": np.ones((20, 0)), "y": np.arange(20)}, r"got \(20, 0\)"),
    "empty": ({"x": np.ones((0, 2)), "y": np.ones(0)}, r"got \(0, 2\)"),
    "text": ({"x": np.full((20, 2), "a"), "y": np.arange(20)}, "x of .* must be numbers, got <U1"),
    "complex": ({"x": ONES * 1j, "y": np.arange(20)}, "must be numbers, got complex128"),
    "dates": ({"x": ONES, "y": np.zeros(20, dtype="M8[s]")}, "y of .* must be numbers or text"),
    "nan": (
        {"x": np.where(np.eye(20, 2), np.nan, 1), "y": np.arange(20.0)},
        "row 1 of x .* not finite",
    ),
    "huge": (
        {"x": ONES * 1e200, "y": np.arange(20.0)},
        "row 1 of x .* not finite, or above 3.4e.38",
    ),
    "nan target": ({"x": ONES, "y": np.r_[np.ones(19), np.inf]}, "row 20 of y .* not finite"),
    "one class": ({"x": ONES, "y": np.zeros(20, dtype=int)}, "two classes or more, got 1"),
    "rare": (
        {"x": ONES, "y": np.arange(20)},
        "at least 5 rows, .*: append :values to the name of the file",
    ),
    "text as values": (
        {"x": ONES, "y": np.array(["1"] * 20)},
        "y of .* is text: it has no values",
        ":values",
    ),
    "many classes": (
        {"x": np.ones((60, 2)), "y": np.arange(60)},
        "the rarest of 60 has 1$",
        ":classes",
    ),
    "parts": (
        {
            "x_train": ONES,
            "y_train": np.arange(20) % 2,
            "x_test": np.ones((20, 3)),
            "y_test": np.arange(20) % 2,
        },
        "do not go together",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_arrays_that_cannot_be_learned_from_are_refused_in_one_line(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    arrays, said, kind = (*BAD[name], "")[:3]
    path = saved(tmp_path / "t.npz", **arrays)
    with pytest.raises(UsageError, match=said) as error:
        registry.get(f"npz:{path}{kind}")

    assert "\n" not in str(error.value)
    assert not (tmp_path / "exploded").exists()


def test_a_single_array_named_as_a_file_of_arrays_is_named_as_such(tmp_path):
    with (tmp_path / "t.npz").open("wb") as file:
        np.save(file, ONES)

    with pytest.raises(
        UsageError,
        match=r"t\.npz holds a single array \(npy\), not the arrays x "
        r"and y",
    ):
        registry.get(f"npz:{tmp_path / 't.npz'}")


BIG = 2**53
TARGETS = {
    "few integers": ([0, 1, 2] * 20, "classes", 3),
    "few whole floats": ([0.0, 1.0] * 30, "classes", 2),
    "floats": ([0.5, 1.5] * 30, "values", 1),
    "twenty": ([*range(20)] * 5, "classes", 20),
    "twenty-one": ([*range(21)] * 5, "values", 1),
    "sixty integers": ([*range(60)], "values", 1),
    "sixty whole floats": ([float(one) for one in range(60)], "values", 1),
    "negative": ([-1, 1] * 30, "classes", 2),
    "beyond 2^53": ([BIG, BIG + 1, BIG + 2] * 20, "classes", 3),
    "64 bits": ([2**63 - 1, 2**63 - 2] * 30, "classes", 2),
    "64 bits without a sign": ([2**64 - 1, 2**64 - 2, 2**63] * 20, "classes", 3),
    "booleans": ([True, False] * 30, "classes", 2),
    "text": (["a", "b"] * 30, "classes", 2),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_same_data_are_the_same_task_as_a_csv_and_as_arrays(tmp_path, name):
    labels, kind, classes = TARGETS[name]
    x = np.arange(2.0 * len(labels)).reshape(-1, 2)
    path = table(
        tmp_path / "t.csv", [(*row, label) for row, label in zip(x.tolist(), labels, strict=True)]
    )
    saved(tmp_path / "t.npz", x=x, y=np.array(labels))
    half = len(labels) // 2
    y = np.array(labels)
    parts = {"x_train": x[half:], "y_train": y[half:], "x_test": x[:half], "y_test": y[:half]}
    saved(tmp_path / "parts.npz", **parts)
    in_order = labels
    turned = [*labels[half:], *labels[:half]]
    read = [
        (read_csv(path, path.read_bytes(), "y", None), in_order),
        (read_npz(path, (tmp_path / "t.npz").read_bytes()), in_order),
        (read_npz(path, (tmp_path / "parts.npz").read_bytes()), turned),
    ]
    for content, expected in read:
        assert (content.kind, content.classes) == (kind, classes)
        numbers = {label: number for number, label in enumerate(sorted(set(labels)))}
        targets = expected if kind == "values" else [numbers[label] for label in expected]
        assert content.rows.targets.tolist() == targets

    # The kind can be given in both forms. As floats, the largest labels are one value.
    if name != "text" and len(set(map(float, labels))) > 1:
        assert registry.get(f"npz:{tmp_path / 't.npz'}:values").kind == "regression"
        assert name == "booleans" or registry.get(f"csv:{path}#y:values").kind == "regression"

    if classes > 1:
        chosen = registry.get(f"npz:{tmp_path / 't.npz'}:classes")
        assert (chosen.outputs, chosen.label) == (classes, "t-classes")
        assert pickle.loads(pickle.dumps(chosen)).load().train.targets.dtype == np.int64


def test_integers_with_and_without_a_sign_stay_different_labels(tmp_path):
    y = [np.array([BIG + 1, BIG] * 10), np.array([BIG + 1, 2**63] * 10, np.uint64)]
    path = saved(tmp_path / "t.npz", x_train=ONES, y_train=y[0], x_test=ONES, y_test=y[1])
    content = read_npz(path, path.read_bytes())
    assert content.classes == 3
    assert content.rows.targets.tolist() == [1, 0] * 10 + [1, 2] * 10


@given(st.data(), st.sampled_from([10, 2**53, 2**63, 10**30]))
def test_labels_that_differ_are_different_classes(tmp_path_factory, data, scale):
    """The label of a text is its number, in any notation; no two numbers are one class."""
    number = st.integers(-5, 5).map(lambda one: one + scale)
    distinct = data.draw(st.lists(number, min_size=2, max_size=8, unique=True))
    rows = data.draw(st.permutations(distinct * 5))
    notations = ("{0}", "{0}.0", "+{0}", " {0}", "{0}.000", "{0}0e-1")
    texts = [data.draw(st.sampled_from(notations)).format(row).replace("+-", "-") for row in rows]
    lines = [f"{place},{text}" for place, text in enumerate(texts)]
    content = "\n".join(["a,y", *lines, *([] if len(lines) >= 10 else lines)])
    found = read_csv(tmp_path_factory.getbasetemp(), content.encode(), "y", None)
    order = sorted(distinct)
    assert (found.kind, found.classes) == ("classes", len(distinct))
    assert found.rows.targets.tolist()[: len(rows)] == [order.index(row) for row in rows]


SHAPES = [
    # Shape in the file, and that of an image as it is read: height, width, channels.
    ((8, 8), (8, 8, 1)), ((8, 8, 3), (8, 8, 3)), ((3, 8, 8), (8, 8, 3)), ((1, 8, 8), (8, 8, 1)),
    ((4, 8, 10), (8, 10, 4)), ((2, 8, 5), (8, 5, 2)), ((16, 8, 8), (8, 8, 16)), ((8, 8, 16), (8, 8, 16)),
    ((3, 3, 3), (3, 3, 3)), ((3, 8, 4), (3, 8, 4)), ((8, 8, 8), (8, 8, 8)), ((8, 10, 12), (8, 10, 12)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "image"), SHAPES)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_channels_are_found_first_and_last(tmp_path, caplog, shape, image, dtype):
    x = np.random.default_rng(0).integers(0, 255, (20, *shape)).astype(dtype)
    path = saved(tmp_path / "t.npz", x=x, y=np.arange(20) % 2)
    task = registry.get(f"npz:{path}")
    height, width, channels = image
    assert task.input_shape == (channels, height, width)
    rows = read_npz(path, path.read_bytes()).rows.inputs
    turned = len(shape) == 3 and shape != image
    expected = np.moveaxis(x, 1, -1) if turned else x.reshape(20, *image)
    np.testing.assert_array_equal(rows, expected)
    line = (
        f"the images of t.npz have their channels first, and are read as {height}x{width} "
        f"with {channels} channels"
    )
    assert caplog.messages == [line] * turned
    assert ("channels first" in task.summary) == turned


def test_the_name_of_a_file_alone_is_answered_by_the_name_of_its_task(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets.csv").write_text("\n\nage,species\n1,cat\n")
    (tmp_path / "cells.csv").write_text("set:lr,acc\n1,2\n")
    (tmp_path / "odd.csv").write_bytes(b"\xff\x00")
    saved(tmp_path / "scans.npz", x=ONES)
    (tmp_path / "notes.txt").write_text("A line of text.\n")
    (tmp_path / "notes.jsonl").write_text('{"text": "a", "b": 1}\n')
    (tmp_path / "pets.txt").write_text("age,species\n3,cat\n")
    answers = {
        "notes.txt": "notes.txt is a file, not a task: its task is text:notes.txt",
        "notes.jsonl": "notes.jsonl is a file, not a task: its task is text:notes.jsonl",
        "pets.txt": "pets.txt is a file, not a task: its task is csv:pets.txt#TARGET; its "
        "columns are age, species",
        "pets.csv": "pets.csv is a file, not a task: its task is csv:pets.csv#TARGET; its "
        "columns are age, species",
        "pets.csv#age": "pets.csv#age is a file, not a task: its task is csv:pets.csv#age",
        "csv:pets.csv": "csv:pets.csv names no target: its task is csv:pets.csv#TARGET; its "
        "columns are age, species",
        "cells.csv": "cells.csv is a file, not a task: its task is table:cells.csv#COLUMN; its "
        "columns are set:lr, acc",
        "odd.csv": "odd.csv is a file, not a task: its task is csv:odd.csv#TARGET",
        "scans.npz": "scans.npz is a file, not a task: its task is npz:scans.npz",
        "gone.csv": "there is no file gone.csv, and no task of this name",
    }
    for name, answer in answers.items():
        with pytest.raises(UsageError) as refused:
            registry.get(name)

        assert str(refused.value) == answer

    with pytest.raises(UsageError, match=r"unknown task 'cats': known: cifar10, csv:PATH#TARGET, "):
        registry.get("cats")

    # A name in the database is no reason to look into a file.
    for name in ("pets.csv", "csv:pets.csv"):
        with pytest.raises(UsageError) as refused:
            registry.of_study(Study("s", name, "p", "mlp"), FileAccess())

        assert "species" not in str(refused.value)


def test_members_that_are_no_arrays_are_ignored(tmp_path):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x", "garbage")
        file.writestr("y", "more")

    with pytest.raises(UsageError, match=r"must have x and y, .*: it has nothing"):
        registry.get(f"npz:{path}")


@given(st.data())
def test_a_file_of_arrays_that_is_cut_off_or_altered_is_refused_or_whole(tmp_path_factory, data):
    import io

    whole = io.BytesIO()
    np.savez_compressed(whole, x=np.arange(40.0).reshape(20, 2), y=np.arange(20) % 2)
    content = bytearray(whole.getvalue())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    try:
        found = read_npz(tmp_path_factory.getbasetemp(), bytes(content))
    except UsageError:
        return

    check(found)


def test_refused_files_leave_no_cache(tmp_path):
    path = table(tmp_path / "t.csv", [(1, 2, "nan")] * 20)
    with pytest.raises(UsageError):
        registry.get(f"csv:{path}#y")

    assert not sources.home().exists()
