"""What every built-in agent is: what it does by default, its paper, what a proposal costs, and when to choose it.

A table beside the classes, so that `archive agents` loads none of them. n is the number of observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Card:
    """What to know of an agent before choosing it.

    Attributes:
        summary: What it does by default; then, where it has a preset `paper`, what that is.
        paper: Where it is from.
        cost: What a proposal costs.
        when: When to choose it.
        transfers: Whether it learns from studies of other tasks, where it is given them to start warm from.
    """

    summary: str
    paper: str
    cost: str
    when: str
    transfers: bool = False


_BANANAS = "White et al., 2021 (BANANAS)"
_KANDASAMY = "Kandasamy et al., 2018 (NASBOT)"
_MORPHISM = "Jin et al., 2019 (Auto-Keras)"
_TREE_WASSERSTEIN = "Nguyen et al., 2021 (tree-Wasserstein)"

CARDS: Mapping[str, Card] = MappingProxyType(
    {
        "arc": Card(
            "Gaussian process with the Arc kernel, on architecture and training hyperparameters together; "
            "preset=paper: length scales of every layer, a longer chain",
            "Swersky et al., 2014 (Raiders of the Lost Architecture)",
            "O(n^3) a set of hyperparameters",
            "depth, widths, learning rate and dropout are to be found together",
        ),
        "bananas": Card(
            "ensemble of five networks on counted paths, neighbourhoods and cell profiles, UCB over the whole space, "
            "one by one; preset=paper: path encoding, mutations of the best, one ranking a batch",
            _BANANAS,
            "O(n), one training of the ensemble a batch",
            "cells, batches, thousands of observations",
            transfers=True,
        ),
        "bfs": Card(
            "breadth-first search over all modifications, blind to scores",
            _MORPHISM,
            "milliseconds",
            "as the baseline of morphism search",
        ),
        "evolution": Card(
            "NASBOT's optimiser on real scores: mutations of networks, the better the likelier",
            _KANDASAMY,
            "milliseconds",
            "as a baseline; evaluations are cheap and many run at once",
        ),
        "gp": Card(
            "Gaussian process on any kernel of the registry, any acquisition and batch rule; EI, a shared prior; "
            "preset=paper, as of all gp-*: UCB, maximum likelihood, a pool of 100",
            "all of them",
            "O(n^3)",
            "to try a kernel of your own, or a rule on a kernel of ours",
        ),
        "gp-adjacency": Card(
            "Gaussian process on the adjacency encoding",
            _BANANAS,
            "O(n^3)",
            "as a baseline of encodings",
        ),
        "gp-gromov-wasserstein": Card(
            "Gaussian process on Gromov-Wasserstein distances",
            _TREE_WASSERSTEIN,
            "O(n^3), and an optimal transport problem a pair of networks",
            "as a baseline of distances; wiring matters more than operations",
        ),
        "gp-hamming": Card(
            "Gaussian process on Hamming distances of matrices and operations",
            _BANANAS,
            "O(n^3)",
            "as the paper's Gaussian process baseline, with preset=paper",
        ),
        "gp-optuna": Card(
            "Optuna's GPSampler: one Gaussian process over categorical decisions, log-EI",
            "Optuna 4",
            "O(n^3); half a second at 100 observations",
            "to compare with what can be installed; cells",
        ),
        "gp-path": Card(
            "Gaussian process on the path encoding",
            _BANANAS,
            "O(n^3)",
            "cells, and hundreds of observations at most",
        ),
        "gp-wasserstein": Card(
            "Gaussian process on Wasserstein distances of layers",
            _TREE_WASSERSTEIN,
            "O(n^3), and an optimal transport problem a pair of networks",
            "as a baseline of distances",
        ),
        "gp-wl": Card(
            "Gaussian process on the Weisfeiler-Lehman kernel",
            "Ru et al., 2021 (NAS-BOWL)",
            "O(n^3)",
            "cells, from the first evaluations on",
        ),
        "hill-climbing": Card(
            "generations of mutations of the best network so far",
            "Elsken et al., 2017 (SEAS)",
            "milliseconds",
            "few evaluations near a good network; as a baseline of morphism search",
        ),
        "local-search": Card(
            "all neighbours of the best network, and a new start at every local optimum",
            "White et al., 2020",
            "milliseconds",
            "small spaces with little noise; a strong and simple baseline",
        ),
        "morphism": Card(
            "Gaussian process on the edit distance, UCB over chains of morphisms by A* and annealing; "
            "preset=paper: Bourgain embedding, layers by width, nothing learnt",
            _MORPHISM,
            "O(n^3), and a matching problem a pair of networks",
            "children shall inherit the weights of their parents",
        ),
        "nasbot": Card(
            "Gaussian process on optimal transport distances of networks, EI by evolution",
            _KANDASAMY,
            "O(n^3) a hyperparameter sample, and a transport problem a pair of networks",
            "free-form networks, evaluations of minutes or hours",
        ),
        "portfolio": Card(
            "several surrogates on one history, weighted by how well each has predicted it",
            "this archive's own",
            "the sum of its members",
            "no surrogate is known to suit the space",
            transfers=True,
        ),
        "rand": Card(
            "NASBOT's schedule with a random acquisition",
            _KANDASAMY,
            "the mutations of NASBOT",
            "as the random baseline of NASBOT",
        ),
        "random": Card(
            "independent samples of the space",
            "Li and Talwalkar, 2019",
            "milliseconds",
            "as the baseline of everything; to fill an archive without bias",
        ),
        "regularized-evolution": Card(
            "tournaments in a population from which the oldest is removed",
            "Real et al., 2019; settings of BANANAS and NAS-Bench-101",
            "milliseconds",
            "hundreds of cheap, noisy evaluations, many at once",
        ),
        "reinforce": Card(
            "policy gradient on independent decisions",
            "Williams, 1992; Ying et al., 2019 (NAS-Bench-101)",
            "O(n)",
            "as the reinforcement-learning baseline; thousands of evaluations",
        ),
        "tpe": Card(
            "Optuna's tree-structured Parzen estimator over categorical decisions",
            "Bergstra et al., 2011",
            "O(n) a decision",
            "to compare with what can be installed; conditional decisions",
        ),
        "treebo": Card(
            "Gaussian process over tree-structured decisions, a linear part shared by all leaves",
            "Jenatton et al., 2017, as in NASBOT",
            "O(n^3); half a second at 100 observations",
            "feed-forward networks whose depth is open",
        ),
        "tw": Card(
            "Gaussian process on tree-Wasserstein distances and sizes, on cells counted paths and profiles too, EI; "
            "preset=paper: the tree-Wasserstein distance of 2-grams alone, UCB",
            _TREE_WASSERSTEIN,
            "O(n^3)",
            "cells, one evaluation at a time",
            transfers=True,
        ),
        "tw-kdpp": Card(
            "the model of tw, batches drawn from a k-DPP with quality EI^5; "
            "preset=paper: the model of that preset, quality exp(mean)",
            _TREE_WASSERSTEIN,
            "O(n^3), and the spectrum of the candidates' covariance",
            "cells, several evaluations at a time",
            transfers=True,
        ),
    }
)
