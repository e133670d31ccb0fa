"""Listed members: their features and distances equal those computed without a list, from memory and
from a file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from archive import agents, cache, kernels, spaces
from archive.agents.acquisition import candidate_generators, listing
from archive.agents.acquisition.listing import Listing, count_listed, members_of
from archive.agents.base import History
from archive.agents.bayesopt.gaussian_process import PRESETS, method
from archive.agents.bayesopt.model_based import ModelBased
from archive.agents.bayesopt.portfolio_members import OperationCounts
from archive.agents.surrogates import distance_cache
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.architecture.packing import PackedArchitectures, pack
from archive.kernels.base import Components, Distance
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from archive.kernels.features import l1_blocks
from archive.kernels.features.topology import TopologyFeatures
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
from archive.kernels.gram import Gram
from tests.support import whole
from tests.support.histories import Chains
from tests.support.listed import known, score, small_table

KINDS = {
    "wl": lambda: kernels.get("weisfeiler-lehman"),
    "wl-normalised": lambda: kernels.get("weisfeiler-lehman", normalised=True),
    "topology": lambda: kernels.get("topology"),
    "path": lambda: kernels.get("path", counts=True),
    "operations": OperationCounts,
    "ngrams": lambda: TreeWasserstein((1, 2, 3), sizes=True, functional=True),
}


def files() -> set[Path]:
    return set((Path(os.environ["ARCHIVE_HOME"]) / "cache" / "features").glob("*.npz"))


@pytest.fixture(autouse=True)
def worth_a_file(monkeypatch):
    monkeypatch.setattr(cache, "WORTH", 10)


@pytest.fixture
def members(tmp_path):
    return small_table(tmp_path).members()


@pytest.mark.parametrize("name", KINDS)
def test_features_are_those_that_are_prepared(members, name, monkeypatch):
    kind = KINDS[name]()
    prepared = [kind.prepare(member) for member in members]
    first = Listing(members)
    # The first listing prepares and writes, the second reads the file alone.
    one = [first.prepare(kind, member) for member in members]
    again = KINDS[name]()
    monkeypatch.setattr(type(again), "prepare", None)
    second = Listing(members)
    other = [second.prepare(again, member) for member in members]
    for expected, *actual in zip(prepared, one, other, strict=True):
        for each in actual:
            assert (each.key, each.space) == (expected.key, expected.space)
            assert [list(part.items()) for part in each.features] == [
                list(part.items()) for part in expected.features
            ]


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_rows_of_distances_are_those_of_the_kind_to_the_last_bit(members, name, dense, monkeypatch):
    kind = KINDS[name]()
    rows = [3, 17, 3, 40]
    expected = kind.distances([members[at] for at in rows], members).stack
    monkeypatch.setattr(l1_blocks, "is_dense", lambda p, entries: dense)
    actual = np.zeros_like(expected)
    for out, vectors in zip(actual, Listing(members).vectors(kind), strict=True):
        vectors.rows(rows).add(1.0, False, 0, len(rows), out)

    if name == "ngrams":
        # Areas below steps on a line are summed over the places of all members, rather than of two.
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    else:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_rows_of_other_networks_are_those_of_the_kind_to_the_last_bit(
    members, name, dense, monkeypatch
):
    kind = KINDS[name]()
    # The other networks have features, and places on a line, that none of these two has.
    listed = members[:2]
    others = members[2:]
    expected = kind.distances(others, listed).stack
    monkeypatch.setattr(l1_blocks, "is_dense", lambda p, entries: dense)
    features = [kind.prepare(network).features for network in others]
    unknown_places = 0
    for c, vectors in enumerate(Listing(listed).vectors(kind)):
        rows = vectors.rows_of([part[c] for part in features])
        if rows is None:
            unknown_places += 1
            continue

        actual = np.zeros(expected.shape[1:])
        rows.add(1.0, False, 0, len(actual), actual)
        np.testing.assert_array_equal(actual, expected[c])

    assert (unknown_places > 0) == (name == "ngrams")


def test_areas_below_other_networks_are_those_of_the_kind(members):
    kind = KINDS["ngrams"]()
    outdegrees = kind.comparisons.index("line")
    listed = members[:40]
    others = members[40:43]
    expected = kind.distances(others, listed).stack[outdegrees]
    rows = (
        Listing(listed)
        .vectors(kind)[outdegrees]
        .rows_of([kind.prepare(each).features[outdegrees] for each in others])
    )
    actual = np.zeros_like(expected)
    rows.add(1.0, False, 0, len(actual), actual)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)


def test_rows_of_other_networks_use_the_vectors_of_the_members(members, monkeypatch):
    monkeypatch.setattr(distance_cache, "FEW", 10)
    kinds = [WeisfeilerLehman(), TopologyFeatures()]
    listed = members[:40]
    others = members[40:43]
    expected = CachedDistances(kinds).distances(others, listed).stack
    cached = CachedDistances(kinds, Listing(listed))
    monkeypatch.setattr(Gram, "distances", None)
    np.testing.assert_array_equal(
        cached.distances(others, listed).stack, expected.astype(np.float32)
    )


def test_networks_outside_are_prepared_one_by_one(members):
    listed = Listing(members[:30])
    kind = kernels.get("topology")
    assert listed.prepare(kind, members[45]).features == kind.prepare(members[45]).features
    assert not files()


def test_settings_and_members_have_files_of_their_own(members):
    wl = KINDS["wl"]()
    normalised = KINDS["wl-normalised"]()
    Listing(members).features(wl)
    assert len(files()) == 1
    Listing(members).features(KINDS["wl"]())
    assert len(files()) == 1
    Listing(members).features(normalised)
    Listing(members[:-1]).features(wl)
    Listing(members[::-1]).features(wl)
    assert len(files()) == 4


def test_kernels_of_other_packages_and_short_lists_have_none(members):
    kind = KINDS["wl"]()
    kind.__class__ = type("Theirs", (OperationCounts,), {"__module__": "theirs"})
    Listing(members).features(kind)
    Listing(members[:9]).features(KINDS["wl"]())
    assert not files()


def test_a_damaged_file_is_written_again(members):
    kind = KINDS["wl"]()
    Listing(members).features(kind)
    (file,) = files()
    good = file.read_bytes()
    file.write_bytes(good[:100])
    assert Listing(members).prepare(kind, members[5]).features == kind.prepare(members[5]).features
    assert file.read_bytes() == good


@pytest.mark.parametrize("name", ["portfolio", "tw", "gp-wl"])
def test_proposals_are_the_same_without_a_file_with_one_and_with_a_home_that_takes_none(
    tmp_path, name, monkeypatch
):
    space = small_table(tmp_path, 120)
    history = known(space.members()[:15])

    def proposed():
        suggestions = agents.get(name, space).propose(history, 3, np.random.default_rng(0))
        return [(one.architecture.key, one.mean, one.std, one.acquisition) for one in suggestions]

    first = proposed()
    assert files()
    assert proposed() == first
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    monkeypatch.setenv("ARCHIVE_HOME", str(blocked))
    assert proposed() == first


def test_a_portfolio_prepares_each_member_once_for_each_kind(tmp_path, monkeypatch):
    prepared: Counter[tuple[str, str]] = Counter()
    for made in (WeisfeilerLehman, TopologyFeatures):

        def prepare(self, architecture, real=made.prepare):
            prepared[type(self).__name__, architecture.key] += 1
            return real(self, architecture)

        monkeypatch.setattr(made, "prepare", prepare)

    space = small_table(tmp_path, 120)
    portfolio = agents.get("portfolio", space)
    for count in (0, 12, 20):
        portfolio.propose(known(space.members()[:count]), 2, np.random.default_rng(0))

    live = [one.functional.key for one in space.members()]
    assert prepared == {
        (name, key): 1 for name in ("WeisfeilerLehman", "TopologyFeatures") for key in live
    }


def test_of_a_space_beyond_the_limit_a_draw_is_listed(tmp_path, monkeypatch):
    space = small_table(tmp_path)
    members = space.members()
    monkeypatch.setattr(listing, "MOST_LISTED", len(members))
    assert members_of(space) is members
    assert isinstance(
        candidate_generators.get("auto", space), candidate_generators.ListedCandidates
    )
    monkeypatch.setattr(listing, "MOST_LISTED", 20)
    drawn = members_of(space)
    assert drawn is not None and len({one.key for one in drawn}) == 20
    assert drawn == members_of(space) and drawn != list(members[:20]) and set(drawn) <= set(members)
    assert (count_listed(space), count_listed(Chains())) == (20, 0)
    # A table too large to keep its networks builds the same ones when they are drawn.
    packed = PackedArchitectures(space.name, pack(members))
    with monkeypatch.context() as patch:
        patch.setattr(space, "members", lambda: packed)
        assert list(members_of(space) or ()) == list(drawn)

    assert isinstance(
        candidate_generators.get("auto", space), candidate_generators.SampledCandidates
    )
    assert isinstance(
        candidate_generators.get("auto", space, cheap=False), candidate_generators.EvolvedCandidates
    )
    # `members` by name is the whole list.
    every = candidate_generators.listing_of(candidate_generators.get("members", space))
    assert every is not None and len(every) == len(members)
    assert members_of(Chains()) is None


@pytest.mark.parametrize("name", ["portfolio", "tw", "gp-wl", whole("bananas")])
def test_beyond_the_limit_agents_prepare_the_draw_alone(tmp_path, name, monkeypatch):
    monkeypatch.setattr(listing, "MOST_LISTED", 50)
    listed = []
    monkeypatch.setattr(Listing, "__init__", _noting(listed, Listing.__init__))
    space = small_table(tmp_path, 400)
    history = known(space.members()[:15])
    suggestions = agents.get(name, space).propose(history, 2, np.random.default_rng(0))
    assert len({one.architecture.functional_key for one in suggestions} - set(history.known)) == 2
    assert all(space.contains(one.architecture) for one in suggestions)
    assert max(listed) == 50


def _noting(sizes, real):
    def begin(self, members):
        sizes.append(len(members))
        real(self, members)

    return begin


def test_local_search_leaves_the_draw(monkeypatch):
    monkeypatch.setattr(listing, "MOST_LISTED", 10)
    space = spaces.get("nasbench201")

    def rank(networks):
        return np.array([score(one) for one in networks])

    drawn = members_of(space)
    candidates = candidate_generators.get("auto", space).candidates(
        History(), rank, 5, np.random.default_rng(0)
    )
    ranks = [one.rank for one in candidates]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > max(map(score, drawn)) and space.contains(
        candidates[0].candidate.architecture
    )


def test_rows_of_the_kinds_of_this_test_are_cheap():
    assert all(make().cheap_rows for make in KINDS.values())


@pytest.mark.parametrize("symmetric", [True, False])
def test_blocks_between_members_are_those_of_the_kinds_to_the_last_bit(symmetric, monkeypatch):
    members = spaces.get("nasbench201").members()[::9]
    kinds = [WeisfeilerLehman(), TopologyFeatures()]
    rng = np.random.default_rng(0)
    first, second = ([members[at] for at in rng.permutation(len(members))[:n]] for n in (120, 90))
    other = None if symmetric else second
    plain = CachedDistances(kinds).distances(first, other).stack
    listed = CachedDistances(kinds, Listing(members))
    with monkeypatch.context() as patch:
        # The vectors exist already: no network is prepared individually.
        patch.setattr(Gram, "distances", None)
        assert listed.distances(first, other).stack.tobytes() == plain.tobytes()

    stranger = a_stranger_to(members)
    mixed = [*first, stranger]
    assert np.array_equal(
        listed.distances(mixed, other).stack, CachedDistances(kinds).distances(mixed, other).stack
    )


def a_stranger_to(members):
    """Return a cell that is not among the members."""
    known = {one.key for one in members}
    return next(one for one in spaces.get("nasbench201").members() if one.key not in known)


class Sizes(Distance):
    """Difference of the numbers of layers: a kernel of another package, without features but with
    cheap rows."""

    name = "sizes"
    cheap_rows = True
    components = ("sizes",)
    unnormalised = 1

    def prepare(self, architecture):
        return architecture

    def distances(self, first, second=None):
        sizes = [
            np.array([len(one.layers) for one in side], float) for side in (first, second or first)
        ]
        return Components.of_stack(np.abs(np.subtract.outer(*sizes))[None], 1)


def test_a_kernel_without_features_ranks_a_whole_space_where_its_rows_are_cheap():
    space = spaces.get("nasbench201")
    made = method(space, [Sizes()], PRESETS["default"])
    assert made.source.name == "members"
    listed = made.surrogate.pairwise
    members = listed.listing.members
    np.testing.assert_array_equal(
        listed.distances(members[:3], members).stack, Sizes().distances(members[:3], members).stack
    )
    history = known(members[:40:4])
    assert len(ModelBased(space, 0, made).propose(history, 2, np.random.default_rng(0))) == 2
