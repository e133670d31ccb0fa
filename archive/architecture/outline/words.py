"""Modules as texts: `conv 7×7 /2 64 batch relu, max pool 3×3 /2`."""

from __future__ import annotations

from collections.abc import Iterable

from archive.architecture.outline.modules import NetworkModule

_TRANSPARENT = ("norm", "activation", "reshape")


def module_text(modules: Iterable[NetworkModule], *, bare: bool = False) -> str:
    """Return modules as a text: `conv 7×7 /2 64, max pool 3×3 /2`.

    Args:
        modules: The modules.
        bare: Whether channels are left out, and norms and activations alone.
    """
    texts = []
    for module in modules:
        if bare and module.kind in _TRANSPARENT:
            continue

        text = _text(module, bare=bare)
        if text:
            texts.append(text)

    return (" + " if bare else ", ").join(texts)


def _text(module: NetworkModule, *, bare: bool = False) -> str:
    """Return a module as a text."""
    properties = module.properties
    words = [module.kind]
    kernel = properties.get("kernel")
    if module.kind == "conv" and kernel == properties.get("stride") and int(kernel or 1) > 1:
        words = ["patches"]
    elif module.kind == "pool":
        words = [f"{properties.get('pool', '')} pool"]
    elif module.kind == "mean":
        words = ["mean"]

    if module.kind in ("conv", "pool") and kernel:
        words.append(f"{kernel}×{kernel}")

    if properties.get("depthwise"):
        words.insert(0, "depthwise")

    if int(properties.get("stride", 1)) > 1 and words[0] != "patches":
        words.append(f"/{properties['stride']}")

    if bare:
        return " ".join(words)

    if "channels" in properties and module.kind != "mean":
        words.append(str(properties["channels"]))

    for name in ("norm", "activation"):
        if name in properties and module.kind != name:
            words.append(str(properties[name]))
        elif name in properties:
            words[0] = f"{properties[name]} {module.kind}"

    if "tokens" in properties:
        words.append(f"+ {properties['tokens']} tokens")

    if properties.get("position_embedding"):
        words.append("+ position embedding")

    return " ".join(words)
