"""Tools about one network: its graph, its picture, and what the archive knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from archive import drawing, spaces
from archive.agents.ask_tell.types import EnqueuedArchitecture
from archive.agents.prediction import predicting
from archive.agents.prediction.predicting import PredictionDocument
from archive.api import Archive
from archive.architecture import codec, texts
from archive.architecture.choice_operations import decision_labels
from archive.architecture.diagram import diagram
from archive.architecture.graph import Architecture
from archive.architecture.outline.changes import changes
from archive.architecture.outline.outline import outline
from archive.architecture.outline.summary import lines
from archive.errors import CodecError, InvalidArchitectureError, UnknownNameError, UsageError
from archive.kernels.differences import difference
from archive.kernels.differences.picture import difference_diagram
from archive.mcp import limits
from archive.mcp.arguments import NetworkArgument, TaskName, network_of
from archive.mcp.limits import compact, largest, size_of, take_first
from archive.queries.networks import KEY_OF_NETWORK
from archive.queries.results_of import OpenProposal, StoredResult, open_proposals, results
from archive.spaces import stored_spaces
from archive.store.studies.configurations import configuration_of_network

MOST_RESULTS = 200


@dataclass(frozen=True)
class NetworkGraph:
    """A network.

    `outline` has its blocks, a line each: stem, stages, head. `architecture` is its JSON, as other
    tools accept it, or null where that is too long; `configuration` has the values of its named decisions.
    """

    key: str
    functional_key: str
    space: str
    depth: int
    layers: int
    edges: int
    text: str | None
    outline: list[str]
    architecture: dict[str, Any] | None
    in_archive: bool
    parents: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)
    truncated: bool = False
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownNetwork:
    """What the archive knows of a network.

    `valid` says whether it is a network at all, `member` whether it is in the space of the study,
    or in its own space with default settings; `reason` says why not. The results are from all
    networks with the same `functional_key`, which compute the same function.
    """

    valid: bool
    member: bool
    reason: str | None
    key: str | None
    functional_key: str | None
    known: bool
    results: list[StoredResult]
    proposals: list[OpenProposal]
    reusable: float | None
    truncated: bool


def architecture(archive: Archive, network: NetworkArgument) -> NetworkGraph:
    """Show a network: blocks, layers and edges as JSON, its keys, size, parents and children."""
    shown = network_of(archive, network).canonical
    stored = bool(archive.query(KEY_OF_NETWORK, {"key": shown.key}).rows)
    details = (
        archive.architectures.details(shown.key) if stored else {"parents": [], "children": []}
    )
    listed: list[Sequence[Any]] = [
        details["parents"][:MOST_RESULTS],
        details["children"][:MOST_RESULTS],
    ]
    cut = listed != [details["parents"], details["children"]]
    items = sum(map(len, listed))
    configuration = _named(archive, shown)
    blocks = lines(outline(shown))[:MOST_RESULTS]

    def build(graph: dict[str, Any] | None, count: int) -> NetworkGraph:
        parents, children = take_first(count, *listed)
        return NetworkGraph(
            shown.key,
            shown.functional_key,
            shown.space,
            shown.depth,
            len(shown.layers),
            len(shown.edges),
            texts.to_text(shown),
            blocks,
            graph,
            stored,
            parents,
            children,
            truncated=cut or graph is None or count < items,
            configuration=configuration,
        )

    # The graph is worth more than its relatives.
    whole = codec.to_dict(shown)
    graph = whole if size_of(build(whole, 0), limits.MOST_BYTES) <= limits.MOST_BYTES else None
    return largest(partial(build, graph), items, text=limits.MOST_BYTES)


def is_known(
    archive: Archive,
    network: NetworkArgument,
    study: Annotated[
        str | None,
        Field(
            description="A study: whether its space has the network, and a known result answers it."
        ),
    ] = None,
) -> KnownNetwork:
    """Look up a network before it is trained: every result that any study or import has, and
    proposals on their way.

    An invalid network is answered with the reason. `reusable` is the value that a proposal in the
    study would get at once, without a training.
    """
    try:
        described = network_of(archive, network)
    except (CodecError, InvalidArchitectureError, UnknownNameError) as error:
        # The unknown name is a space or an operation: an unknown key is another error.
        return KnownNetwork(False, False, str(error), None, None, False, [], [], None, False)

    fault = _fault(archive, described, study)
    evaluations = results(archive.connection, described.functional_key, MOST_RESULTS + 1)
    pending = open_proposals(archive.connection, described.functional_key, MOST_RESULTS + 1)
    listed: list[Sequence[Any]] = [evaluations[:MOST_RESULTS], pending[:MOST_RESULTS]]
    items = sum(map(len, listed))
    more = len(evaluations) + len(pending)
    reusable = _reusable(archive, described, study)

    def first(count: int) -> KnownNetwork:
        shown, proposals = take_first(count, *listed)
        return KnownNetwork(
            True,
            fault is None,
            fault,
            described.key,
            described.functional_key,
            bool(evaluations),
            shown,
            proposals,
            reusable,
            truncated=count < more,
        )

    return largest(first, items)


def predict(
    archive: Archive,
    network: NetworkArgument,
    task: TaskName,
    protocol: Annotated[
        str,
        Field(
            description="How it would be trained and measured, 'timm/a1_in1k@224'. It may be new: "
            "words that it shares with others count."
        ),
    ],
    metric: Annotated[
        str | None, Field(description="Metric to predict, 'latency_ms'; the objective by default.")
    ] = None,
    k: Annotated[int, Field(ge=0, le=50, description="Number of relatives to name.")] = 5,
) -> PredictionDocument:
    """Predict the result of a network that nobody trained, from its graph and the recipe, with an
    interval that holds in 90 % of the cases and the results of the most similar networks.

    `validation` says how well whole families of networks are predicted from the others.
    """
    described = network_of(archive, network)
    return predicting.predict(archive, described, task, protocol, metric=metric, relatives=k)


def _fault(archive: Archive, network: Architecture, study: str | None) -> str | None:
    """Return why a network is not in the space of a study, or in its own space; None if it is."""
    if study is None:
        space = spaces.get(network.space)
    else:
        record = archive.studies.get(study)
        space = stored_spaces.of_record(
            record.space, record.space_config, archive.connection.settings.home
        )

    try:
        space.validate(network)
    except InvalidArchitectureError as error:
        return str(error)

    return None


def _reusable(archive: Archive, network: Architecture, study: str | None) -> float | None:
    if study is None:
        return None

    (answer,) = archive.answers.known(archive.studies.get(study), [EnqueuedArchitecture(network)])
    return None if answer is None else answer.value


def _named(archive: Archive, network: Architecture) -> Mapping[str, Any]:
    return configuration_of_network(archive.connection, network)


@dataclass(frozen=True)
class NetworkPicture:
    """A picture of a network, or of its difference to a second one: lines of text, or one SVG
    document. `changes` names the differences in words of blocks.
    """

    key: str
    second: str | None
    form: Literal["text", "svg"]
    content: str
    changes: list[str] = field(default_factory=list)


def draw(
    archive: Archive,
    network: NetworkArgument,
    second: Annotated[
        NetworkArgument | None,
        Field(description="Another network: the picture then shows what differs."),
    ] = None,
    form: Annotated[
        Literal["text", "svg"],
        Field(description="Lines of text with the wiring, or an SVG document to save."),
    ] = "text",
) -> NetworkPicture:
    """Draw a network, input on top, with repeated parts folded; or what turns it into a second
    one.
    """
    drawn = network_of(archive, network)
    other = None if second is None else network_of(archive, second)
    if other is None:
        drawn = archive.builds.network_of(drawn)
    else:
        drawn, other = archive.builds.networks_of([drawn, other])

    named: list[str] = []
    if other is None:
        shown = diagram(drawn, labels=decision_labels(drawn, _named(archive, drawn)))
    else:
        shown = difference_diagram(difference(drawn.canonical, other.canonical))
        named = [str(change) for change in changes(outline(drawn), outline(other))]

    texts_of = (str(line).rstrip() for line in drawing.text(shown))
    content = drawing.svg(shown) if form == "svg" else "\n".join(texts_of)
    second_key = None if other is None else other.key
    picture = NetworkPicture(drawn.key, second_key, form, content, named)
    # Without the cut of long texts.
    size = len(compact(asdict(picture)).encode())
    if size > limits.MOST_BYTES:
        raise UsageError(
            f"the picture has {size} bytes, at most {limits.MOST_BYTES} fit: "
            "archive arch draw writes a file"
        )

    return picture
