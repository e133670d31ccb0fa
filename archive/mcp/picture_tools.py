"""Tool that draws a network, as text for a model and as SVG for its user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from archive import drawing
from archive.api import Archive
from archive.architecture.diagram import diagram, svg
from archive.errors import UsageError
from archive.mcp.arguments import NetworkArgument, network_of
from archive.mcp.limits import MOST_BYTES


@dataclass(frozen=True)
class NetworkPicture:
    """A picture of a network: lines of text, or one SVG document."""

    key: str
    form: Literal["text", "svg"]
    content: str


def draw(
    archive: Archive,
    network: NetworkArgument,
    form: Annotated[
        Literal["text", "svg"], Field(description="Lines of text with the wiring, or an SVG document to save.")
    ] = "text",
) -> NetworkPicture:
    """Draw a network, input on top, with repeated parts folded."""
    drawn = network_of(archive, network)
    content = svg(drawn) if form == "svg" else "\n".join(str(line).rstrip() for line in drawing.text(diagram(drawn)))
    size = len(content.encode())
    if size > MOST_BYTES:
        raise UsageError(f"the picture has {size} bytes, at most {MOST_BYTES} fit: archive arch draw writes a file")
    return NetworkPicture(drawn.key, form, content)
