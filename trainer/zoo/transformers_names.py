"""Configurations of the installed package `transformers`, by the name of a class or a family."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from archive.errors import SettingsError, UnknownNameError


def config_of(name: str) -> dict[str, Any]:
    """Return the default configuration of a class or a model type of `transformers`.

    Args:
        name: `LlamaForCausalLM`, `LlamaConfig` or `llama`.

    Raises:
        SettingsError: The package is not installed.
        UnknownNameError: It has no such class or model type.
    """
    try:
        transformers = import_module("transformers")
        mapping = import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    except ImportError:
        raise SettingsError(
            f"{name!r:.60} is no file, and names of classes need transformers: "
            "pip install 'nas-archive[frameworks]'"
        ) from None

    # It warns of ids of tokens, which no architecture has.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    if name in mapping:
        configuration = mapping[name]
    else:
        configuration = _class_of(transformers, name)

    if configuration is None:
        raise UnknownNameError(
            "file, class or model type of transformers", name, list(mapping.keys())
        )

    values: dict[str, Any] = configuration().to_dict()
    values["_name_or_path"] = ""
    return values


def _class_of(transformers: Any, name: str) -> Any:
    """Return a class of configurations by its name, or by the name of its model; None without."""
    if not name.isidentifier() or not name[0].isupper():
        return None

    try:
        member = getattr(transformers, name, None)
        if name.endswith("Config"):
            return member if hasattr(member, "model_type") else None

        return getattr(member, "config_class", None)
    except ImportError:
        # Classes whose packages are missing, none of them a language model, have no attributes.
        return None
