"""Documents of `archive arch`."""

from __future__ import annotations

from typing import Any, Literal

from archive.cli.documents.base import Document, JsonObject


class EvaluationItem(JsonObject):
    """A result of an architecture.

    Attributes:
        evaluation: Its id.
        task: Name of the task.
        protocol: How it was measured.
        value: The objective.
        epochs: Epochs trained.
        seconds: Wall-clock time of the training.
    """

    evaluation: str
    task: str
    protocol: str
    value: float | None
    epochs: int | None
    seconds: float | None


class ProxyItem(JsonObject):
    """A zero-cost proxy of an architecture.

    Attributes:
        task: Name of the task whose inputs it was measured with.
        protocol: Protocol of the task.
        source: Definitions of the proxies: `archive/1`, or an imported table.
        proxy: Name of the proxy.
        score: The score; null where the proxy is not defined for the network.
    """

    task: str
    protocol: str
    source: str
    proxy: str
    score: float | None


class ArchitectureDocument(Document):
    """One architecture.

    Attributes:
        key: Identity of the labelled graph.
        functional_key: The same without layers on no path from input to output.
        space: Name of the space.
        depth: Layers on the longest path.
        layers: Number of layers.
        edges: Number of edges.
        mass: Sum of the layers' masses.
        params: Number of trained parameters, once it is known.
        flops: Multiply-adds of one input, once they are known.
        note: Note of a user.
        tags: Tags of users.
        parents: Keys of the architectures that it was made from.
        children: Keys of those that were made from it.
        text: Its NAS-Bench-201 string or its genotype; null in other spaces.
        architecture: The graph: `schema`, `space`, `layers`, `edges`, as `archive arch` reads it
            from a file.
        evaluations: Its results in all studies.
        proxies: Its zero-cost proxies on all tasks.
    """

    key: str
    functional_key: str
    space: str
    depth: int
    layers: int
    edges: int
    mass: float
    params: float | None
    flops: float | None
    note: str | None
    tags: list[str]
    parents: list[str]
    children: list[str]
    text: str | None
    architecture: dict[str, Any]
    evaluations: list[EvaluationItem]
    proxies: list[ProxyItem]


class DistanceItem(JsonObject):
    """A distance of two architectures.

    Attributes:
        kernel: Name of the kernel.
        component: Name of its component.
        distance: The distance.
    """

    kernel: str
    component: str
    distance: float | None


class DistanceList(Document):
    """Distances between two architectures.

    Attributes:
        distances: One row a kernel and component.
    """

    distances: list[DistanceItem]


class NeighbourItem(JsonObject):
    """An architecture near another one.

    Attributes:
        key: Its key.
        distance: How far it is.
        layers: Number of its layers.
        edges: Number of its edges.
        evaluations: Number of its results, in all studies.
    """

    key: str
    distance: float
    layers: int
    edges: int
    evaluations: int


class NeighbourList(Document):
    """The architectures that are nearest to one.

    Attributes:
        neighbours: The nearest first.
        certain: How many of them, from the first on, are sure to be the nearest.
        compared: Architectures that were compared in full.
        among: Architectures that were searched.
        left_out: Architectures of the space on which the kernel is not defined.
    """

    neighbours: list[NeighbourItem]
    certain: int
    compared: int
    among: int
    left_out: int


class ArchitecturePicture(Document):
    """A picture of an architecture.

    Attributes:
        key: Key of the architecture.
        file: The file; null where none was written.
        format: `svg`, `png` or `text`.
        bytes: Size of the file.
        lines: The picture as text.
    """

    key: str
    file: str | None
    format: Literal["svg", "png", "text"]
    bytes: int | None
    lines: list[str]


class ProxyScoresItem(JsonObject):
    """The zero-cost proxies of one network.

    Attributes:
        architecture: Key of the architecture.
        scores: Score by proxy; null where it is not defined for the network.
    """

    architecture: str
    scores: dict[str, float | None]


class ProxyList(Document):
    """Zero-cost proxies of networks on a task.

    Attributes:
        task: Name of the task.
        protocol: Its protocol.
        source: Definitions of the proxies.
        measured: Number of networks that were measured now; the others were known.
        networks: By key.
    """

    task: str
    protocol: str
    source: str
    measured: int
    networks: list[ProxyScoresItem]
