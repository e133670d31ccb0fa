"""Files that the database names: which of them are opened, and errors that quote nothing of
them."""

from __future__ import annotations

import hashlib
import io
import os
import re
import traceback

import numpy as np
import pytest

from archive.errors import ArchiveError, SettingsError
from archive.store.records import State, Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.tasks import file_access, registry, user_files
from archive.trainer.tasks.file_access import FileAccess
from archive.trainer.trial import failures
from tests.support.networks.nets import TINY_MLP
from tests.support.stores import Suggestion

SECRET = "S3cr3t-passw0rd"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def no_reference_data(monkeypatch):
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)


def csv_file(path, seed=0):
    rows = np.random.default_rng(seed).normal(size=(60, 3)).round(4)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["a,b,y", *(",".join(map(str, row)) for row in rows)]))
    return path


def protocol_of(path, form="csv"):
    return f"{form}/{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def study_of(path, protocol=None, form="csv", column="#y"):
    return Study("s", f"{form}:{path}{column}", protocol or protocol_of(path, form), "mlp")


def refusal(study, allowed):
    with pytest.raises(SettingsError) as caught:
        registry.of_study(study, allowed)

    return str(caught.value)


def test_foreign_paths_are_refused_alike_whether_they_exist_or_not(tmp_path, home):
    inside = tmp_path / "data"
    secret = tmp_path / "secrets" / "password"
    csv_file(inside / "mine.csv")
    secret.parent.mkdir()
    secret.write_text(SECRET)
    (inside / "link.csv").symlink_to(secret)
    (inside / "loop.csv").symlink_to(inside / "loop.csv")
    allowed = FileAccess.of(home, [inside])
    said = set()
    for path in (
        *(secret, secret.with_name("none"), secret.parent, tmp_path / "no" / "folder"),
        *(
            inside / "link.csv",
            inside / ".." / "secrets" / "password",
            f"{inside}-beside",
            "mine.csv",
            "~root/x",
            "~no/x",
        ),
    ):
        for form, column in (("csv", "#y"), ("table", "#y"), ("npz", "")):
            message = refusal(
                study_of(path, f"{form}/{protocol_of(secret)[4:]}", form, column), allowed
            )
            said.add(message.replace(str(path), "PATH"))

    assert len(said) == 1
    assert "PATH may not be read here" in (only := said.pop())
    assert "--data-folder" in only
    assert SECRET not in only


def test_a_file_below_a_data_folder_is_opened_if_it_is_the_one_of_the_protocol(
    tmp_path, home, monkeypatch
):
    path = csv_file(tmp_path / "data" / "deep" / "mine.csv")
    (tmp_path / "linked").symlink_to(tmp_path / "data")
    for folder in (tmp_path / "data", tmp_path / "linked", tmp_path / "data" / "deep" / ".."):
        assert registry.of_study(
            study_of(path), FileAccess.of(home, [folder])
        ).protocol().name == protocol_of(path)

    study = study_of(path, f"{protocol_of(path)}+morph")
    assert (
        registry.of_study(study, FileAccess.of(home, [tmp_path]))
        .protocol(study.protocol)
        .inherited_epochs
    )
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path / "data"))
    assert registry.of_study(study_of(path), FileAccess.of(home)).name == f"csv:{path}#y"

    # Nothing of another file is parsed.
    monkeypatch.setattr(user_files, "parse", lambda _: pytest.fail("parsed"))
    other = study_of(path, "csv/000000000000")
    assert "is not the one that the study was created with" in refusal(other, FileAccess.of(home))
    assert protocol_of(path)[4:] not in refusal(other, FileAccess.of(home))
    assert "may not be read here" in refusal(study_of(path, "digits/1"), FileAccess.of(home))


def test_special_files_are_refused_without_waiting(tmp_path, home):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "no regular file" in refusal(
        study_of(tmp_path / "pipe.csv", "csv/000000000000"), FileAccess.of(home, [tmp_path])
    )


def test_a_file_that_the_user_named_is_opened_with_that_content_alone(tmp_path, home):
    path = csv_file(tmp_path / "mine.csv")
    study = study_of(path)
    assert "may not be read here" in refusal(study, FileAccess.of(home))
    registry.name_file(registry.get(study.task), home)
    registry.name_file(registry.get(study.task), home)
    record = home / file_access.RECORD
    assert (record.stat().st_mode & 0o777, len(record.read_text().splitlines())) == (0o600, 1)
    assert registry.of_study(study, FileAccess.of(home)).name == study.task
    # Who does not know its content learns nothing from the record.
    assert "may not be read here" in refusal(
        study_of(path, "csv/000000000000"), FileAccess.of(home)
    )
    csv_file(path, seed=1)
    assert "is not the one that the study was created with" in refusal(study, FileAccess.of(home))
    registry.name_file(registry.get(study.task), home)
    assert registry.of_study(study_of(path), FileAccess.of(home)).name == study.task
    assert registry.name_file(registry.get("digits"), home) is None
    # A kill cut the last line off.
    record.write_bytes(record.read_bytes()[:-20])
    registry.name_file(registry.get(study.task), home)
    assert registry.of_study(study_of(path), FileAccess.of(home)).name == study.task


def test_record_writable_by_others_is_ignored(tmp_path, home):
    path = csv_file(tmp_path / "mine.csv")
    registry.name_file(registry.get(f"csv:{path}#y"), home)
    with (home / file_access.RECORD).open("a") as record:
        record.write('{"sha256": "cut of')

    assert registry.of_study(study_of(path), FileAccess.of(home)).name
    (home / file_access.RECORD).chmod(0o620)
    assert "may not be read here" in refusal(study_of(path), FileAccess.of(home))


def arrays(**given):
    buffer = io.BytesIO()
    np.savez(buffer, **given)
    return buffer.getvalue()


CELL = "|nor_conv_3x3~0|+|nor_conv_3x3~0|none~1|+|nor_conv_3x3~0|none~1|none~2|"
UNUSABLE = {
    "a password": ("csv", f"{SECRET}\n", ""),
    "header": ("csv", f"{SECRET},{SECRET}2\n1,2\n", ""),
    "two inputs": ("csv", f"{SECRET},{SECRET},y\n1,2,3\n", "two columns of one name"),
    "two targets": ("csv", f"{SECRET},y,y\n1,2,3\n", ""),
    "cell": ("csv", "a,b,y\n" + "1,2,3.5\n" * 12 + f"1e99,2,{SECRET}\n", "column 1$"),
    "column name": (
        "csv",
        f"a,{SECRET},y\n" + "1,2,3.5\n" * 12 + "1,1e99,3\n",
        "row 13 .* column 2$",
    ),
    "target": ("csv", "a,b,y:values\n".replace(":values", "") + f"1,2,{SECRET}\n" * 12, ""),
    "constant": ("csv", "a,b,y\n" + "1,2,48151623.5\n" * 12, "the same in every row"),
    "quotes": ("csv", f'a,b,y\n"{SECRET}', ""),
    "bytes": ("csv", b"S3cr3t\xff\xfe", "no UTF-8"),
    "short": ("csv", f"a,b,y\n{SECRET}\n", "row 1 .* 1 entries, the header has 3"),
    "no zip": ("npz", SECRET, ""),
    "names": ("npz", arrays(**{SECRET: np.zeros(3)}), ""),
    "header of npy": ("npz", b"\x93NUMPY\x01\x00\x20\x00{'S3cr3t-passw0rd': 3, 'descr': }", ""),
    "fields": ("npz", arrays(x=np.zeros((20, 2)), y=np.zeros(20, dtype=[(SECRET, "f4")])), ""),
    "no cells": ("table", f"{SECRET},b\n1,2\n", "describes no cells"),
    "no number": ("table", f"arch_str,y\n{CELL},{SECRET}\n", "holds no numbers"),
    "no such column": ("table", f"arch_str,{SECRET}\n{CELL},1\n", "unknown column"),
    "no cell": ("table", f"arch_str,y\n{SECRET},1\n", "row 1 .* describes no cell"),
    "twice": ("table", f"arch_str,{SECRET},{SECRET}\n{CELL},1,2\n", "two columns"),
    "no text": ("table", b"S3cr3t\xff", "is no table"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_reasons_quote_nothing_of_a_file(tmp_path, home, name):
    form, content, said = UNUSABLE[name]
    path = tmp_path / "t.dat"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    study = study_of(
        path, None, form, "" if form == "npz" else "#y" if name != "target" else "#y:values"
    )
    with pytest.raises(ArchiveError) as caught:
        registry.of_study(study, FileAccess.of(home, [tmp_path]))

    # The end of a trial's log goes on record, too, tracebacks and all.
    told = "".join(traceback.format_exception(caught.value))
    for text in (str(caught.value), failures.failure_of(caught.value).reason, told):
        assert not re.search("S3cr3t|48151623|5333|0xff", text)

    assert re.search(said, str(caught.value))
    # Taken as the user's own word, it may be quoted on the terminal, and still not on record.
    with pytest.raises(ArchiveError) as direct:
        registry.get(study.task)

    if name != "no such column":
        assert not re.search("S3cr3t|48151623|0xff", failures.failure_of(direct.value).reason)


def test_a_trial_quotes_nothing_of_its_file(tmp_path, monkeypatch):
    path = csv_file(tmp_path / "t.csv")
    task = registry.get(f"csv:{path}#y")

    def read(*_):
        raise ValueError(f"could not convert string to float: '{SECRET}'")

    monkeypatch.setattr(user_files, "_content", read)
    with pytest.raises(ArchiveError, match=r"t\.csv cannot be used: ValueError") as caught:
        task.load()

    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_proposal_cannot_read_a_file_of_the_trainers_user(archive, tmp_path):
    secret = tmp_path / "password"
    secret.write_text(SECRET)
    # Even one that knows the content gets no word of it.
    for at, (task, protocol) in enumerate(
        [
            (f"csv:{secret}#x", "csv/000000000000"),
            (f"table:{secret}#x", protocol_of(secret, "table")),
            (f"npz:{tmp_path / 'none'}", "npz/000000000000"),
        ]
    ):
        archive.studies.create(Study(f"study{at}", task, protocol, "mlp", budget=5))
        agent = archive.proposals.register_agent("random", {}, "1")
        archive.proposals.create(f"study{at}", agent, [Suggestion(TINY_MLP)])

    for at in range(3):
        options = TrainerOptions(device="cpu", threads=1, once=True, study=f"study{at}")
        Trainer(archive, options, home=tmp_path / "trainer").run()
        (proposal,) = archive.proposals.list(f"study{at}")
        assert proposal.state is not State.COMPLETE
        assert "may not be read here" in proposal.reason
        assert SECRET not in proposal.reason


def test_a_proposal_is_trained_on_a_file_that_its_trainer_may_read(archive, tmp_path):
    path = csv_file(tmp_path / "data" / "mine.csv")
    task = registry.get(f"csv:{path}#y")
    archive.studies.create(
        Study("own", task.name, task.protocol().name, "mlp", task.objective, task.direction, 5)
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("own", agent, [Suggestion(TINY_MLP)])
    options = TrainerOptions(device="cpu", threads=1, once=True, data_folders=(path.parent,))
    assert Trainer(archive, options, home=tmp_path / "trainer").run().complete == 1
