"""`archive agent-instructions`: the page that a program in a loop reads."""

from __future__ import annotations

from pathlib import Path

import click

from archive.cli.render import json_option, open_archive, print_data, print_json


@click.command(short_help="Write what a language model in a loop of runs should call, and when.")
@click.option(
    "--study",
    metavar="NAME",
    show_default="the repository or the folder",
    help="Study of the runs; it need not exist yet.",
)
@json_option
@click.pass_context
def agent_instructions(ctx: click.Context, study: str | None, as_json: bool) -> None:
    """Write a page for a language model, or a script, that edits a program and runs it in a loop.

    It says what to call before, for and after a run: commands, and MCP tools. It has the study's
    name, its metric, its direction and its best run.

    Example: archive agent-instructions --study tuning >> AGENTS.md
    """
    from archive.runs.agent_instructions import study_of_folder, write_instructions
    from archive.store.studies.creation import check_new_name

    name = study_of_folder(Path.cwd()) if study is None else study
    check_new_name(name)
    with open_archive(ctx) as archive:
        instructions = write_instructions(archive, name)

    if as_json:
        print_json(instructions)
    else:
        print_data(instructions.text)
