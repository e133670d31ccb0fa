"""`archive dump`, `load`, `import` and `query`, typed as a user types them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import threading

import optuna
import pytest

from archive import spaces
from archive.architecture import codec
from archive.cli.main import main
from archive.queries import catalogue
from archive.settings import environment
from archive.trainer.tasks import registry
from tests.conftest import wipe
from tests.support.dumped import fill
from tests.support.stores import cells

VERSION = {"schema_version": 1}


@pytest.fixture
def types(archive, store_settings, monkeypatch, capsys, tmp_path):
    """Types a command; returns its exit code, stdout and stderr."""
    for name, value in environment(store_settings).items():
        monkeypatch.setenv(name, value)

    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))

        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return command


def test_an_archive_goes_into_a_file_and_comes_back(archive, connection, types):
    fill(archive)
    code, out, err = types("dump", "mine.gz", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["records"]["proposal"] == 6
    wipe(connection)
    code, out, _ = types("load", "mine.gz", "--check")
    assert code == 0
    assert archive.studies.names() == []
    code, out, _ = types("load", "mine.gz", "--rename", "one=other", "--json")
    assert (code, json.loads(out)["stored"]["proposal"]) == (0, 6)
    assert archive.studies.names() == ["one-source", "other"]
    code, out, _ = types("load", "mine.gz", "--rename", "one=other")
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("proposal")] == ["0"]
    code, out, _ = types("dump", "one.gz", "--study", "other", "--without-distances")
    assert code == 0
    assert "distances" not in out


def test_results_are_published_and_loaded_by_their_digest(archive, connection, types):
    fill(archive)
    code, out, _ = types("publish", "mine.gz", "--study", "one", "--license", "CC0-1.0", "--json")
    document = json.loads(out)
    assert (code, "worker" in document["records"]) == (0, False)
    wipe(connection)
    code, _, err = types("load", "mine.gz", "--sha256", "0" * 64)
    assert (code, archive.studies.names()) == (2, [])
    assert "mine.gz has the SHA-256" in err
    code, out, _ = types("load", "mine.gz", "--sha256", document["sha256"], "--json")
    assert (code, json.loads(out)["file_sha256"]) == (0, document["sha256"])
    assert archive.studies.names() == ["one"]


@pytest.mark.parametrize("address", [f"https://h/mine.gz?{'s' * 300}", "https://h/.."])
def test_an_address_is_no_name_of_a_file(types, archive, monkeypatch, tmp_path, address):
    fill(archive)
    _, out, _ = types("dump", "mine.gz", "--json")
    monkeypatch.setattr(
        "archive.cli.exchange.dump.download",
        lambda _, path: path.write_bytes((tmp_path / "mine.gz").read_bytes()) and "ab",
    )
    code, out, _ = types("load", address, "--check", "--json")
    assert (code, json.loads(out)["file"], json.loads(out)["file_sha256"]) == (0, address, "ab")


def test_an_archive_goes_through_a_pipe(archive, connection, types, monkeypatch):
    class Stream(io.TextIOWrapper):
        def __init__(self, content=b""):
            super().__init__(io.BytesIO(content))

    fill(archive)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", out := Stream())
        code, _, err = types("dump", "--study", "one")
        assert (code, err.startswith("dump: ")) == (0, True)
        content = out.buffer.getvalue()

    wipe(connection)
    monkeypatch.setattr(sys, "stdin", Stream(content[:-9]))
    code, _, err = types("load")
    assert (code, archive.studies.names()) == (2, [])
    assert "stdin: it is cut off" in err
    monkeypatch.setattr(sys, "stdin", Stream(content))
    code, out, _ = types("load", "--json")
    document = json.loads(out)
    assert (code, document["file"], document["stored"]["proposal"]) == (0, "-", 6)
    monkeypatch.setattr(sys, "stdin", Stream())
    assert "no dump on stdin" in types("load")[2]
    assert "name a FILE, or pipe it" in types("dump", "--json")[2]


@pytest.mark.parametrize("cut", [False, True])
def test_a_dump_comes_through_a_named_pipe(archive, connection, types, tmp_path, cut):
    fill(archive)
    types("dump", "mine.gz")
    wipe(connection)
    os.mkfifo(tmp_path / "pipe")
    content = (tmp_path / "mine.gz").read_bytes()
    writer = threading.Thread(
        target=(tmp_path / "pipe").write_bytes,
        args=(content[:-9] if cut else content,),
        daemon=True,
    )
    writer.start()
    code, out, err = types("load", "pipe", "--json")
    writer.join(30)
    if cut:
        assert (code, archive.studies.names()) == (2, [])
        assert "pipe: it is cut off" in err
    else:
        assert (code, json.loads(out)["file"], json.loads(out)["stored"]["proposal"]) == (
            0,
            "pipe",
            6,
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dump", "there.gz"), "there.gz exists"),
        (("dump", "new.gz", "--study", "nine"), "unknown study 'nine'"),
        (("load", "none.gz"), "cannot read none.gz"),
        (("load", "http://example.org/a.gz"), "loaded over https"),
        (("publish", "new.gz", "--imported", "--study", "a"), "leave --study out"),
        (("load", "there.gz"), "no valid gzip file"),
        (("load", "there.gz", "--rename", "a"), "OLD=NEW, got 'a'"),
        (("load", "there.gz", "--check", "--rename", "a=-b"), "a new study needs a name"),
        (("query", "RETURN 1", "--named", "cost"), "or a query in CYPHER"),
        (("query",), "or a query in CYPHER"),
        (("query", "--named", "cots"), "did you mean cost"),
        (("query", "--named", "lineage"), "needs the parameter 'study'"),
        (
            ("query", "--named", "frontier", "-p", "task=digit"),
            "unknown task 'digit': the archive has results of none",
        ),
        (("query", "--named", "cost", "--write"), "saved queries only read"),
        (("query", "RETURN 1", "--csv", "--json"), "exclude each other"),
        (("query", "RETURN 1", "--show"), "archive query show NAME"),
        (("query", "RETURN $n", "--param", f"n={2**63}"), "'n' has a number of 64 bits"),
        (("query", "RETURN $n", "--param", f"n={'9' * 5000}"), "a parameter cannot be read"),
        (("import", "table", "digits"), "only a tabular task can be imported"),
        (("import", "nasbench101", "there.gz"), "no TFRecord"),
        (("import", "optuna", "there.gz", "--task", "t", "--space", "nasbench201"), "URL#STUDY"),
        (("import", "optuna", "a#b", "--task", "t", "--space", "cells"), "unknown space 'cells'"),
        (
            (
                "import",
                "optuna",
                "a#b",
                "--task",
                "t",
                "--space",
                "mlp",
                "--architecture",
                "nowhere:read",
            ),
            "nowhere:read cannot be loaded",
        ),
    ],
)
def test_mistakes_are_one_line(types, tmp_path, arguments, message):
    (tmp_path / "there.gz").write_bytes(b"something else")
    code, out, err = types(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_queries_as_csv_and_in_pages(archive, types):
    fill(archive)
    asked = (
        "query",
        "MATCH (p:Proposal) RETURN p.number AS number, p.state AS state, [1, 2] AS "
        "list ORDER BY number",
    )
    code, out, err = types(*asked, "--csv", "--limit", "4")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["number"] for row in rows] == ["0", "1", "2", "3"]
    assert rows[0]["list"] == "[1, 2]"
    assert "cut off after 4 rows" in err
    assert "--skip 4" in err
    code, out, err = types(*asked, "--csv", "--limit", "4", "--skip", "4")
    assert ([row["number"] for row in csv.DictReader(io.StringIO(out))], err) == (["4", "5"], "")
    code, out, _ = types("query", "--named", "cost", "-p", "task=digits", "--json")
    assert code == 0
    assert json.loads(out)["rows"][0]["evaluations"] == 3
    assert types("query", "--named", "calibration")[0] == 0


def test_an_answer_without_rows_says_so_and_has_its_columns(archive, types):
    fill(archive)
    nobody = ("query", "MATCH (n:Nobody) RETURN n.a AS a, n.b")
    assert types(*nobody) == (0, "", "no rows\n")
    assert types(*nobody, "--csv") == (0, "a,n.b\n", "no rows\n")
    assert types("query", "MATCH (n:Nobody) RETURN *", "--csv")[2] == "no rows\n"
    code, out, err = types(*nobody, "--json")
    assert (code, json.loads(out), err) == (
        0,
        {**VERSION, "columns": ["a", "n.b"], "rows": [], "truncated": False},
        "",
    )
    frontier = ("query", "--named", "frontier", "-p", "task=digits", "-p", "cost=latency[ms]")
    why = (
        "no rows: none of the 3 results has latency[ms]; they have accuracy, epochs, mass, "
        "seconds\n"
    )
    assert types(*frontier, "--csv") == (0, "protocol,objective,architecture,value,cost\n", why)
    assert types(*frontier) == (0, "", why)
    code, out, err = types(*frontier, "--json")
    assert (json.loads(out)["rows"], err) == ([], why)
    assert types(*frontier[:-2], "-p", "cost=mass", "--skip", "9") == (0, "", "no rows\n")


def test_the_list_of_saved_queries_opens_no_archive(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("ARCHIVE_HOME", str(tmp_path / "none"))
    for arguments in (
        ["query", "--list"],
        ["query", "--list", "--json"],
        ["query", "--named", "cost", "--show"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)

        assert ended.value.code == 0
        said = capsys.readouterr().out
        assert "cost" in said or said == catalogue.get("cost").cypher

    with pytest.raises(SystemExit):
        main(["query", "--named", "cost", "--show", "--json"])

    assert json.loads(capsys.readouterr().out) == {
        **VERSION,
        "name": "cost",
        "cypher": catalogue.get("cost").cypher,
    }
    assert not (tmp_path / "none").exists()


def test_a_table_is_imported_for_every_search_to_know(archive, types, tmp_path):
    members = spaces.get("nasbench201").members()[:6]
    lines = [
        f"{codec.to_nasbench201(cell)},{80 + at},{0.25 * at},7.5" for at, cell in enumerate(members)
    ]
    lines[5] = lines[5].replace(",85,", ",,")
    (tmp_path / "cells.csv").write_text(
        "\n".join(["arch_str,accuracy,params_millions,latency", *lines])
    )
    for _ in range(2):
        code, out, _ = types("import", "table", "table:cells.csv#accuracy", "--json")
        assert (code, json.loads(out)["evaluations"]) == (0, 5)

    found = archive.studies.evaluations()
    assert sorted(each.value for each in found) == [80, 81, 82, 83, 84]
    assert {each.metrics["latency"] for each in found} == {7.5}
    frontier = archive.named("frontier", task=found[0].task)
    assert [row[3:] for row in frontier.rows] == [(80 + at, 250_000 * at) for at in range(5)]
    # What a search would find is what was imported.
    task = registry.get("table:cells.csv#accuracy")
    for each in found:
        assert (each.task, each.protocol) == (task.name, task.protocol().name)
        assert task.answer(each.architecture).value == each.value


def test_a_study_of_optuna_is_imported(archive, types, tmp_path, monkeypatch):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/their.db", study_name="theirs")
    trial = study.ask()
    for edge in ("0-1", "0-2", "1-2", "0-3", "1-3", "2-3"):
        trial.suggest_categorical(f"edge {edge}", ["skip_connect", "nor_conv_3x3"])

    study.tell(trial, 0.5)
    reference = f"sqlite:///{tmp_path}/their.db#theirs"
    code, out, err = types(
        "import", "optuna", reference, "--task", "mine", "--space", "nasbench201", "--json"
    )
    assert (code, err) == (0, "")
    counts = {"evaluated": 1, "pruned": 0, "failed": 0, "left_out": 0}
    assert json.loads(out) == {
        **VERSION,
        "study": "theirs",
        "task": "mine",
        "protocol": "mine/own",
        "space": "nasbench201",
        **counts,
    }
    (tmp_path / "theirs_reader.py").write_text(
        f"def read(parameters): return {codec.to_json(cells(1)[0])!r}\n"
    )
    # The module is found in the current folder.
    monkeypatch.setattr(sys, "path", [*sys.path])
    arguments = (
        "--task",
        "mine",
        "--space",
        "nasbench201",
        "--study",
        "again",
        "--architecture",
        "theirs_reader:read",
    )
    assert types("import", "optuna", reference, *arguments, "--objective", "loss", "--json")[0] == 0
    assert archive.studies.get("again").objective == "loss"
    # Later imports take the names of the first one.
    assert types("import", "optuna", reference, *arguments)[0] == 0
    assert archive.studies.evaluations("again")[0].architecture.key == cells(1)[0].key
    sys.modules.pop("theirs_reader")

    # Without a space, the parameters are the space; a recipe of the task trains it.
    code, out, err = types(
        "import", "optuna", reference, "--study", "named", "--task", "digits", "--recipe", "own"
    )
    assert code == 0
    assert "names of parameters: 'edge 0-1' is edge_0_1" in err
    named = archive.studies.get("named")
    assert (named.space, named.protocol) == ("parameters", "digits/small+recipe:own")
    assert named.objective == "valid_accuracy"
    (view,) = archive.studies.snapshot("named").proposals
    assert next(iter(view.configuration)) == "edge_0_1"
    code, _, err = types("import", "optuna", reference, "--architecture", "theirs_reader:read")
    assert code == 2
    assert "name it with --space" in err


def test_a_dump_is_plain_lines_for_other_programs(archive, types, tmp_path):
    fill(archive)
    types("dump", "mine.gz")
    with gzip.open(tmp_path / "mine.gz", "rt", encoding="utf-8") as file:
        kinds = [json.loads(line).get("record") for line in file]

    assert kinds[0] is kinds[-1] is None
    assert {"study", "architecture", "proposal", "evaluation"} < set(kinds)


def test_a_minimised_column_of_a_table_is_imported_as_such(archive, types, tmp_path):
    rows = [f"{codec.to_nasbench201(cell)},{at + 1}" for at, cell in enumerate(cells(3))]
    (tmp_path / "x.csv").write_text("\n".join(["arch_str,latency", *rows]))
    assert types("import", "table", "table:x.csv#-latency")[0] == 0
    found = archive.studies.evaluations()
    assert sorted(each.score for each in found) == [-3.0, -2.0, -1.0]
    assert {each.direction for each in found} == {"minimise"}


def test_networks_without_a_value_are_counted_at_the_import_of_a_table(types, tmp_path):
    texts = [codec.to_nasbench201(cell) for cell in cells(6)]
    values = [
        (0, "1"),
        (1, ""),
        (2, "nan"),
        (3, "inf"),
        (4, "1e308"),
        (4, "1e308"),
        (5, "2"),
        (5, ""),
    ]
    (tmp_path / "x.csv").write_text(
        "\n".join(["arch_str,latency", *(f"{texts[at]},{value}" for at, value in values)])
    )
    code, out, said = types("import", "table", "table:x.csv#latency", "--json")
    assert (code, json.loads(out)["evaluations"]) == (0, 2)
    assert said == "4 of 6 networks are left out: their latency is missing, or no finite number\n"
    (tmp_path / "x.csv").write_text("\n".join(["arch_str,latency", f"{texts[0]},1"]))
    assert types("import", "table", "table:x.csv#latency")[2] == ""
