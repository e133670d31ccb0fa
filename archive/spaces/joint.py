"""Networks of a space with parameters beside them: architecture and training searched together.

    spaces.beside("cnn", "knobs.toml")            spaces.get("cnn", beside=parameters)

An evaluation is of a pair: a network, and a configuration of the parameters.

- In agents, a member is one `Architecture`: the network's graph with the configuration on its input
  (`archive.architecture.parameter_operations.join`). Identity, mutation and sampling of agents work
  on members as on networks; distances read `member.network` and `member.configuration`.
- In an archive, the pair is stored apart: one `Architecture` node for the network, whatever its
  configurations, and the configuration as the hyperparameters of each proposal
  (`p.parameter_lr` in Cypher). Nearest networks, differences, pictures and weights are those of the
  network alone, and trainers need nothing new.
- `archive.queue.admission` takes members apart and refuses a second proposal of one pair, not of
  one network. `archive.agents.provenance` joins them for agents. A known result is reused where
  both parts are equal.
- A study has the name of the networks' space, so that tasks and trainers accept it, and the
  parameters in its settings, as a table of networks is one.

A joint graph of layers and parameters was the alternative. It would store one network many times,
and every distance and picture of the archive would have to leave the parameters out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from archive.architecture.graph import Architecture
from archive.architecture.layer import BESIDE
from archive.architecture.parameter_operations import join
from archive.errors import InvalidArchitectureError, SettingsError, UsageError
from archive.parameters.parameter_space import ParameterSpace
from archive.spaces.base import Mutation, Space
from archive.spaces.decisions import Decision, Decisions, Vector
from archive.spaces.parameters import ParameterDecisions, Parameters, changes

NETWORK_SHARE = 0.5
"""Share of the mutations that change the network; the others change one parameter."""

_MOST_LISTED = 20_000


@final
class JointSpace(Space):
    """Members of a space of networks, each with a configuration of parameters.

    Args:
        networks: The space of the networks.
        parameters: The parameters beside them.

    Attributes:
        name: Name of the networks' space.
        networks: The space of the networks.
        parameters: The parameters.

    Raises:
        SettingsError: The networks are configurations of parameters themselves, the parameters have
            a model, or a parameter has the name of a decision of the networks.
    """

    adopts = True

    def __init__(self, networks: Space, parameters: ParameterSpace) -> None:
        """Check that the two fit together."""
        if isinstance(networks, Parameters | JointSpace):
            raise SettingsError(
                f"parameters are put beside networks, and the space {networks.name} has parameters "
                "already: write all of them into one file"
            )

        if parameters.model is not None:
            raise SettingsError(
                f"the parameters beside the space {networks.name} cannot have a model: their "
                "networks are the space's"
            )

        self.name = networks.name
        self.networks = networks
        self.parameters = parameters
        decisions = networks.named(networks.initial_pool()[0]) if networks.searchable else {}
        for name in parameters.names:
            if name in decisions:
                raise SettingsError(f"the space {networks.name} has a decision {name} already")

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the networks' space, and the parameters as `beside`."""
        return {**self.networks.config, BESIDE: self.parameters.json()}

    def __repr__(self) -> str:
        """Name the networks, and count the parameters."""
        return f"spaces.beside({self.networks!r}, {self.parameters!r})"

    def part(self, parameters: ParameterSpace) -> JointSpace:
        """Return the space with a part of its parameters' space."""
        return JointSpace(self.networks, parameters)

    @property
    def searchable(self) -> bool:
        """See `Space.searchable`."""
        return self.networks.searchable

    def member(self, network: Architecture, values: Mapping[str, Any]) -> Architecture:
        """Return a network with parameters beside it.

        Args:
            network: A network of `networks`.
            values: Values by flat name, or a tree as `ParameterSpace.nested` returns it. Parameters
                with a default may be left out.

        Raises:
            InvalidArchitectureError: The network or the values are outside the space.
        """
        plain = network.network
        self.networks.validate(plain)
        try:
            flat = self.parameters.supply(self.parameters.flat(values))
            return join(plain, self.parameters.check(flat))
        except UsageError as error:
            raise InvalidArchitectureError(str(error)) from None

    def configuration_of(self, member: Architecture) -> dict[str, Any]:
        """Return the parameters of a member by flat name, in the order of the space.

        Raises:
            InvalidArchitectureError: They are no configuration of the space.
        """
        try:
            return self.parameters.check(self.parameters.supply(member.configuration))
        except UsageError as error:
            raise InvalidArchitectureError(str(error)) from None

    def validate(self, architecture: Architecture) -> None:
        """Check the network and the configuration.

        Raises:
            InvalidArchitectureError: One of them is outside its space.
        """
        self.networks.validate(architecture.network)
        self.configuration_of(architecture)

    def named(self, architecture: Architecture) -> dict[str, Any]:
        """See `Space.named`: the decisions of the network, then the parameters."""
        named = dict(self.networks.named(architecture.network))
        return {**named, **self.configuration_of(architecture)}

    def parameters_of(self, architecture: Architecture) -> dict[str, Any]:
        """See `Space.parameters_of`."""
        try:
            configuration = self.configuration_of(architecture)
        except InvalidArchitectureError:
            return {}

        named = self.networks.parameters_of(architecture.network)
        return {**named, **self.parameters.nested(configuration)}

    def of_names(self, names: Mapping[str, Any]) -> Architecture:
        """See `Space.of_names`, of networks that are made of decisions with names."""
        groups = {*self.parameters.names, *self.parameters.declared}
        values = {name: value for name, value in names.items() if name in groups}
        others = {name: value for name, value in names.items() if name not in groups}
        return self.member(self.networks.of_names(others), values)

    def complete(self, network: Architecture, names: Mapping[str, Any]) -> Architecture:
        """Return a network with some parameters, and the central values of the others.

        Raises:
            InvalidArchitectureError: The network or a value is outside the space.
        """
        try:
            values = self.parameters.complete(self.parameters.flat(names))
        except UsageError as error:
            raise InvalidArchitectureError(str(error)) from None

        return self.member(network, values)

    def fill(self, names: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Space.fill`."""
        groups = {*self.parameters.names, *self.parameters.declared}
        values = {name: value for name, value in names.items() if name in groups}
        others = {name: value for name, value in names.items() if name not in groups}
        completed = self.parameters.complete(self.parameters.flat(values))
        return {**self.networks.fill(others), **completed}

    def adopt(self, architecture: Architecture) -> Architecture | None:
        """See `Space.adopt`: completed by defaults; None without a configuration of this part."""
        try:
            return self.member(architecture, architecture.configuration)
        except InvalidArchitectureError:
            return None

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return the networks' pool in random order, with configurations drawn from priors.

        Where a parameter has a default or a prior, the first configuration has these values.
        """
        generator = np.random.default_rng(0) if rng is None else rng
        networks = self.networks.initial_pool(rng)
        pool = []
        # Each configuration is new: without the permutation, a search that asks for one member at a
        # time would get the first network again and again.
        for index in generator.permutation(len(networks)).tolist():
            pool.append(join(networks[index], self.parameters.sample(generator, prior=True)))

        if self.parameters.has_expectations:
            expected = self.parameters.complete({})
            if self.parameters.allows(expected):
                pool[0] = join(networks[0], expected)

        return pool

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw the network and the parameters, independently."""
        return join(self.networks.sample(rng), self.parameters.sample(rng))

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Change the network or one parameter, with equal probability."""
        configuration = self.configuration_of(architecture)
        first_network = rng.random() < NETWORK_SHARE
        for changes_network in (first_network, not first_network):
            if changes_network:
                mutation = self.networks.mutate(architecture.network, rng)
                child = join(mutation.child, configuration)
                operations = mutation.operations
            else:
                after = self.parameters.mutate(configuration, rng)
                child = join(architecture.network, after)
                operations = changes(configuration, after)

            if operations:
                return Mutation(child, operations)

        return Mutation(architecture, ())

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the neighbours of the configuration, then the network's."""
        configuration = self.configuration_of(architecture)
        for after in self.parameters.neighbours(configuration):
            yield Mutation(join(architecture.network, after), changes(configuration, after))

        for mutation in self.networks.neighbours(architecture.network):
            yield Mutation(join(mutation.child, configuration), mutation.operations)

    def members(self) -> Sequence[Architecture] | None:
        """Return every pair, of at most 20,000."""
        if self.parameters.size > _MOST_LISTED:
            return None

        networks = self.networks.members()
        if networks is None or len(networks) * self.parameters.size > _MOST_LISTED:
            return None

        if "_members" not in vars(self):
            members = []
            for configuration in self.parameters.every():
                for network in networks:
                    members.append(join(network, configuration))

            self.__dict__["_members"] = tuple(members)

        listed: tuple[Architecture, ...] = self.__dict__["_members"]
        return listed

    def decisions(self) -> Decisions | None:
        """Return the decisions of both parts; None where one has none."""
        of_networks = self.networks.decisions()
        of_parameters = Parameters(self.parameters).decisions()
        if of_networks is None or not isinstance(of_parameters, ParameterDecisions):
            return None

        return JointDecisions(self, of_networks, of_parameters)


@final
class JointDecisions(Decisions):
    """Decisions of the networks, then of the parameters.

    Args:
        space: The space.
        of_networks: Decisions of its networks.
        of_parameters: Decisions of its parameters.
    """

    def __init__(
        self, space: JointSpace, of_networks: Decisions, of_parameters: ParameterDecisions
    ) -> None:
        """Concatenate them."""
        super().__init__(space)
        self._of_networks = of_networks
        self._of_parameters = of_parameters
        self._count = len(of_networks.decisions)
        taken = {decision.name for decision in of_networks.decisions}
        decisions = list(of_networks.decisions)
        for decision in of_parameters.decisions:
            name = decision.name
            while name in taken:
                name += "_"

            decisions.append(Decision(name, decision.choices, decision.ordered))

        self.decisions = tuple(decisions)
        self.roots = of_networks.roots

    def needed(self, prefix: Sequence[int]) -> bool:
        """See `Decisions.needed`."""
        if len(prefix) < self._count:
            return self._of_networks.needed(prefix)

        return self._of_parameters.needed(prefix[self._count :])

    def encode(self, architecture: Architecture) -> Vector | None:
        """See `Decisions.encode`."""
        if not architecture.configuration:
            return None

        first = self._of_networks.encode(architecture.network)
        if first is None or not self.space.contains(architecture):
            return None

        return (*first, *self._of_parameters.encode_values(architecture.configuration))

    def build(self, vector: Vector) -> Architecture:
        """See `Decisions.build`."""
        network = self._of_networks.build(vector[: self._count])
        return join(network, self._of_parameters.values(vector[self._count :]))


def joint_space_of(space: Space) -> JointSpace | None:
    """Return a space of networks and parameters, also below constraints; None for another space."""
    return space.whole if isinstance(space.whole, JointSpace) else None
