"""The registry of proxies by name: built-in ones and proxies of other packages."""

from __future__ import annotations

from archive.errors import SettingsError
from archive.registry import Registry
from archive.trainer.proxies.base import Proxy

registry = Registry(
    "proxy",
    "archive.proxies",
    {
        "expressivity": "archive.trainer.proxies.activations:expressivity",
        "fisher": "archive.trainer.proxies.gradients:fisher",
        "grad_norm": "archive.trainer.proxies.gradients:grad_norm",
        "jacov": "archive.trainer.proxies.activations:jacov",
        "naswot": "archive.trainer.proxies.activations:naswot",
        "snip": "archive.trainer.proxies.gradients:snip",
        "synflow": "archive.trainer.proxies.gradients:synflow",
        "zen": "archive.trainer.proxies.activations:zen",
    },
)


def names() -> tuple[str, ...]:
    """Return the sorted names of all proxies, without loading torch."""
    return registry.names()


def get(name: str) -> Proxy:
    """Return a proxy by its name.

    Raises:
        UnknownNameError: There is no proxy of this name.
        SettingsError: Another package's proxy cannot be loaded, or is none.
    """
    proxy = registry.load(name)
    if not isinstance(proxy, Proxy):
        raise SettingsError(
            f"the proxy {name!r} of {registry.package(name)} must be a Proxy, got "
            f"{type(proxy).__name__}"
        )

    return proxy
