"""`archive study watch`: the live table of a search that runs elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from archive.cli.names import STUDY
from archive.cli.render import open_archive, print_message

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.cli.search.live import LiveView
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot


@click.command("watch", short_help="Watch a search that runs elsewhere.")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.pass_context
def watch(ctx: click.Context, name: str) -> None:
    """Watch a search that runs elsewhere, until its study is done; Ctrl-C does not stop the search.

    A live table on a terminal, otherwise a line for each event. A study is done when its budget is
    spent and no proposal waits or runs. For programs: archive study log STUDY --follow --json.
    """
    from archive.agents import loop
    from archive.cli.search.command import archive_command
    from archive.searches.interruption import Interruption
    from archive.searches.waiting import ClaimWatch, trainer_command

    with open_archive(ctx) as archive:
        look = archive.studies.follow(name)
        claims = ClaimWatch(archive, name, trainer_command(archive_command(ctx), name))
        with Interruption() as interruption, _view(archive, archive.studies.get(name)) as view:
            while True:
                snapshot = look()
                view.update(snapshot, claims.reason(snapshot))
                interruption.check()
                if is_done(snapshot):
                    break

                interruption.wait(loop.PAUSE)
                interruption.check()

    print_message(f"the study {name} is done")


def is_done(snapshot: Snapshot) -> bool:
    """Return whether nothing more can come of a study, unless its budget is raised."""
    from archive.searches.call import count_evaluated
    from archive.store.records import State

    counts = snapshot.counts
    return (
        not (counts[State.WAITING] or counts[State.RUNNING])
        and count_evaluated(counts) >= snapshot.study.budget
    )


def _view(archive: Archive, study: Study) -> LiveView:
    """Return the view that the search itself has, as far as the study tells about it."""
    from archive.agents import loop
    from archive.cli.search.live import LiveView
    from archive.searches.call import count_evaluated, place

    warm = 0
    if archive.studies.sources(study.name):
        observations = len(loop.history_of(archive, study).observations)
        warm = observations - count_evaluated(archive.studies.counts(study.name))

    protocol = study.config.get("protocol")
    agent = study.config.get("agent")
    epochs = protocol.get("epochs") if isinstance(protocol, dict) else None
    name = agent if isinstance(agent, str) else "agents"
    return LiveView(
        study, name, place(archive), epochs, max(0, warm), since=study.created, stream=sys.stdout
    )
