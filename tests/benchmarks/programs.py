"""Measuring programs of the maintainers: `python -m tests.benchmarks NAME …`, from the root.

They take the options of `archive` before their name, such as `--db`, and report errors as it does.
"""

from __future__ import annotations

from unittest.mock import patch

from archive.cli import main as command_line

PARTS = "tests.benchmarks.parts"

PROGRAMS = {
    "agents": (PARTS, "agents", "Measure mutations and proposals."),
    "autoformer": (
        "tests.benchmarks.parameters.autoformer",
        "autoformer",
        "Rank vision transformers after thirty labels.",
    ),
    "dashboard": (PARTS, "dashboard", "Measure the page with many evaluations."),
    "decoder-parts": (PARTS, "decoder_parts", "Measure the parts of decoders."),
    "drawing": (PARTS, "drawing", "Measure pictures of networks."),
    "first": (
        "tests.benchmarks.searches.first",
        "first",
        "Measure the first command over several seeds.",
    ),
    "fleet": (PARTS, "fleet", "Measure a server with a simulated fleet of trainers."),
    "hybrid": (
        "tests.benchmarks.parameters.hybrid",
        "hybrid",
        "Search with a proposer that overrides some of the agent's proposals.",
    ),
    "kernels": (PARTS, "kernels", "Measure the kernels: exactness, axioms, speed."),
    "morphism": (PARTS, "morphism", "Measure weight inheritance."),
    "objectives": (
        "tests.benchmarks.searches.objectives",
        "objectives",
        "Compare agents on several objectives, or under constraints.",
    ),
    "parameters-fronts": (
        "tests.benchmarks.parameters.fronts",
        "parameters_fronts",
        "Compare agents on language models with two objectives beside other optimisers.",
    ),
    "parameters-speed": (
        "tests.benchmarks.parameters.speed",
        "parameters_speed",
        "Time proposals on forty mixed parameters.",
    ),
    "parameters": (
        "tests.benchmarks.parameters.command",
        "parameters",
        "Compare agents on spaces of parameters beside other optimisers.",
    ),
    "prediction": (
        "tests.benchmarks.agents.prediction",
        "prediction",
        "Measure predictions of families that were left out.",
    ),
    "scaling": (
        "tests.benchmarks.scaling.command",
        "scaling",
        "Forecast larger trainings of language models from smaller ones.",
    ),
    "store": (PARTS, "store", "Measure the embedded server."),
    "surrogates": (PARTS, "surrogates", "Measure exactness, speed and rank correlation."),
    "throughput": (PARTS, "throughput", "Measure life cycles a second beside Optuna's storages."),
    "trainer": (PARTS, "trainer", "Measure trials beside a plain training loop."),
    "transfer": ("tests.benchmarks.transfer.command", "transfer", "Measure warm starts."),
}
"""Module, command and summary of each program."""


def main(arguments: list[str] | None = None) -> None:
    """Run a program, and exit as `archive` does."""
    with patch.dict(command_line.COMMANDS, PROGRAMS, clear=True):
        command_line.main(arguments)
