"""Settings: precedence of argument, environment and file; no secret in texts."""

from __future__ import annotations

import math

import pytest

from archive.errors import SettingsError
from archive.settings import Settings, environment, load, read_secret

SERVER = "neo4j://host:7687"


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.touch(0o600)
    path.write_text("from-the-file\n")
    return path


def configure(home, text, mode=0o644):
    home.mkdir(parents=True, exist_ok=True)
    path = home / "config.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_nothing_given_means_the_embedded_server_in_the_users_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    found = load(environment={})
    assert found == Settings(home=tmp_path / ".archive")
    assert found.embedded


def test_an_argument_wins_over_the_environment_and_that_over_the_file(tmp_path):
    configure(
        tmp_path, 'uri = "bolt://of-file:1"\nuser = "of-file"\ndatabase = "of-file"\npatience = 5'
    )
    environment = {
        "ARCHIVE_HOME": str(tmp_path),
        "ARCHIVE_DB": "bolt://of-environment:1",
        "ARCHIVE_USER": "environment",
    }
    found = load(uri="bolt://of-argument:1", environment=environment)
    assert (found.uri, found.user, found.database) == (
        "bolt://of-argument:1",
        "environment",
        "of-file",
    )
    assert found.patience == 5
    assert found.home == tmp_path
    assert not found.embedded


def test_an_empty_variable_counts_as_not_set(tmp_path):
    found = load(
        home=tmp_path,
        environment={"ARCHIVE_DB": "", "ARCHIVE_PASSWORD": "", "ARCHIVE_PATIENCE": ""},
    )
    assert found == Settings(home=tmp_path)


def test_numbers_from_the_environment(tmp_path):
    environment = {"ARCHIVE_PATIENCE": "1.5", "ARCHIVE_IDLE_SECONDS": "9", "ARCHIVE_HEAP_MB": "256"}
    found = load(home=tmp_path, environment=environment)
    assert (found.patience, found.idle_seconds, found.heap_mb) == (1.5, 9.0, 256)


def test_options_of_java(tmp_path):
    found = load(home=tmp_path, environment={"ARCHIVE_JAVA_OPTIONS": "-Xlog:gc"})
    assert environment(found)["ARCHIVE_JAVA_OPTIONS"] == "-Xlog:gc"
    with pytest.raises(
        SettingsError, match='cannot read java_options "-Da=\'b": No closing quotation'
    ):
        load(home=tmp_path, java_options="-Da='b", environment={})


@pytest.mark.parametrize("name", ["ARCHIVE_PATIENCE", "ARCHIVE_IDLE_SECONDS", "ARCHIVE_HEAP_MB"])
def test_a_variable_that_is_no_number(tmp_path, name):
    with pytest.raises(SettingsError, match=f"{name} must be a number, got 'soon'"):
        load(home=tmp_path, environment={name: "soon"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("patience", -1),
        ("patience", math.nan),
        ("idle_seconds", 0),
        ("heap_mb", 1),
        ("heap_mb", "x"),
    ],
)
def test_a_number_out_of_range(tmp_path, name, value):
    with pytest.raises(SettingsError, match=f"{name} must be .* got {value!r}"):
        load(home=tmp_path, environment={}, **{name: value})


@pytest.mark.parametrize(
    "uri",
    [
        "neo4j://h",
        "neo4j+s://h:1",
        "neo4j+ssc://h",
        "bolt://[::1]:7687",
        "bolt+s://h",
        "bolt+ssc://h",
    ],
)
def test_addresses(tmp_path, uri):
    assert load(home=tmp_path, uri=uri, environment={}).uri == uri


@pytest.mark.parametrize(
    "uri",
    [
        "localhost",
        "http://h:7474",
        "neo4j://",
        "neo4j:/h",
        "bolt://h:port",
        "neo4j+x://h",
        "host:7687",
    ],
)
def test_an_address_that_is_none(tmp_path, uri):
    with pytest.raises(SettingsError, match="address"):
        load(home=tmp_path, uri=uri, environment={})


@pytest.mark.parametrize(
    "uri",
    [
        *("neo4j://me:hush-hush@host:7687", "bolt://me:hush-hush@host:bad", "x://me:hush-hush@h"),
        *(
            "neo4j:hush-hush@host:7687",
            "bolt:/neo4j:hush-hush@host:7687",
            "me:hush-hush@host",
            "hush-hush@",
        ),
        *(
            "neo4j://h:7687?password=hush-hush",
            "x://h?password=hush-hush",
            "neo4j://h/?a=me:hush-hush@x",
        ),
    ],
)
def test_a_password_in_an_address_is_refused_and_not_shown(tmp_path, uri):
    with pytest.raises(SettingsError, match="address") as caught:
        load(home=tmp_path, uri=uri, environment={})

    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize("end", ["/other", "?database=other", "/#other", "/other/"])
def test_a_database_in_an_address_is_refused(tmp_path, end):
    """The driver would ignore it, and a command would work on another database."""
    with pytest.raises(SettingsError, match="ARCHIVE_DATABASE names a database"):
        load(home=tmp_path, uri=f"neo4j://host:7687{end}", environment={})

    for uri in (
        "neo4j://host:7687/",
        "neo4j://host:7687?policy=europe",
        "neo4j+s://host?region=a&policy=b",
    ):
        assert load(home=tmp_path, uri=uri, environment={}).uri == uri


def test_a_password_is_never_shown(tmp_path):
    found = load(home=tmp_path, uri=SERVER, password="hush-hush", environment={})
    assert found.password == "hush-hush"
    assert "hush-hush" not in repr(found)


def test_a_password_file(tmp_path, secret):
    assert (
        load(home=tmp_path, uri=SERVER, password_file=secret, environment={}).password
        == "from-the-file"
    )
    environment = {"ARCHIVE_PASSWORD_FILE": str(secret)}
    assert load(home=tmp_path, uri=SERVER, environment=environment).password == "from-the-file"
    configure(tmp_path, f'uri = "{SERVER}"\npassword_file = "{secret}"')
    assert load(home=tmp_path, environment={}).password == "from-the-file"


def test_the_stronger_layers_password_wins_in_either_form(tmp_path, secret):
    configure(tmp_path, f'uri = "{SERVER}"\npassword_file = "{tmp_path / "missing"}"')
    assert load(home=tmp_path, environment={"ARCHIVE_PASSWORD": "given"}).password == "given"
    configure(tmp_path, f'uri = "{SERVER}"\npassword = "of-file"', 0o600)
    assert (
        load(home=tmp_path, environment={"ARCHIVE_PASSWORD_FILE": str(secret)}).password
        == "from-the-file"
    )


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_password_file_open_to_others(secret, mode):
    secret.chmod(mode)
    with pytest.raises(SettingsError, match=f"open to others .*chmod 600 {secret}") as caught:
        read_secret(secret)

    assert "from-the-file" not in str(caught.value)


def test_a_secret_of_a_container_has_the_mode_that_its_runtime_gives_it(secret, monkeypatch):
    secret.chmod(0o444)
    monkeypatch.setattr("archive.settings.RUNTIME_SECRETS", secret.parent)
    assert read_secret(secret) == "from-the-file"
    monkeypatch.setattr("archive.settings.RUNTIME_SECRETS", secret.parent / "secret.d")
    with pytest.raises(SettingsError, match="open to others"):
        read_secret(secret)


def test_a_password_file_that_is_missing_or_empty(tmp_path, secret):
    with pytest.raises(SettingsError, match="No such file"):
        read_secret(tmp_path / "missing")

    secret.write_text("\n")
    with pytest.raises(SettingsError, match="is empty"):
        read_secret(secret)


def test_a_folder_is_no_password_file_and_keeps_its_mode(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    with pytest.raises(SettingsError, match=f"the token file {folder} is a folder: name a file"):
        read_secret(folder, "token file")


def test_a_configuration_with_a_password_must_be_private(tmp_path):
    configure(tmp_path, 'password = "hush-hush"')
    with pytest.raises(SettingsError, match="chmod 600") as caught:
        load(home=tmp_path, environment={})

    assert "hush-hush" not in str(caught.value)
    configure(tmp_path, f'uri = "{SERVER}"\npassword = "hush-hush"', 0o600)
    assert load(home=tmp_path, environment={}).password == "hush-hush"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("uri =", "cannot read"),
        ('urii = "x"', "did you mean uri"),
        ('zzzzzzzz = "x"', "known: uri"),
        ("uri = 5", "must be of type str, got int"),
        ('heap_mb = "big"', "must be of type int, got str"),
        ("patience = true", "must be of type float, got bool"),
    ],
)
def test_a_configuration_that_is_wrong(tmp_path, text, complaint):
    path = configure(tmp_path, text)
    with pytest.raises(SettingsError, match=complaint) as caught:
        load(home=tmp_path, environment={})

    assert str(path) in str(caught.value)


def test_a_home_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/of-user")
    assert load(home="here", environment={}).home == tmp_path / "here"
    assert str(load(home="~/there", environment={}).home) == "/of-user/there"


@pytest.mark.parametrize("name", ["home", "weights", "checkpoints", "password_file"])
def test_the_home_of_an_unknown_user_is_refused(tmp_path, name):
    path = "~nobody-of-this-name/x"
    complaint = f"no home folder of ~nobody-of-this-name is known on this machine, got '{path}'"
    options = {"home": tmp_path, "uri": SERVER} | {name: path}
    with pytest.raises(SettingsError, match=complaint):
        getattr(load(**options, environment={}), f"place_of_{name}")
