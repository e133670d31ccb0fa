"""File format of a dump: atomic, reproducible, and one clear line for any fault."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import re
import resource
import secrets
import stat
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import files
from archive.architecture import codec
from archive.errors import ArchiveError, UsageError
from archive.exchange import file_format
from archive.exchange.file_format import DumpReader, DumpWriter, contents
from archive.exchange.load import verify
from archive.exchange.merge import merge_records
from archive.store.studies.creation import agent_id
from tests.support import examples
from tests.support.dumped import forged, records
from tests.support.stores import cells

KEY, OTHER = (cell.key for cell in cells(2))
EVALUATION = {
    "id": "one#00000", "task": "digits", "protocol": "digits/1", "architecture": KEY,
    "properties": {"value": 0.5, "created": 5, "metric_loss": math.nan, "curve_loss": [1.0, math.inf]},
    "weights": None,
}  # fmt: skip
LINES = [
    ("agent", {"kind": "random", "version": "1", "config": "{}", "created": 3}),
    ("worker", {"id": "w", "properties": {"heartbeat": 9}}),
    (
        "study",
        {
            "name": "one", "task": "digits", "protocol": "digits/1", "space": "nasbench201", "space_config": "{}",
            "properties": {"objective": "accuracy", "direction": "maximise", "budget": 5, "created": 1, "seed": 0},
        },
    ),
    *(("architecture", {"key": c.key, "architecture": codec.to_dict(c), "properties": {}}) for c in cells(2)),
    ("evaluation", EVALUATION),
    (
        "proposal",
        {
            "study": "one", "number": 0, "architecture": KEY, "agent": agent_id("random", "{}", "1"),
            "properties": {"state": "COMPLETE", "attempts": 0, "created": 2, "based_on": '{"wanted": 1}'},
            "result": "one#00000", "claims": [["w", 4, {"outcome": "lost"}]],
        },
    ),
    ("distances", {"of": min(KEY, OTHER), "to": {max(KEY, OTHER): {"otmann": [1.0, 2.0], "edit": 3.0}}}),
    (
        "proxies",
        {
            "of": KEY, "task": "digits", "protocol": "digits/1", "source": "archive/1",
            "properties": {"created": 5, "proxy_synflow": 1.5, "undefined": ["naswot"]},
        },
    ),
]  # fmt: skip


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "dump.jsonl.gz"
    with DumpWriter(file, 1, ["one"]) as writer:
        for kind, record in LINES:
            writer.write(kind, record)

    return file


def test_what_is_read_is_what_was_written(path):
    found = [(kind, record) for _, kind, record in DumpReader(path)]
    for (kind, record), (wanted, written) in zip(found, LINES, strict=True):
        assert (kind, file_format.text_of(record)) == (wanted, file_format.text_of(written))

    whole = verify(path)
    assert (whole.header.studies, whole.counts["architecture"]) == (["one"], 2)


def test_the_same_records_are_the_same_bytes(path, tmp_path):
    other = tmp_path / "another-name.gz"
    with DumpWriter(other, 1, ["one"]) as writer:
        for kind, record in LINES:
            writer.write(kind, dict(reversed(record.items())))

    assert other.read_bytes() == path.read_bytes()


def test_a_file_that_is_there_is_kept_and_nothing_half_written_is_left(path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(UsageError, match="exists"), DumpWriter(path, 1, None):
        pass

    with pytest.raises(KeyboardInterrupt), DumpWriter(path, 1, None, force=True) as writer:
        writer.write(*LINES[0])
        raise KeyboardInterrupt

    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    with (
        pytest.raises(UsageError, match=r"nowhere/dump: No such file"),
        DumpWriter(tmp_path / "nowhere/dump", 1, None),
    ):
        pass


def test_a_disk_that_is_full_is_named_with_the_file_and_keeps_no_part_of_it(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with (
            pytest.raises(UsageError, match=r"cannot write .*/dump: "),
            DumpWriter(tmp_path / "dump", 1, None) as writer,
        ):
            for _ in range(1000):
                writer.write("agent", {"id": secrets.token_hex(1000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert not list(tmp_path.iterdir())


def test_names_that_no_file_can_have_are_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for path, why in (
        (".", "is a folder"),
        ("/", "is a folder"),
        ("pipe", "is no regular file"),
        ("n" * 300, "too long"),
    ):
        with pytest.raises(UsageError, match=why), DumpWriter(Path(path), 1, None, force=True):
            pass

        with pytest.raises(UsageError, match=why):
            files.write_export(Path(path), b"", force=True)

    longest = Path("n" * 255)
    files.write_export(longest, b"first", force=False)
    with DumpWriter(longest, 1, None, force=True) as writer:
        writer.write(*LINES[0])

    assert sorted(os.listdir()) == [longest.name, "pipe"]
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_was_made_meanwhile_is_kept(tmp_path, monkeypatch, links):
    def refused(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refused)

    file = tmp_path / "dump.gz"
    with (
        pytest.raises(UsageError, match="exists: choose another name"),
        DumpWriter(file, 1, None) as writer,
    ):
        writer.write(*LINES[0])
        file.write_bytes(b"of another process")

    assert file.read_bytes() == b"of another process"
    with DumpWriter(file, 1, None, force=True) as writer:
        writer.write(*LINES[0])

    file.rename(tmp_path / "first.gz")
    with DumpWriter(file, 1, None) as writer:
        writer.write(*LINES[0])

    assert file.read_bytes() == (tmp_path / "first.gz").read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["dump.gz", "first.gz"]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_rights_of_a_dump_are_those_of_any_file_and_the_umask_stays(
    tmp_path, monkeypatch, umask
):
    before = os.umask(umask)
    try:
        with monkeypatch.context() as patched:
            # Another thread would create its files with this umask.
            patched.setattr(os, "umask", None)
            with DumpWriter(tmp_path / "dump.gz", 1, None) as writer:
                writer.write(*LINES[0])
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "dump.gz").stat().st_mode) == 0o666 & ~umask


@examples(5)
@given(cut=st.integers(0, 2000))
def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path_factory, cut):
    file = _written(tmp_path_factory)
    content = file.read_bytes()
    file.write_bytes(content[: cut % len(content)])
    _refused(file)


@examples(5)
@given(at=st.integers(0, 2000), bit=st.integers(0, 7))
def test_a_file_that_is_altered_anywhere_is_refused_or_the_same(tmp_path_factory, at, bit):
    file = _written(tmp_path_factory)
    content = bytearray(file.read_bytes())
    content[at % len(content)] ^= 1 << bit
    file.write_bytes(content)
    try:
        # gzip's own header says nothing
        assert verify(file).sha256 == verify(_written(tmp_path_factory)).sha256
    except UsageError as error:
        assert "\n" not in str(error)


@examples(5)
@given(line=st.integers(0, 200), text=st.text(alphabet='"{}[]0aé\x00\n:,', max_size=8))
def test_text_that_is_altered_is_refused(tmp_path_factory, line, text):
    file = _written(tmp_path_factory)
    plain = gzip.decompress(file.read_bytes())
    at = (line * 37) % len(plain)
    changed = plain[:at] + text.encode() + plain[at + 1 :]
    if changed != plain:
        file.write_bytes(gzip.compress(changed))
        _refused(file)


def _written(factory):
    file = factory.mktemp("dump") / "dump.jsonl.gz"
    with DumpWriter(file, 1, ["one"]) as writer:
        for kind, record in LINES:
            writer.write(kind, record)

    return file


def _refused(file):
    with pytest.raises(UsageError) as refused:
        verify(file)

    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def of(lines, kind, at=0):
    return [line for line in lines if line.get("record") == kind][at]


def basis(text):
    """Return a change of what a proposal was based on."""
    return lambda lines: of(lines, "proposal")["properties"].update(based_on=text)


def again(kind, **properties):
    """Return a change that repeats a record with other properties."""

    def change(lines):
        first = of(lines, kind)
        other = {**first, "properties": {**first["properties"], **properties}}
        lines.insert(lines.index(first) + 1, other)

    return change


FORGERIES = {
    "layers of another network": (
        lambda lines: of(lines, "architecture").update(
            architecture=of(lines, "architecture", 1)["architecture"]
        ),
        "has layers whose key is",
    ),
    "a network that is none": (
        lambda lines: of(lines, "architecture")["architecture"].update(edges=[[0, 99]]),
        "cannot be read",
    ),
    "a key of its own": (
        lambda lines: of(lines, "architecture")["properties"].update(key="0" * 32),
        "key",
    ),
    "a functional key of its own": (
        lambda lines: of(lines, "proposal")["properties"].update(functional_key="0" * 32),
        "functional_key",
    ),
    "a result of another network": (
        lambda lines: of(lines, "evaluation").update(architecture=OTHER),
        "of another network",
    ),
    "a proposal before its study": (
        lambda lines: lines.remove(of(lines, "study")),
        "refers to study 'one'",
    ),
    "a proposal of nobody": (
        lambda lines: of(lines, "agent").update(version="2"),
        "refers to agent",
    ),
    "a state that is none": (
        lambda lines: of(lines, "proposal")["properties"].update(state="RUNNING"),
        "state",
    ),
    "a result of what failed": (
        lambda lines: of(lines, "proposal")["properties"].update(state="FAILED"),
        "FAILED with the result",
    ),
    "a value that is no number": (
        lambda lines: of(lines, "evaluation")["properties"].update(value="9"),
        "value",
    ),
    "a value too large": (
        lambda lines: of(lines, "evaluation")["properties"].update(epochs=2**63),
        "epochs",
    ),
    "a number beyond all counting": (
        lambda lines: of(lines, "proposal").update(number=2**31),
        "number",
    ),
    "nothing for a value": (
        lambda lines: of(lines, "evaluation")["properties"].update(seed=None),
        "seed",
    ),
    "a nested value": (
        lambda lines: of(lines, "evaluation")["properties"].update(other={"a": 1}),
        "other",
    ),
    "a mixed list": (
        lambda lines: of(lines, "evaluation")["properties"].update(other=[1, "a"]),
        "other",
    ),
    "a curve of two lengths": (
        lambda lines: of(lines, "evaluation")["properties"].update(curve_b=[1.0]),
        "lengths",
    ),
    "settings that are none": (
        lambda lines: of(lines, "study")["properties"].update(config="[]"),
        "config",
    ),
    "a token of a claim": (
        lambda lines: of(lines, "proposal")["claims"][0][2].update(token="t"),
        "claims",
    ),
    "a basis of no numbers": (basis('{"observations": {"one": "0-x"}}'), "based_on"),
    "a basis of more numbers than memory holds": (
        basis('{"observations": {"one": "0-999999999"}}'),
        "based_on",
    ),
    "a basis of many such ranges": (basis('{"pending": "0-999999,0-999999"}'), "based_on"),
    "a basis of a range that ends before it begins": (basis('{"failed": "0-9,5-3"}'), "based_on"),
    "a basis of a billion suggestions": (basis('{"wanted": 1000000001}'), "based_on"),
    "a basis of no stream": (basis('{"wanted": 1, "stream": -1}'), "based_on"),
    "settings without end": (
        lambda lines: of(lines, "study")["properties"].update(
            config='{"a":' + "[" * 90 + "]" * 90 + "}"
        ),
        "config",
    ),
    "half a character": (lambda lines: of(lines, "worker").update(id="\ud800"), "id"),
    "a distance of text": (
        lambda lines: of(lines, "distances")["to"][max(KEY, OTHER)].update(edit="far"),
        "to",
    ),
    "a distance the wrong way": (
        lambda lines: of(lines, "distances").update(of=max(KEY, OTHER), to={min(KEY, OTHER): {}}),
        "smaller key",
    ),
    "a record that is none": (
        lambda lines: lines.insert(1, {"record": "code", "run": "rm"}),
        "no record",
    ),
    "a field too many": (lambda lines: of(lines, "agent").update(secret=1), "no field 'secret'"),
    "a field too few": (lambda lines: of(lines, "agent").pop("config"), "no field 'config'"),
    "a study with a number in its name": (
        lambda lines: of(lines, "study").update(name="a#1"),
        "name",
    ),
    "a newer format": (
        lambda lines: lines[0].update(version=4),
        "version 4 .*pip install --upgrade",
    ),
    "another format": (lambda lines: lines[0].update(dump="other"), "no dump of an archive"),
    "no schema": (lambda lines: lines[0].update(schema="new"), "schema"),
    "a newer schema": (
        lambda lines: lines[0].update(schema=99),
        "schema version 99.*knows .*pip install --upgrade",
    ),
    "a schema below all": (lambda lines: lines[0].update(schema=-1), "names the schema -1"),
    "no number of a schema": (lambda lines: lines[0].update(schema=True), "schema"),
    "two values of a result": (
        again("evaluation", value=0.123),
        "evaluation .* is in the file twice",
    ),
    "two outcomes of a proposal": (
        again("proposal", reason="other"),
        "proposal .* is in the file twice",
    ),
    "a line that is no object": (lambda lines: lines.insert(1, [1]), "must be a JSON object"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_inconsistent_content_is_one_clear_line(path, forgery):
    change, message = FORGERIES[forgery]
    if forgery == "a line that is no object":
        text = gzip.decompress(path.read_bytes()).replace(b"\n", b"\n[1]\n", 1)
        path.write_bytes(gzip.compress(text))
    else:
        forged(path, change)

    _refused(path)
    with pytest.raises(UsageError, match=message):
        verify(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cut off"),
        (b"plain text", "gzip"),
        (gzip.compress(b""), "cut off"),
        (gzip.compress(b"[" * 200_000 + b"\n"), "nests too deep|no JSON"),
        (gzip.compress(b'{"dump": ' + b"9" * 5000 + b"}\n"), "no JSON"),
        (gzip.compress(b'{"dump": NaN}\n'), "no JSON"),
        (gzip.compress(b'{"a": "\xff"}\n'), "no JSON"),
        (gzip.compress(b"{}\n"), "no dump of an archive"),
    ],
    # The header of gzip may contain a name and a time, which would differ.
    ids=[
        "empty",
        "plain",
        "nothing",
        "deep",
        "large number",
        "not a number",
        "not utf-8",
        "another",
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, message):
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        verify(file)


def test_what_follows_the_end_is_refused(path):
    content = path.read_bytes()
    for more in (gzip.compress(b'{"record": "agent"}\n'), content):
        path.write_bytes(content + more)
        with pytest.raises(UsageError, match="has lines after the one with its digest"):
            verify(path)


def test_no_such_file_and_a_folder(tmp_path):
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match=f"cannot read {re.escape(str(place))}"):
            verify(place)


def test_a_file_made_to_fill_a_disk_is_refused_in_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(file_format, "MOST_LINE", 2**20)
    monkeypatch.setattr(file_format, "_UNSUSPICIOUS", 2**22)
    file = tmp_path / "bomb"
    agent = json.dumps(
        {"record": "agent", "kind": "a" * 500_000, "version": "1", "config": "{}", "created": 1}
    )
    head = json.dumps(
        {"dump": "nas-archive", "version": 1, "schema": 1, "release": "0", "studies": None}
    )
    for body, message in (
        (b" " * 2**25, "more than 1,048,576 bytes"),
        ((agent.encode() + b"\n") * 40, "times its"),
    ):
        file.write_bytes(gzip.compress(head.encode() + b"\n" + body))
        tracemalloc.start()
        with pytest.raises(UsageError, match=message):
            contents(file)

        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()

    with pytest.raises(UsageError, match="unpacks to more than 100 bytes"):
        verify(file, most_bytes=100)


VALUES = st.one_of(
    st.integers(0, 3), st.floats(0, 2) | st.just(math.nan), st.text("ab", max_size=2)
)
PROPERTIES = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES)
CLAIMS = st.dictionaries(st.tuples(st.sampled_from("vw"), st.integers(0, 2)), PROPERTIES).map(
    lambda claims: sorted(
        ([*claim, about] for claim, about in claims.items()), key=file_format.text_of
    )
)
PROPOSALS = st.builds(
    lambda state, finished, created, claims, properties: {
        "study": "s", "number": 0, "architecture": KEY, "agent": "g", "claims": claims,
        "result": "s#00000" if state in ("COMPLETE", "PRUNED") else None,
        "properties": {**properties, "state": state, "created": created, "finished": finished},
    },
    st.sampled_from(["WAITING", "FAILED", "COMPLETE", "PRUNED"]),
    st.integers(0, 2), st.integers(0, 2), CLAIMS, PROPERTIES,
)  # fmt: skip
RECORDS = {
    "proposal": PROPOSALS,
    "architecture": st.builds(lambda p: {"key": KEY, "properties": p}, PROPERTIES),
    "worker": st.builds(
        lambda p, at: {"id": "w", "properties": {**p, "heartbeat": at}},
        PROPERTIES,
        st.integers(0, 2),
    ),
    "agent": st.builds(lambda at: {"kind": "k", "created": at}, st.none() | st.integers(0, 3)),
    "morph": st.builds(
        lambda ops: {"operations": ops}, st.lists(st.sampled_from("ab"), max_size=3)
    ),
    "distances": st.builds(
        lambda p, q: {"of": KEY, "to": {OTHER: p, "x": q}}, PROPERTIES, PROPERTIES
    ),
    "proxies": st.builds(
        lambda p: {"of": KEY, "task": "t", "protocol": "p", "source": "s", "properties": p},
        PROPERTIES,
    ),
}


@examples(5)
@given(
    st.sampled_from(sorted(RECORDS)).flatmap(
        lambda kind: st.tuples(st.just(kind), *[RECORDS[kind]] * 3)
    )
)
def test_merging_is_commutative_and_associative(drawn):
    kind, a, b, c = drawn

    def both(one, other):
        return merge_records(kind, one, other)

    def text(record):
        return file_format.text_of(record)

    assert text(both(a, a)) == text(a)
    assert text(both(a, b)) == text(both(b, a))
    assert text(both(both(a, b), c)) == text(both(a, both(b, c)))


@examples(5)
@given(st.integers(1, 3), st.integers(1, 3))
def test_merged_results_must_agree(first, second):
    one, other = (
        {
            **EVALUATION,
            "properties": {**EVALUATION["properties"], "value": float(value), "created": value},
        }
        for value in (first, second)
    )
    if first == second:
        assert file_format.text_of(merge_records("evaluation", one, other)) == file_format.text_of(
            one
        )
    else:
        with pytest.raises(ArchiveError, match="two copies of the study 'one' diverged"):
            merge_records("evaluation", one, other)


def test_lines_are_what_other_programs_can_read(path):
    assert records(path)[-1]["counts"]["architecture"] == 2
    assert of(records(path), "evaluation")["properties"]["metric_loss"] == {"float": "nan"}
