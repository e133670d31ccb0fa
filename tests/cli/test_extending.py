"""The example package of docs/extending.md: what the document shows, installed, run, and under the
contract suites."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from archive import settings
from tests.conftest import wipe
from tests.support import ROOT

pytestmark = pytest.mark.lasts(2)

DOCUMENT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "docs" / "examples" / "archive-example"


def test_the_document_shows_every_file_of_the_package():
    shown = dict(
        re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', DOCUMENT, re.DOTALL | re.MULTILINE)
    )
    files = [
        path
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".toml") and path.name != "__init__.py"
    ]
    assert shown == {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in files
    }


@pytest.fixture(scope="module")
def environment(migrated_connection, store_settings, tmp_path_factory):
    """The variables of a process that has the package installed, with an empty archive."""
    folder = tmp_path_factory.mktemp("extending")
    # Building writes into the source.
    source = shutil.copytree(PACKAGE, folder / "source")
    # What `python -m build` does, without the two processes that it starts.
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    ran(os.environ, sys.executable, "-c", build, cwd=source)
    (wheel,) = folder.glob("*.whl")
    # A wheel without compiled parts is installed by unpacking it: no network, and no pip in the
    # tests' environment.
    zipfile.ZipFile(wheel).extractall(folder / "site")
    # No archive of the user's, whatever the variables say.
    kept = ("ARCHIVE_JAVA_OPTIONS",)
    outside = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ARCHIVE_") or name in kept
    }
    wipe(migrated_connection)
    shutil.rmtree(store_settings.home / "json-lines", ignore_errors=True)
    return {**outside, **settings.environment(store_settings), "PYTHONPATH": str(folder / "site")}


PARTS = ("archive/spaces", "archive/launchers", "agents", "kernels", "trainer")


def ran(environment, *command, cwd=None):
    found = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=cwd, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


KERNEL = """
import numpy as np
from archive import agents, kernels, spaces
from archive.agents.base import History, Observation
space = spaces.get("chains")
kernel = kernels.get("operation-counts")
members = space.members()
print(kernel.distances(members[:1], members).stack.max())
agent = agents.get("gp", space, kernel="operation-counts", n_initial=0, acquisition="ucb", kappa=0.0)
print(agent.method.source.name)
some = [(one, [layer.op for layer in one.layers].count("conv")) for one in members[::9]]
seen = [Observation(one, float(score), str(at)) for at, (one, score) in enumerate(some)]
(found,) = agent.propose(History(tuple(seen)), 1, np.random.default_rng(0))
print([layer.op for layer in found.architecture.layers].count("conv"))
"""

TRAINED = """
from archive.trainer.fit.train import train
from archive.trainer.tasks import registry
from archive_example.space import chain
digits = registry.get("digits")
print(digits.search_space("chains").name, train(chain(["conv", "pool", "conv", "skip", "conv"]), digits).value > 0.5)
"""

SEARCH = [
    "search",
    "--agent",
    "best-mutant",
    "--task",
    "two-moons",
    "--budget",
    "1",
    "--device",
    "cpu",
]
SEARCH += ["--recipe", "l-bfgs"]
MEASURED = ["arch", "proxies", "--task", "two-moons", "--space", "mlp", "--count", "2", "--json"]
OBSERVED = [*SEARCH, "--observe", "json-lines"]

# Of this package, of the archive with the decisions of the space, and with a ranking of all its
# members.
AGENTS = ["best-mutant", "tpe", "tw"]

USER = f"""
import contextlib, io, json, runpy, sys
from archive.cli.main import main
from archive.errors import UnknownNameError

def printed(work, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit, UnknownNameError):
        work(*arguments)
    return out.getvalue()

def script(agent):
    sys.argv = ["search_chains.py", agent]
    runpy.run_path({str(PACKAGE / "search_chains.py")!r}, run_name="__main__")

if __name__ == "__main__":
    print(json.dumps({{
        "recipes": json.loads(printed(main, ["recipes", "--json"])),
        "agents": json.loads(printed(main, ["agents", "--json"])),
        "best-mutant": json.loads(printed(main, ["agents", "best-mutant", "--json"])),
        "search": json.loads(printed(main, [*{OBSERVED!r}, "--json"])),
        "measured": json.loads(printed(main, {MEASURED!r})),
        "scripts": [printed(script, agent) for agent in {[*AGENTS, "misspelt"]!r}],
        "studies": json.loads(printed(main, ["study", "list", "--json"])),
        "kernel": printed(exec, {KERNEL!r}, {{}}),
        "trained": printed(exec, {TRAINED!r}, {{}}),
    }}))
"""


@pytest.fixture(scope="module")
def printed(environment):
    """What everything prints in one process that has the package: the start of a process costs more
    than most of it."""
    return json.loads(ran(environment, sys.executable, "-c", USER))


def test_the_agent_is_listed_with_what_it_says_of_itself(printed):
    rows = {row["agent"]: row for row in printed["agents"]["agents"]}
    assert rows["best-mutant"]["summary"] == "mutations of the best network so far"
    assert printed["best-mutant"]["settings"] == {"n_initial": 10}


def test_the_agent_searches_the_task_and_the_recipe_trains_it(printed):
    rows = {row["recipe"]: row for row in printed["recipes"]["recipes"]}
    assert rows["l-bfgs"]["origin"] == "archive-example 0.1.0"
    found = printed["search"]
    assert (found["evaluations"], found["failed"], found["protocol"]) == (
        1,
        0,
        "two-moons/1+recipe:l-bfgs",
    )
    # Guessing is right half of the time.
    assert found["best"]["value"] > 0.6


def test_the_observer_receives_the_trial(environment, printed):
    (path,) = Path(environment["ARCHIVE_HOME"], "json-lines").iterdir()
    start, *curve, end = [json.loads(line) for line in path.read_text().splitlines()]
    assert (start["attempt"], start["protocol.name"]) == (1, "two-moons/1+recipe:l-bfgs")
    assert [line["step"] for line in curve] == list(range(1, len(curve) + 1))
    assert (end["state"], end["value"]) == ("COMPLETE", printed["search"]["best"]["value"])


def test_the_proxy_is_measured_with_the_others(printed):
    for network in printed["measured"]["networks"]:
        assert {"output_spread", "synflow", "naswot"} < network["scores"].keys()
        assert 0 < network["scores"]["output_spread"] < 10


def test_every_group_of_entry_points_is_in_the_document():
    """A group that no page names might as well not exist."""
    code = "\n".join(
        path.read_text("utf-8") for part in PARTS for path in (ROOT / part).rglob("*.py")
    )
    groups = set(re.findall(r'^\s*(?:GROUP = )?"(archive\.\w+s)",?$', code, re.MULTILINE))
    assert groups >= {"archive.agents", "archive.proxies", "archive.recipes"}
    assert {group for group in groups if f"`{group}`" not in DOCUMENT} == set()


def test_agents_search_the_space(printed):
    *texts, unknown = printed["scripts"]
    for agent, text in zip(AGENTS, texts, strict=True):
        assert re.fullmatch(rf"{agent}: the best of 15 chains has the value (0\.\d|1)\n", text)

    assert unknown == ""
    studies = {each["study"] for each in printed["studies"]["studies"]}
    assert {name for name in studies if name.startswith("chains-")} == {
        f"chains-{agent}" for agent in AGENTS
    }


def test_a_gaussian_process_learns_with_the_kernel(printed):
    # Five operations of either chain are not the other's; all members are ranked; the best chain is
    # known already.
    assert printed["kernel"].split() == ["10.0", "members", "4"]


def test_the_default_recipe_trains_what_the_builder_builds(printed):
    assert printed["trained"].split() == ["chains", "True"]


@pytest.mark.whole
def test_the_contract_suites_hold(environment, tmp_path):
    parts = ("agents", "kernels", "spaces", "trainer/nn", "trainer/recipes", "trainer/observers")
    suites = [
        *(f"tests/{part}/test_contract.py" for part in parts),
        "tests/trainer/proxies/test_definitions.py",
    ]
    names = "best-mutant or operation-counts or chains or l-bfgs or json-lines or output_spread"
    chosen = ("-k", names, "-p", "no:cacheprovider", "-q")
    printed = ran(environment, sys.executable, "-m", "pytest", *suites, *chosen, cwd=ROOT)
    passed = int(re.search(r"(\d+) passed", printed)[1])
    # Of each suite the tests that take an agent, a kernel or a space by its name.
    assert passed > 20


def test_the_suites_are_where_the_document_says():
    for path in re.findall(r"^pytest (\S+)", DOCUMENT, re.MULTILINE):
        assert Path(ROOT, path).is_file()
