"""Tool that draws a network, as text for a model and as SVG for its user."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from archive import drawing
from archive.api import Archive
from archive.architecture.diagram import diagram
from archive.errors import UsageError
from archive.kernels.differences import difference
from archive.kernels.differences.picture import difference_diagram
from archive.mcp import limits
from archive.mcp.arguments import NetworkArgument, network_of
from archive.mcp.limits import compact


@dataclass(frozen=True)
class NetworkPicture:
    """A picture of a network, or of its difference to a second one: lines of text, or one SVG
    document.
    """

    key: str
    second: str | None
    form: Literal["text", "svg"]
    content: str


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
    shown = (
        diagram(drawn)
        if other is None
        else difference_diagram(difference(drawn.canonical, other.canonical))
    )
    lines = (str(line).rstrip() for line in drawing.text(shown))
    content = drawing.svg(shown) if form == "svg" else "\n".join(lines)
    picture = NetworkPicture(drawn.key, None if other is None else other.key, form, content)
    # Without the cut of long texts.
    size = len(compact(asdict(picture)).encode())
    if size > limits.MOST_BYTES:
        raise UsageError(
            f"the picture has {size} bytes, at most {limits.MOST_BYTES} fit: archive arch draw "
            "writes a file"
        )

    return picture
