"""The run of a search: it opens a study, starts trainers, and runs the agent to the end.

    request -> study -> trainers start -> loop of the agent -> trainers end -> outcome

Everything that a search knows is in the archive. A killed search loses no finished result, and the
same request again resumes its study.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from archive import settings as settings_module
from archive.errors import SearchError, SettingsError, StudyConflictError, UsageError
from archive.searches.events import (
    Listener,
    NothingToDo,
    Notice,
    SearchEnded,
    SearchProgress,
    Stopping,
    StudyOpened,
    WarmSource,
)
from archive.searches.models import builder_of, parameters_of
from archive.searches.prospects import StopJudge, StopRule, check_single
from archive.searches.request import (
    SearchOptions,
    SearchRequest,
    request_of,
)
from archive.store.protocol_names import DEFAULT_RECIPE
from archive.values import check_whole

if TYPE_CHECKING:
    from archive.agents.base import Agent, SourceStudy
    from archive.api import Archive
    from archive.launchers.base import Launcher
    from archive.parameters.model import Model
    from archive.searches.call import SearchResult
    from archive.settings import Settings
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot
    from archive.trainer.recipes.registry import RecipeAccess
    from archive.trainer.recipes.source import RecipeSource


TABLE_PAUSE = 0.01
"""Seconds between two polls of a study on a tabular task."""


@dataclass(frozen=True)
class RunOptions:
    """Options of a search that no study stores: how it runs.

    Attributes:
        budget: Total number of evaluations; None keeps the study's, or 20.
        seed: Random seed of the study; None keeps the study's, or 0.
        sources: Studies to start warm from, or all.
        batch: Largest number of pending proposals; None means one for each trainer.
        trainers: Number of trainers to start, which end with the search.
        engine: Engine that runs them, with its options: `local`, `slurm:partition=gpu`.
        device: Device of the trainers; None lets them choose.
        devices_per_trial: Number of devices of each trial.
        limits: Limits of a trial, by the names of `archive.searches.trainers.LIMIT_OPTIONS`.
        observe: Observers of the trials, `NAME[:KEY=VALUE,…]`.
        proxies: Number of random networks of which the trainers measure zero-cost proxies.
        retrain: Whether networks are trained again that another study has evaluated.
        archive_command: How messages call the command line, with the options that lead to the
            archive.
        stop_when: Rule that ends the search before its budget is spent (`StopRule`); None for none.
    """

    budget: int | None = None
    seed: int | None = None
    sources: Sequence[str] | Literal["all"] = ()
    batch: int | None = None
    trainers: int = 1
    engine: str = "local"
    device: str | None = None
    devices_per_trial: int = 1
    limits: Mapping[str, float | None] = field(default_factory=dict)
    observe: Sequence[str] = ()
    proxies: int | None = None
    retrain: bool = False
    archive_command: str = "archive"
    stop_when: str | None = None


@dataclass(frozen=True)
class Search:
    """One search.

    Attributes:
        options: What describes its study.
        run: How it runs.
        notify: Receives its events.
    """

    options: SearchOptions
    run: RunOptions
    notify: Listener

    def result(self, archive: Archive | None, settings: Settings | None) -> SearchResult:
        """Search, and return the outcome."""
        from archive.api import connect
        from archive.launchers import registry as launchers
        from archive.trainer.tasks import registry as tasks

        if archive is not None:
            settings = archive.connection.settings
        elif settings is None:
            settings = settings_module.load()

        # Mistakes that show without the archive are refused before a server is started.
        self._check_numbers()
        self._check_observers(settings)
        launcher = launchers.create_from(self.run.engine, settings)
        if self.run.trainers:
            launchers.check_reachable(launcher, settings, f"archive search --on {launcher.name}")

        request = request_of(self.options) if self.options.study is None else None
        if request is not None:
            self._check_recipe(settings.home, request, launcher)

        if self.options.task is not None:
            tasks.get(self.options.task)

        if archive is not None:
            return self._search(archive, launcher, request)

        with connect(settings) as opened:
            return self._search(opened, launcher, request)

    def _check_numbers(self) -> None:
        if self.run.stop_when is not None:
            StopRule.parse(self.run.stop_when)

        check_whole("trainers", self.run.trainers)
        if check_whole("devices_per_trial", self.run.devices_per_trial) < 1:
            raise UsageError("devices_per_trial must be at least 1, got 0")

        if self.run.batch is not None and check_whole("batch", self.run.batch) < 1:
            raise UsageError("batch must be at least 1, got 0")

    def _check_observers(self, settings: Settings) -> None:
        """Raise where an observer is unknown, or one of its options cannot be used."""
        if not self.run.observe:
            return

        from archive.trainer.observers import registry

        for text in self.run.observe:
            registry.create(text, settings.home)

    def _search(
        self, archive: Archive, launcher: Launcher, request: SearchRequest | None
    ) -> SearchResult:
        from archive.searches.call import count_evaluated, nothing_left, outcome
        from archive.trainer.tasks import registry as tasks

        budget = self.run.budget
        if request is None:
            request = _request_of_named(archive, self.options)
            self._check_recipe(archive.connection.settings.home, request, launcher)

        if self.options.only:
            request = _at_incumbent(archive, self.options, request)

        judge = self._judge(archive, request)
        more = _has_more(archive, request.study.name, budget)
        study = open_study_of(
            archive,
            request,
            self.options,
            budget=None if more else budget,
            seed=self.run.seed,
            sources=self.run.sources,
            notify=lambda text: self.notify(Notice(text)),
        )
        if self.options.task is not None:
            # Trainers open no file only because a study in the database names it.
            tasks.name_file(request.task, archive.connection.settings.home)

        if more and budget is not None:
            last = archive.studies.snapshot(study.name)
            self.notify(NothingToDo(study, count_evaluated(last.counts), budget))
        else:
            last = self._run(archive, study, request, launcher, judge)

        stopped = None if judge is None else judge.reason
        searched = not more and stopped is None
        reason = nothing_left(archive, last, request.agent, searched=searched)
        self.notify(SearchEnded(last, reason, stopped))
        agent = str(request.study.config["agent"])
        return outcome(archive, last, agent, request.task, reason, stopped)

    def _check_recipe(self, home: Path, request: SearchRequest, launcher: Launcher) -> None:
        """Check the recipe of the search; with trainers elsewhere, as far as it is known here."""
        if self.run.trainers:
            _check_recipe(home, request, launcher, self.run.devices_per_trial)
            return

        from archive.trainer.recipes.registry import RecipeAccess
        from archive.trainer.recipes.suitability import check_known

        check_known(request.study, RecipeAccess(home), None)

    def _judge(self, archive: Archive, request: SearchRequest) -> StopJudge | None:
        """Return the judge of the rule of the search; None without a rule."""
        if self.run.stop_when is None:
            return None

        check_single(request.study)
        return StopJudge(StopRule.parse(self.run.stop_when), archive, request.agent.space)

    def _run(
        self,
        archive: Archive,
        study: Study,
        request: SearchRequest,
        launcher: Launcher,
        judge: StopJudge | None,
    ) -> Snapshot:
        """Run the agent with its trainers to the end, and return the last snapshot of the study.

        Raises:
            SearchError: Proposals keep failing, or the trainings do not report what the search
                needs.
        """
        from archive import __version__
        from archive.agents import loop
        from archive.searches.call import count_evaluated
        from archive.searches.interruption import Interruption
        from archive.searches.trainers import SearchTrainers, await_proxies
        from archive.searches.waiting import ClaimWatch, check_reports, trainer_command
        from archive.store.records import State
        from archive.trainer.tasks.tabular import TabularProtocol

        agent = request.agent
        counts = archive.studies.counts(study.name)
        evaluations = count_evaluated(counts)
        self.notify(_describe_opening(archive, study, request, evaluations))
        if request.fixed:
            self.notify(Notice(_describe_fixed(request)))

        pending = counts[State.WAITING] + counts[State.RUNNING]
        left = evaluations < study.budget or pending > 0
        trainers = SearchTrainers(
            launcher,
            self.run.trainers if left else 0,
            study=study.name,
            settings=archive.connection.settings,
            device=self.run.device,
            devices_per_trial=self.run.devices_per_trial,
            limits=self.run.limits,
            observe=self.run.observe,
            proxies=self.run.proxies,
            notify=self.notify,
        )
        command = trainer_command(self.run.archive_command, study.name)
        claims = ClaimWatch(
            archive, study.name, command, trainers.absence if trainers.fleet.upper else None
        )
        snapshot: Snapshot | None = None
        with Interruption(lambda: self.notify(Stopping())) as interruption, trainers:
            await_proxies(archive, study, agent, trainers, interruption, self.notify)
            snapshots = loop.run(
                archive,
                study,
                agent,
                version=__version__,
                costs=request.costs,
                builder=builder_of(request, archive.connection.settings.home),
                batch=self.run.batch or max(1, self.run.trainers),
                retrain=self.run.retrain,
                # A table answers at once: frequent polls let the agent use each result as soon as
                # it is stored.
                pause=TABLE_PAUSE if isinstance(request.protocol, TabularProtocol) else loop.PAUSE,
                wait=interruption.wait,
                stop=judge or loop.never,
            )
            for snapshot in check_reports(snapshots, request.costs):
                interruption.check()
                self.notify(SearchProgress(snapshot, claims.reason(snapshot)))
                trainers.keep_alive(count_evaluated(snapshot.counts), study.budget)

        if snapshot is None:
            raise SearchError(f"the study {study.name!r} has no snapshot to show")

        return snapshot


def _describe_opening(
    archive: Archive, study: Study, request: SearchRequest, evaluations: int
) -> StudyOpened:
    from archive.agents import loop
    from archive.searches.call import place

    history = loop.history_of(archive, study)
    return StudyOpened(
        study=study,
        agent=str(request.study.config["agent"]),
        place=place(archive),
        epochs=request.protocol.epochs,
        evaluations=evaluations,
        warm=len(history.observations) - evaluations,
        sources=_source_uses(history.sources, request.agent),
    )


def _source_uses(sources: Sequence[SourceStudy], agent: Agent) -> tuple[WarmSource, ...]:
    """Return how an agent uses the source studies of other tasks."""
    from archive.agents.transfer.source_tasks import of_one_task, too_little

    uses: list[WarmSource] = []
    for source in sources:
        unused: str | None = f"the agent {agent.kind} learns from its own task alone"
        if agent.transfers:
            unused = too_little(*of_one_task(source, sources))

        count = len(source.observations)
        uses.append(WarmSource(source.study, source.task, source.space, count, unused or None))

    return tuple(uses)


def _request_of_named(archive: Archive, options: SearchOptions) -> SearchRequest:
    """Return the search of a study that the options name, completed by the study."""
    from archive.trainer.tasks.file_access import FileAccess

    access = FileAccess.of(archive.connection.settings.home)
    return request_of(options, archive.studies.find(options.study or ""), access)


def _at_incumbent(
    archive: Archive, options: SearchOptions, request: SearchRequest
) -> SearchRequest:
    """Return a search of some parameters with the others at the best configuration so far.

    Without one, the others are at their defaults.
    """
    from archive.spaces import stored_spaces
    from archive.trainer.tasks.file_access import FileAccess

    study = archive.studies.find(request.study.name)
    best = None if study is None else archive.studies.snapshot(study.name).incumbent
    if study is None or best is None:
        return replace(request, fixed_at="at the defaults")

    home = archive.connection.settings.home
    # A file may have more parameters than the study had when the configuration was evaluated.
    space = stored_spaces.of_record(request.study.space, request.study.space_config, home)
    network = archive.architectures.get(best.architecture_key)
    member = stored_spaces.member_of(space.config, network, best.hyperparameters)
    values = space.named(member)
    again = request_of(options, study, FileAccess.of(home), values)
    return replace(again, fixed_at=f"as in the best configuration so far, {best.id}")


def _describe_fixed(request: SearchRequest) -> str:
    values = []
    for name, value in request.fixed.items():
        values.append(f"{name}={json.dumps(value)}")

    return f"not searched, {request.fixed_at}: {', '.join(values)}"


def _check_recipe(
    home: Path, request: SearchRequest, launcher: Launcher, devices_per_trial: int
) -> None:
    """Check that trainers have the recipe of a search, and that it fits task, space and devices.

    Trainers elsewhere may have other files of recipes and models.
    """
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.recipes.registry import RecipeAccess
    from archive.trainer.recipes.suitability import check_model, check_suitable
    from archive.trainer.tasks.base import Task

    task = request.task
    if not isinstance(request.protocol, TrainingProtocol) or not isinstance(task, Task):
        return

    recipes = RecipeAccess(home)
    local = launcher.name == "local"
    recipe = recipes.find(request.protocol.recipe, with_file=local)
    if devices_per_trial > 1 and recipe.name == DEFAULT_RECIPE:
        raise UsageError(
            "the default recipe trains on one device, got --devices-per-trial "
            f"{devices_per_trial}: name a recipe for several with --recipe"
        )

    check_suitable(request.study, task, recipes)
    parameters = parameters_of(request.agent.space)
    if local and parameters is not None:
        if recipe.name == DEFAULT_RECIPE and parameters.model is not None:
            _check_model(recipes, recipe, parameters.model)

        check_model(parameters, task, recipe, recipes)


def _check_model(recipes: RecipeAccess, recipe: RecipeSource, model: Model) -> None:
    """Check that trainers here have the model that the default recipe trains."""
    if recipes.model_of(recipe, model.reference) is None:
        target = model.target(model.reference) or f"/path/of/{model.reference}"
        raise SettingsError(
            f"trainers here do not know the model {model.reference!r}: name it in "
            f"{recipes.home / 'recipes.toml'}, as [models] and the line "
            f"{json.dumps(model.reference)} = {json.dumps(target)}"
        )


def _has_more(archive: Archive, name: str, budget: int | None) -> bool:
    """Return whether a study has more evaluations than a budget; such a search changes nothing."""
    from archive.searches.call import count_evaluated

    if budget is None or budget < 1 or archive.studies.find(name) is None:
        return False

    return count_evaluated(archive.studies.counts(name)) > budget


def open_study_of(
    archive: Archive,
    request: SearchRequest,
    options: SearchOptions,
    *,
    budget: int | None,
    seed: int | None,
    sources: Sequence[str] | Literal["all"],
    notify: Callable[[str], None],
) -> Study:
    """Return the study of a search, created if there is none of its name.

    Args:
        archive: The archive of the study.
        request: The search.
        options: The options that it was requested by.
        budget: As of `archive.agents.study_setup.open_study`, as are the others.
        seed: Seed.
        sources: Studies to start warm from.
        notify: Called with a message before a slow step.

    Raises:
        StudyConflictError: The options contradict a study of this name; the message suggests
            another name where the options have none.
        SettingsError: The study's file has changed.
        UsageError: As of `open_study`.
    """
    from archive.agents.study_setup import open_study

    _check_file(request, options, archive.studies.find(request.study.name))
    try:
        return open_study(
            archive,
            request.study,
            budget=budget,
            seed=seed,
            sources=sources,
            agent=request.agent,
            notify=notify,
        )
    except StudyConflictError as error:
        if options.study is not None:
            raise

        free = _free_name(request.study.name, archive.studies.names())
        raise StudyConflictError(f"{error}, such as --study {shlex.quote(free)}") from None


def _check_file(request: SearchRequest, options: SearchOptions, stored: Study | None) -> None:
    """Check that a user's file still has the digest that the study's protocol records."""
    if options.protocol is not None or stored is None or stored.task != request.task.name:
        return

    from archive.trainer.tasks.file_access import check_content, reference_of

    reference = reference_of(request.task.name)
    if reference is not None:
        check_content(reference[0], stored.protocol)


def _free_name(name: str, taken: Sequence[str]) -> str:
    for number in count(2):
        free = f"{name}-{number}"
        if free not in taken:
            return free

    raise AssertionError("unreachable")
