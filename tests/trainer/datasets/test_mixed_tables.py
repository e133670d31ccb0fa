"""Tables with gaps, texts, dates, other separators and decimal commas, and Parquet files."""

from __future__ import annotations

import datetime
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from archive.errors import UsageError
from archive.trainer.datasets.mixed_tables import read_mixed_csv, read_parquet
from archive.trainer.datasets.user_readers import read_csv
from archive.trainer.fit.train import train
from archive.trainer.tasks import registry
from archive.trainer.tasks.file_access import reference_of
from tests.support import examples
from tests.support.networks.nets import TINY_MLP


def people(n=60):
    """Return rows of a table as people have them: age with gaps, colour, day, price."""
    rng = np.random.default_rng(0)
    rows = []
    for index in range(n):
        age = "" if index % 7 == 3 else f"{rng.integers(1, 90)}"
        colour = ("red", "blue", "green", "NA")[index % 4]
        day = f"2024-{1 + index % 12:02}-{1 + index % 28:02}"
        rows.append((age, colour, day, f"{rng.normal():.4f}"))

    return rows


def write(path, rows, head=("age", "colour", "day", "price"), separator=","):
    lines = [separator.join(row) for row in (head, *rows)]
    path.write_text("\n".join(lines))
    return path


def inputs_of(task):
    splits = task.load()
    return np.concatenate([splits.train.inputs, splits.valid.inputs, splits.test.inputs])


def test_gaps_texts_and_dates_are_inputs(tmp_path):
    path = write(tmp_path / "p.csv", people())
    task = registry.get(f"csv:{path}#price")
    # The age and its gaps; three colours; the day, month and weekday, and that no day is a gap.
    assert task.input_shape == (2 + 3 + 3,)
    assert "columns: 1 number, 1 text, 1 date" in task.summary
    assert task.protocol().preparation["columns"] == {
        "age": "number",
        "colour": "text",
        "day": "date",
    }
    assert np.isfinite(inputs_of(task)).all()
    task = pickle.loads(pickle.dumps(task))
    result = train(TINY_MLP, task, task.protocol())
    deviation = task.scaling(task.protocol()).target[1]
    mse = result.metrics["valid_mse"]
    assert result.metrics["valid_rmse"] == pytest.approx(deviation * mse**0.5)
    assert result.metrics["test_rmse"] > 0


def test_the_encoding_is_fitted_on_the_training_part_alone(tmp_path):
    rows = people()
    first = registry.get(f"csv:{write(tmp_path / 'a.csv', rows)}#price")
    protocol = first.protocol()
    chosen = np.random.RandomState(protocol.split_seed).permutation(len(rows))
    train_rows = {*chosen[: protocol.train].tolist()}
    changed = []
    for index, row in enumerate(rows):
        other = (f"{row[0] or 5}00", "violet", "1999-12-31", row[3])
        changed.append(row if index in train_rows else other)

    second = registry.get(f"csv:{write(tmp_path / 'b.csv', changed)}#price")
    assert second.protocol().train == protocol.train
    np.testing.assert_array_equal(first.load().train.inputs, second.load().train.inputs)
    assert not np.array_equal(first.load().test.inputs, second.load().test.inputs)
    # An unseen text is none of the training part's.
    assert np.isfinite(second.load().test.inputs).all()


def test_numbers_without_gaps_are_read_as_ever(tmp_path):
    rows = [(f"{i}", f"{i * 0.5}", f"{i % 9}.25") for i in range(40)]
    path = write(tmp_path / "n.csv", rows, ("a", "b", "y"))
    task = registry.get(f"csv:{path}#y")
    assert task.protocol().preparation == {}
    assert task.summary == f"values of {path}#y, 40 rows"
    plain = read_csv(path, path.read_bytes(), "y", None)
    mixed = read_mixed_csv(path, path.read_bytes(), "y", None)
    np.testing.assert_array_equal(plain.rows.targets, mixed.rows.targets)
    # The readers agree on numbers.
    np.testing.assert_array_equal(plain.rows.inputs, mixed.encode(np.arange(40)))


SEPARATED = {
    "semicolons": (";", "1,5", "1.234,25"),
    "tabs": ("\t", "1.5", "1234.25"),
    "bars": ("|", "1.5", "1234.25"),
    "tabs and commas": ("\t", "1,5", "1234,25"),
}


@pytest.mark.parametrize("name", SEPARATED)
def test_separators_and_decimal_commas_are_found(tmp_path, name):
    separator, small, large = SEPARATED[name]
    comma = "," in small
    rows = []
    for index in range(40):
        target = f"{index}.75".replace(".", "," if comma else ".")
        rows.append((small if index % 2 else large, target))

    path = write(tmp_path / "t.csv", rows, ("a", "y"), separator)
    content = read_mixed_csv(path, path.read_bytes(), "y", None)
    assert content.kind == "values"
    assert content.rows.targets[:3].tolist() == [0.75, 1.75, 2.75]
    assert content.encode(np.arange(40))[:2, 0].tolist() == [1234.25, 1.5]
    assert content.preparation["separator"] == separator
    assert content.preparation["decimal"] == ("," if comma else ".")
    assert registry.get(f"csv:{path}#y").input_shape == (1,)


DATES = {
    "iso": ("2024-03-{0:02}", 3),
    "slashes": ("2024/03/{0:02}", 3),
    "times": ("2024-03-{0:02} 13:30", 4),
    "zone": ("2024-03-{0:02}T13:30:00+01:00", 4),
    "german": ("{0}.3.2024", 3),
    "british": ("{0}/03/2024", 3),
    "american": ("3/{0}/2024", 3),
}


@pytest.mark.parametrize("name", DATES)
def test_dates_are_days_and_their_parts(tmp_path, name):
    form, width = DATES[name]
    rows = [(form.format(1 + index % 28), f"{index}.5") for index in range(40)]
    path = write(tmp_path / "d.csv", rows, ("day", "y"))
    encoded = read_mixed_csv(path, path.read_bytes(), "y", None).encode(np.arange(40))
    first = datetime.date(2024, 3, 1)
    days = (first - datetime.date(1970, 1, 1)).days
    assert encoded.shape == (40, width)
    assert np.floor(encoded[0, 0]) == days
    assert encoded[0, 1:3].tolist() == [3, first.weekday()]
    if width == 4:
        assert encoded[0, 3] == (12.5 if name == "zone" else 13.5)


def test_rare_texts_share_one_input(tmp_path):
    rows = []
    for index in range(400):
        rows.append((f"id{index}", f"c{index % 50}", f"{index}.5"))

    path = write(tmp_path / "t.csv", rows, ("id", "code", "y"))
    encoded = read_mixed_csv(path, path.read_bytes(), "y", None).encode(np.arange(400))
    assert encoded.shape == (400, 1 + 32)


HEAD = "a,b,y\n"
REFUSED = {
    "nearly numbers": (
        HEAD + "".join(f"{i},1,{i}.5\n" for i in range(30)) + "12 kg,1,0.5\n",
        "row 31 .* a plain number like nearly all others in the column 'a', got '12 kg'",
    ),
    "infinite": (HEAD + "1,x,0.5\n2,y,1.5\n" * 12 + "inf,x,1\n", "row 25 .* 'a', got 'inf'"),
    "no day of the calendar": (
        HEAD + "2024-01-01,x,0.5\n" * 12 + "2024-02-30,x,1.5\n",
        "row 13 .* a date of the calendar in the column 'a', got '2024-02-30'",
    ),
    "day or month": (
        HEAD + "1/2/2024,x,0.5\n" * 12 + "3/4/2024,x,1.5\n",
        "day and month cannot be told apart in the column 'a': write them as 2024-01-31",
    ),
    "gap in the target": (HEAD + "1,x,0.5\n" * 12 + "1,x,\n", "row 13 .* nothing in the column"),
    "NA in the target": (HEAD + "1,x,0.5\n" * 12 + "1,x,NA\n", "row 13 .* nothing in the column"),
    "gaps alone": (HEAD + ",NA,0.5\n,?,1.5\n" * 12, "has nothing but gaps beside the target"),
    "long row": (HEAD + "1,x,0.5\n" * 12 + "1,x,2,3\n", "row 13 .* has 4 entries, .* has 3"),
    "open quote": (HEAD + '1,"x,0.5\n' * 13, "is no CSV"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_learned_from_is_refused_in_one_line(tmp_path, name):
    text, said = REFUSED[name]
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as error:
        registry.get(f"csv:{path}#y")

    assert "\n" not in str(error.value)


SIGNALLING = np.array([0x7FF0000000000001], np.uint64).view(np.float64)[0]
"""A NaN that other programs write; arithmetic with it is a warning of numpy."""


def frame(n=60, **columns):
    values = {
        "age": [None if i % 7 == 3 else i for i in range(n)],
        "weight": np.where(np.arange(n) % 5 == 1, SIGNALLING, np.arange(n) / 3),
        "colour": pa.array(["red", "blue", None] * (n // 3)).dictionary_encode(),
        "day": [datetime.date(2024, 1, 1 + i % 28) for i in range(n)],
        "at": [datetime.datetime(2024, 1, 1, i % 24) for i in range(n)],
        "fit": [i % 2 == 0 for i in range(n)],
        "gap": pa.nulls(n, pa.float64()),
        "y": [i + 0.5 for i in range(n)],
    }
    return pa.table({**values, **columns})


def test_a_parquet_file_is_a_task(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(frame(), path)
    task = registry.get(f"parquet:{path}#y")
    assert task.kind == "regression"
    assert task.protocol().name == f"parquet/{task.protocol().data[:12]}"
    # age and weight with gaps, two colours, day, at with hours, fit
    assert task.input_shape == (2 + 2 + 2 + 3 + 4 + 1,)
    assert np.isfinite(inputs_of(task)).all()
    assert registry.get(f"parquet:{path}#fit").outputs == 2
    assert registry.get(f"parquet:{path}#y:values").name == f"parquet:{path}#y:values"
    with pytest.raises(UsageError, match=r"is a file, .*parquet:.*#TARGET; its columns are age"):
        registry.get(str(path))


def test_structs_of_a_parquet_file_are_columns(tmp_path):
    path = tmp_path / "t.parquet"
    inner = {"side": 1.5, "colour": "red"}
    entries = [{"x": float(row), "y": inner} for row in range(59)]
    parquet.write_table(pa.table({"size": [*entries, None], "y": [0, 1] * 30}), path)
    task = registry.get(f"parquet:{path}#y")
    # Numbers with gaps take two inputs.
    assert task.input_shape == (5,)
    with pytest.raises(
        UsageError, match=r"its columns are size\.x, size\.y\.side, size\.y\.colour"
    ):
        registry.get(str(path))


PARQUET_REFUSED = {
    "no file": (b"PAR1 no", "y", "is no Parquet file"),
    "no column": (frame(), "z", "no column 'z' to predict"),
    "lists": (frame(age=[[1]] * 60), "y", "neither of numbers, texts nor dates: 'age'"),
    "gap": (frame(y=[None, *map(float, range(59))]), "y", "row 1 .* nothing in the column 'y'"),
    "nan": (frame(y=[float("nan"), 1.5] * 30), "y", "row 1 .* nothing in the column 'y'"),
    "huge": (frame(weight=[1e300] * 60), "y", "row 1 .* must have a finite number"),
    "dates to predict": (frame(), "day", "must be numbers, texts or booleans"),
}


@pytest.mark.parametrize("name", PARQUET_REFUSED)
def test_a_parquet_file_that_cannot_be_learned_from_is_refused(tmp_path, name):
    content, target, said = PARQUET_REFUSED[name]
    path = tmp_path / "t.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        parquet.write_table(content, path)

    with pytest.raises(UsageError, match=said) as error:
        registry.get(f"parquet:{path}#{target}")

    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("csv:a.csv#y:classes:balanced", ("a.csv", "y:classes:balanced")),
        ("npz:a.npz:values", ("a.npz", "values")),
        ("npz:a.npz:classes:balanced", ("a.npz", "classes:balanced")),
        ("images:a/b/@32", ("a/b", "@32")),
        ("images:a@x@32x48:skip-bad", ("a@x", "@32x48:skip-bad")),
        ("images:a:balanced", ("a", ":balanced")),
        ("parquet:a.parquet#b#c", ("a.parquet", "b#c")),
    ],
)
def test_names_of_files_have_parts(name, parts):
    assert reference_of(name) == parts


def test_balanced_classes_weigh_the_same(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(600) % 10 == 0
    x = rng.normal(size=(600, 2)) + 1.0 * y[:, None]
    np.savez(tmp_path / "t.npz", x=x, y=y)
    plain = registry.get(f"npz:{tmp_path / 't.npz'}")
    balanced = registry.get(f"npz:{tmp_path / 't.npz'}:balanced")
    assert balanced.protocol().class_weights == "balanced"
    assert plain.protocol().class_weights == "none"
    assert plain.protocol().name == balanced.protocol().name
    assert balanced.label == "t-balanced"
    losses = [train(TINY_MLP, task, task.protocol()) for task in (plain, balanced)]
    # The evaluation loss is without weights, which the plain training lowers further.
    assert losses[0].metrics["valid_loss"] < losses[1].metrics["valid_loss"]
    with pytest.raises(UsageError, match="classes alone can be :balanced"):
        np.savez(tmp_path / "v.npz", x=x, y=x[:, 0])
        registry.get(f"npz:{tmp_path / 'v.npz'}:balanced")

    with pytest.raises(UsageError, match=":skip-bad is for images"):
        registry.get(f"npz:{tmp_path / 't.npz'}:skip-bad")


CELLS = st.one_of(
    st.integers(-5, 5).map(str),
    st.floats().map(str),
    st.text(max_size=4),
    st.sampled_from(["", "NA", "1,5", "1.234,5", "2024-01-31", "31.12.2024", "red", "?"]),
)


def check_rows(content):
    encoded = content.encode(np.arange(len(content.rows.targets))[::2])
    assert np.isfinite(encoded).all()
    assert len(encoded) == len(content.rows.targets) >= 10


@examples(10)
@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=8, max_size=30),
    st.sampled_from([None, "classes", "values"]),
    st.sampled_from([",", ";", "\t"]),
)
def test_any_table_gives_rows_or_a_one_line_error(tmp_path_factory, rows, kind, separator):
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows([["a", "b", "y"], *rows])
    content = text.getvalue().encode("utf-8", "surrogatepass")
    try:
        check_rows(read_mixed_csv(tmp_path_factory.getbasetemp(), content, "y", kind))
    except UsageError as error:
        assert "\n" not in str(error) or any("\n" in cell for row in rows for cell in row)


@examples(10)
@given(st.binary(max_size=40), st.integers(0, 3000))
def test_any_bytes_are_a_parquet_file_or_a_one_line_error(tmp_path_factory, content, cut):
    sink = pa.BufferOutputStream()
    parquet.write_table(frame(), sink)
    good = sink.getvalue().to_pybytes()
    mutated = good[:cut] + content + good[cut + len(content) :]
    try:
        check_rows(read_parquet(tmp_path_factory.getbasetemp(), mutated, "y", None))
    except UsageError as error:
        assert "\n" not in str(error)
