"""Tables: reading, classes of rows of one network, and refused files."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import cache
from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, SettingsError, UnknownNameError, UsageError
from archive.spaces import nasbench201_cells
from archive.spaces.darts.published import PUBLISHED
from archive.spaces.tables import parser, reader
from archive.spaces.tables.classes import Described, Shared
from archive.spaces.tables.reader import Table
from tests.support import data_dir, examples

CELL = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|nor_conv_1x1~2|"
WITH_DEAD_EDGE = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|none~2|"
NOTHING = "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"
OTHER = "|avg_pool_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|"

SMALL = f"""arch_str,accuracy,train_seconds_12ep,note
{WITH_DEAD_EDGE},40,100,a
{CELL},90,300,b
{NOTHING},10,,c
{OTHER},,200,d
{CELL},92,500,e
"""

MATRIX = "0110000010000100000100000"


@pytest.fixture
def write(tmp_path):
    """Writes a table, and returns its path."""

    def to(text: str, name: str = "table.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return to


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_rows_of_one_network_are_one_architecture_with_their_mean(write, name):
    table = Table.load(write(SMALL, name))
    # The first and the third row connect nothing; the third has no dead edge, and represents both.
    assert len(table) == 3
    assert table.architectures == tuple(map(codec.from_nasbench201, (NOTHING, CELL, OTHER)))
    assert table.rows.tolist() == [2, 2, 1]
    np.testing.assert_array_equal(table.column("accuracy"), [25, 91, np.nan])
    # A missing number is left out of the mean.
    np.testing.assert_array_equal(table.cost(), [100, 400, 200])
    assert table.cost_column == "train_seconds_12ep"
    assert table.columns == ("accuracy", "train_seconds_12ep")
    assert table.position(codec.from_nasbench201(WITH_DEAD_EDGE)) == 0
    assert all(
        table.index[each.functional_key] == at for at, each in enumerate(table.architectures)
    )


def test_genotypes_are_rows(write):
    first, second = (PUBLISHED[name] for name in ("DARTS_V2", "BANANAS_2"))
    # Another state of the operation none is another row of the same network.
    same = second.text.replace("('none', 1)", "('none', 2)")
    assert same != second.text
    rows = [
        f'"{text}",{value}'
        for text, value in ((first.text, 97.2), (second.text, 97.3), (same, 97.5))
    ]
    table = Table.load(write("\n".join(["genotype,accuracy", *rows])))
    assert table.space == "darts"
    assert table.rows.tolist() == [1, 2]
    np.testing.assert_allclose(table.column("accuracy"), [97.2, 97.4])
    assert table.position(second.architecture) == 1
    with pytest.raises(
        UsageError,
        match=r"row 1 of .* cannot be read: no genotype of darts: a "
        r"cell has 4 nodes",
    ):
        Table.load(write(f'genotype,a\n"{PUBLISHED["NASNet"].text}",1\n'))


def test_nothing_of_a_table_can_be_changed(write):
    table = Table.load(write(SMALL))
    with pytest.raises(ValueError, match="read-only"):
        table.column("accuracy")[0] = 1

    with pytest.raises(TypeError):
        table.index["a"] = 1


def test_a_table_is_read_once_until_it_changes(write):
    path = write(SMALL)
    table = Table.load(path)
    assert Table.load(str(path)) is table
    assert pickle.loads(pickle.dumps(table)) is table
    write(SMALL + f"{OTHER},50,200,f\n")
    assert Table.load(path).column("accuracy")[2] == 50
    assert Table.load(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest() != table.sha256


def test_cells_as_matrices(write):
    head = "module_hash,n_vertices,adjacency_rowmajor,ops,val_acc_4ep\n"
    one = "input|conv3x3-bn-relu|conv1x1-bn-relu|maxpool3x3|output"
    table = Table.load(write(f"{head}x,5,{MATRIX},{one},0.25\n"))
    (cell,) = table.architectures
    assert cell.space == table.space == "nasbench101"
    matrix = [[int(digit) for digit in MATRIX[at : at + 5]] for at in range(0, 25, 5)]
    assert codec.to_nasbench101(cell) == (matrix, one.split("|"))
    assert table.cost() is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no table: it is empty"),
        (
            "cell,accuracy\nx,1\n",
            "needs the columns arch_str, or net_str, .*, or n_vertices and .*, got cell, accuracy",
        ),
        (f"arch_str,a,a\n{CELL},1,2\n", "two columns 'a'"),
        (f"arch_str;a\n{CELL};1\n", "separated by commas, not by semicolons"),
        (f"arch_str,a\n{CELL},1\n|conv~0|,2\n", "row 2 of .*got '|conv~0|'"),
        (f"arch_str,a\n{CELL}\n", "row 1 of .* it has 1 entries, the head has 2"),
        (
            "n_vertices,adjacency_rowmajor,ops\n3,01,input|output\n",
            "n_vertices² = 9 characters, got 2",
        ),
        (
            "n_vertices,adjacency_rowmajor,ops\n2,0x00,input|output\n",
            "must hold 0 and 1, got '0x00'",
        ),
        (
            "n_vertices,adjacency_rowmajor,ops\ntwo,0100,input|output\n",
            "n_vertices² = 0 characters, got 4",
        ),
    ],
)
def test_a_file_that_is_no_table_says_where(write, text, message):
    with pytest.raises(UsageError, match=message):
        Table.load(write(text))


def test_files_that_cannot_be_read(write, tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the table .*none\.csv: No such file"):
        Table.load(tmp_path / "none.csv")

    with pytest.raises(UsageError, match=r"cannot read the table .*: Is a directory"):
        Table.load(tmp_path)

    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(SMALL.encode())[:40])
    with pytest.raises(UsageError, match=r"cut.csv.gz is no table"):
        Table.load(path)

    path = tmp_path / "latin.csv"
    path.write_bytes(SMALL.encode() + b"\xe9")
    with pytest.raises(
        UsageError,
        match=r"latin.csv is no table: it is no UTF-8 text, save it "
        r"as UTF-8",
    ):
        Table.load(path)


def test_what_a_table_does_not_hold(write):
    table = Table.load(write(SMALL))
    with pytest.raises(UsageError, match=r"'note' of .* holds no numbers: row 1 has 'a'"):
        table.column("note")

    with pytest.raises(UsageError, match=r"'accuracy' of .* holds no numbers: row 6 has '1_000'"):
        Table.load(write(f"{SMALL}{OTHER},1_000,200,f\n")).column("accuracy")

    with pytest.raises(UnknownNameError, match="did you mean accuracy"):
        table.column("acuracy")

    with pytest.raises(InvalidArchitectureError, match="does not hold the architecture"):
        table.position(codec.from_nasbench201(CELL.replace("skip_connect", "avg_pool_3x3")))

    with pytest.raises(
        InvalidArchitectureError, match="of space nasbench201, got one of nasbench101"
    ):
        table.position(codec.from_nasbench101([[0, 1], [0, 0]], ["input", "output"]))


def test_named_tables_need_their_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)
    with pytest.raises(
        SettingsError, match=r"set ARCHIVE_DATA_DIR .*github.com/D-X-Y/NAS-Bench-201"
    ):
        Table.named("nb201")

    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    with pytest.raises(SettingsError, match="nb101 is not found in"):
        Table.named("nb101")

    with pytest.raises(UnknownNameError, match="did you mean nb201"):
        Table.named("nb21")

    (tmp_path / "nb201.csv").write_text(SMALL)
    assert len(Table.open("nb201")) == 3


@pytest.mark.whole
def test_the_classes_of_nasbench201(official):
    """The counts and the means, computed the slow way from the file."""
    table = Table.named("nb201")
    with gzip.open(data_dir() / "data" / "nb201.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))

    cells = [codec.from_nasbench201(row["arch_str"]) for row in rows]
    assert len(cells) == table.rows.sum() == 15_625
    assert len({cell.key for cell in cells}) == 14_125
    classes = defaultdict(list)
    labelled = defaultdict(list)
    for at, cell in enumerate(cells):
        classes[cell.functional_key].append(at)
        labelled[cell.key].append(at)

    assert list(classes) == list(table.index)
    assert len(table) == 8_765
    for name in (column for column in table.columns if column.startswith("cifar")):
        values = np.array([float(row[name]) for row in rows])
        expected = [values[members].mean() for members in classes.values()]
        np.testing.assert_allclose(table.column(name), expected, rtol=1e-12)
        best = int(values.argmax())
        assert classes[cells[best].functional_key] == labelled[cells[best].key] == [best]
        assert table.column(name).max() == values[best]

    assert all(each.key == each.functional_key for each in table.architectures)


@pytest.mark.whole
def test_the_sample_of_nasbench101(official):
    table = Table.named("nb101")
    assert len(table) == table.rows.sum() == 20_001
    assert table.cost_column == "train_time_108ep_s"
    assert 0.949 < table.column("val_acc_108ep").max() < 0.95


def cells_of(count: int) -> list[str]:
    operations = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
    chosen = np.random.default_rng(0).choice(operations, (count, 6))
    return ["|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|".format(*each) for each in chosen]


def many(write, *, extra: float = 0.0):
    lines = [
        f"{cell},{at / 7 + extra},{'' if at % 3 else at},word"
        for at, cell in enumerate(cells_of(cache.WORTH + 20))
    ]
    return write("\n".join(["arch_str,accuracy,train_seconds_12ep,note", *lines]))


def content(table: Table) -> tuple[object, ...]:
    """The whole content of a table."""
    keys = [(each.key, each.functional_key) for each in table.architectures]
    columns = [table.column(name).tobytes() for name in table.columns]
    return (
        *(table.space, table.origin, table.sha256, table.architectures, keys, dict(table.index)),
        *(table.rows.tobytes(), table.columns, columns),
    )


def forget() -> None:
    """Begin like a new process."""
    reader._load.cache_clear()


def test_a_second_process_reads_what_the_first_one_parsed(write, monkeypatch):
    path = many(write)
    first = Table.load(path)
    forget()
    monkeypatch.setattr(reader, "parse", None)
    second = Table.load(path)
    assert second is not first and content(second) == content(first)
    # The architectures equal those that are parsed from the text of the file.
    for one, other in zip(
        second.architectures[:50], map(fresh, second.architectures), strict=False
    ):
        assert one == other and (one.key, one.functional_key) == (other.key, other.functional_key)

    with pytest.raises(UsageError, match="note"):
        second.column("note")

    with pytest.raises(ValueError, match="read-only"):
        second.column("accuracy")[0] = 1.0


def fresh(architecture: Architecture) -> Architecture:
    return Architecture(architecture.space, architecture.layers, architecture.edges)


def test_a_changed_table_is_parsed_again(write):
    path = many(write)
    before = path.stat()
    first = Table.load(path)
    forget()
    # Of the same size and time: only the content tells them apart.
    text = path.read_text().replace(",1.0,", ",3.0,", 1)
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = Table.load(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert second.sha256 != first.sha256
    assert not np.array_equal(second.column("accuracy"), first.column("accuracy"))


def test_a_damaged_file_of_the_cache_is_written_again(write):
    path = many(write)
    first = Table.load(path)
    forget()
    (kept,) = (Path(os.environ["ARCHIVE_HOME"]) / "cache" / "tables").iterdir()
    good = kept.read_bytes()
    kept.write_bytes(good[: len(good) // 2])
    assert content(Table.load(path)) == content(first)
    assert kept.read_bytes() == good


def test_small_tables_are_not_kept(write):
    Table.load(write(SMALL))
    assert not (Path(os.environ["ARCHIVE_HOME"]) / "cache").exists()


def test_no_file_of_the_cache_stands_for_a_table_that_is_gone(write):
    path = many(write)
    Table.load(path)
    path.unlink()
    forget()
    with pytest.raises(UsageError, match="cannot read the table"):
        Table.load(path)


@examples(0.5)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(500, 900),
    repeated=st.booleans(),
    unusual=st.sampled_from((0, 7)),
)
def test_looking_cells_up_and_reading_them_give_one_table(seed, rows, repeated, unusual):
    rng = np.random.default_rng(seed)
    known = nasbench201_cells.strings()
    # Strings with near numbers often describe one network, up to dead edges or relabelling.
    begin = rng.integers(len(known) - 1000)
    chosen = [known[at] for at in begin + rng.choice(1000, rows, replace=repeated)]
    texts = [
        f" {text}" if unusual and at % unusual == 0 else text for at, text in enumerate(chosen)
    ]
    values = [str(value) if value > 0.1 else "" for value in rng.random(rows)]
    lines = [
        "arch_str,accuracy",
        *(f"{text},{value}" for text, value in zip(texts, values, strict=True)),
    ]
    content = "\n".join(lines).encode()
    looked_up = parser.parse(Path("table.csv"), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "FORMS", [form._replace(known=dict) for form in parser.FORMS])
        read = parser.parse(Path("table.csv"), content)

    assert looked_up.keys() == read.keys()
    for name in read:
        assert looked_up[name].dtype == read[name].dtype
        assert looked_up[name].tobytes() == read[name].tobytes(), name


def test_described_networks_share_their_parts():
    cells = [codec.from_nasbench201(text) for text in (CELL, OTHER)]
    shared = Shared({}, {})
    built = [Described.of(cell, shared).build() for cell in cells]
    for cell, one in zip(cells, built, strict=True):
        assert one == cell and (one.key, one.functional_key) == (cell.key, cell.functional_key)
        assert one is not cell
        # Further caches of a network take several times the memory of its parts.
        assert one.__dict__.keys() == {"space", "layers", "edges", "key", "functional_key"}

    first, second = ({id(part) for part in (*one.layers, *one.edges)} for one in built)
    assert first & second
    distinct = {*built[0].layers, *built[1].layers, *built[0].edges, *built[1].edges}
    assert len(first | second) == len(distinct)
