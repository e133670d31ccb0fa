"""The contract of launchers, for every one that is installed and whose engine can run on this
machine."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from archive.errors import SettingsError
from archive.launchers import records, registry
from archive.launchers.options import convert, options_of, values
from archive.settings import Settings
from tests.support.clusters.launchers import engine, fleet, ids, stand_in, until

PASSWORD = "geheim, s3cr3t"

INSTALLED = [name for name in registry.names() if all(map(find_spec, registry.get(name).requires))]
every = pytest.mark.parametrize("name", INSTALLED)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Settings of a server with a password, which the environment of the caller has."""
    monkeypatch.setenv("ARCHIVE_PASSWORD", PASSWORD)
    return Settings(tmp_path / "home", uri="neo4j://db:7687", password=PASSWORD)


@every
def test_trainers_start_and_end(name, settings, tmp_path, monkeypatch):
    diary = stand_in(monkeypatch, tmp_path / "stand-in")
    with engine(name, tmp_path / "engine") as running:
        launcher = registry.create(name, running.options, settings)
        own = fleet(settings, name)
        assert launcher.running(own) == []
        launcher.start(own, 2)
        until(lambda: len(ids(launcher, own, "running")) == 2, running.seconds, "two trainers run")
        launcher.start(own, 1)
        three = until(
            lambda: len(found := ids(launcher, own, "running")) == 3 and found,
            running.seconds,
            "a third",
        )
        assert all(trainer.host for trainer in launcher.running(own))
        until(
            lambda: len(diary.read_text().splitlines()) == 3, running.seconds, "they have started"
        )
        started = f"started {settings.home} {own.password_file} []"
        assert diary.read_text().splitlines() == [started] * 3

        # Another process of the user, which knows the fleet by its record.
        other = registry.create(name, running.options, settings)
        same = records.get(settings, own.name)
        assert same == own and ids(other, same) == three
        other.stop(same, [three[1], "999999"])
        until(
            lambda: diary.read_text().endswith("returned\n"), running.seconds, "SIGTERM reached it"
        )
        left = until(
            lambda: len(found := ids(launcher, own)) == 2 and found, running.seconds, "it has ended"
        )
        assert left == [three[0], three[2]] and diary.read_text().count("returned") == 1

        assert launcher.failures(own, three) == []
        (tmp_path / "stand-in" / "end").write_text("2")
        until(lambda: not launcher.running(own), running.seconds, "they have failed")
        failures = launcher.failures(own, three)
        assert [
            (each.id, each.code) for each in sorted(failures, key=lambda each: three.index(each.id))
        ] == [
            (three[0], 2),
            (three[2], 2),
        ]
        assert all("no device of this name" in each.reason for each in failures)
        assert [each.id for each in launcher.failures(own, three[:1])] == three[:1]
        launcher.stop(own, three)


@every
def test_a_trainer_that_is_stopped_while_it_starts_is_no_failure(
    name, settings, tmp_path, monkeypatch
):
    """Without a handler, SIGTERM ends it with an exit code of its own."""
    diary = stand_in(monkeypatch, tmp_path / "stand-in")
    script = diary.with_name("trainer.sh")
    script.write_text(f"echo started >> {diary}\nwhile :; do sleep 0.1; done\n")
    with engine(name, tmp_path / "engine") as running:
        launcher = registry.create(name, running.options, settings)
        own = fleet(settings, name)
        launcher.start(own, 1)
        (trainer,) = until(lambda: ids(launcher, own, "running"), running.seconds, "it runs")
        until(diary.exists, running.seconds, "it starts")
        launcher.stop(own, [trainer])
        until(lambda: not launcher.running(own), running.seconds, "it has ended")
        assert launcher.failures(own, [trainer]) == []


@every
def test_a_preview_starts_nothing_and_has_no_password(name, settings, tmp_path):
    own = fleet(settings, name, arguments=("--study", "a study", "--slots", "2"))
    launcher = registry.create(name, {}, settings)
    text = launcher.preview(own, 3)
    assert "'a study' --slots 2" in text and "neo4j://db:7687" in text
    assert PASSWORD not in text and "s3cr3t" not in text
    assert not {"script", "local"} & {path.name for path in own.folder.iterdir()}


@every
def test_options_have_defaults_and_survive_a_record(name, settings):
    kind = registry.get(name)
    assert all(option.help.endswith(".") for option in options_of(kind).values())
    samples = {
        "text": "text",
        "count": "3",
        "positive": "2",
        "number": "0.5",
        "truth": "yes",
        "duration": "90s",
        "size": "2GB",
    }
    given = {
        key: ["one", "two"] if each.kind == "texts" else samples[each.kind]
        for key, each in options_of(kind).items()
    }
    launcher = registry.create(name, given, settings)
    assert registry.create(name, values(launcher), settings) == launcher
    records.save(own := fleet(settings, name, options=values(launcher)))
    assert kind(**convert(kind, records.get(settings, own.name).options)) == launcher
    assert set(values(registry.create(name, {}, settings))) == set(options_of(kind))


@every
def test_a_fleet_keeps_the_options_that_it_was_started_with(name, tmp_path):
    kind = registry.get(name)
    texts = [key for key, option in options_of(kind).items() if option.kind == "text"]
    started = registry.create(name, {}, Settings(tmp_path, uri="neo4j://db"))
    later = Settings(tmp_path, uri="neo4j://db", launch={name: dict.fromkeys(texts, "later")})
    own = fleet(later, name, options=values(started))
    assert registry.of_fleet(records.get(later, own.name)) == started
    # Records of earlier releases have only options that differed from their defaults.
    assert registry.of_fleet(fleet(later, name, options={})) == registry.create(name, {}, later)


def test_a_table_of_no_launcher_is_refused(tmp_path):
    settings = Settings(tmp_path, launch={"slrum": {"partition": "gpu"}})
    with pytest.raises(
        SettingsError,
        match=r"\[launch.slrum\] in .*config.toml: unknown "
        r"launcher 'slrum': .*slurm",
    ):
        registry.create("local", {}, settings)
