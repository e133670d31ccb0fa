"""Which command writes which document."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from archive.cli.documents.architectures import (
    ArchitectureDocument,
    ArchitecturePicture,
    DistanceList,
    NeighbourList,
    ProxyList,
)
from archive.cli.documents.benchmarks import (
    MachineFigures,
    SearchComparison,
    SuiteComparison,
)
from archive.cli.documents.catalogues import (
    AgentDocument,
    AgentList,
    KernelList,
    ObserverList,
    ProtocolList,
    QueryDocument,
    RecipeList,
    SavedQueryList,
    SavedQueryText,
    SpaceList,
    TaskList,
)
from archive.cli.documents.differences import DifferenceDocument
from archive.cli.documents.exports import (
    ExportDocument,
    ExportLine,
    PlotFile,
    ReportFile,
    StudyExport,
)
from archive.cli.documents.files import (
    BuiltInTables,
    DumpDocument,
    ImportDocument,
    LoadDocument,
    MadeTable,
    ModelImport,
    ProxyImport,
    StudyImport,
)
from archive.cli.documents.fleets import FleetDocument, FleetList, StoppedFleets
from archive.cli.documents.log import ChangedList, LogLine, ProposalDocument, StudyLog, TrialLogLine
from archive.cli.documents.models import ExportedModel
from archive.cli.documents.servers import (
    CheckList,
    CollectionDocument,
    RepairDocument,
    ServerDocument,
    ServerStop,
)
from archive.cli.documents.studies import (
    BestList,
    StudyDeletion,
    StudyDocument,
    StudyList,
)
from archive.cli.documents.trainers import TallyDocument, TrainerList
from archive.launchers import registry as launchers
from archive.searches.outcome import SearchResult

_COMMANDS: dict[str, tuple[type, ...]] = {
    "search": (SearchResult,),
    "trainer start": (TallyDocument,),
    "trainer status": (TrainerList,),
    **{f"launch {name}": (FleetDocument,) for name in launchers.names()},
    "launch list": (FleetList,),
    "launch stop": (StoppedFleets,),
    "query run": (QueryDocument,),
    "query list": (SavedQueryList,),
    "query show": (SavedQueryText,),
    "study list": (StudyList,),
    "study show": (StudyDocument,),
    "study best": (BestList,),
    "study log": (StudyLog,),
    "study log --follow": (LogLine, TrialLogLine),
    "study delete": (StudyDeletion,),
    "study export": (StudyExport,),
    "study export --format json": (ExportDocument,),
    "study export --format jsonl": (ExportLine,),
    "study plot": (PlotFile,),
    "report": (ReportFile,),
    "proposal show": (ProposalDocument,),
    "proposal cancel": (ChangedList,),
    "proposal retry": (ChangedList,),
    "weights export": (ExportedModel,),
    "arch show": (ArchitectureDocument,),
    "arch proxies": (ProxyList,),
    "arch draw": (ArchitecturePicture,),
    "arch diff": (DifferenceDocument,),
    "arch distance": (DistanceList,),
    "arch nearest": (NeighbourList,),
    "agents": (AgentList,),
    "agents NAME": (AgentDocument,),
    "tasks": (TaskList,),
    "protocols": (ProtocolList,),
    "recipes": (RecipeList,),
    "spaces": (SpaceList,),
    "observers": (ObserverList,),
    "kernels": (KernelList,),
    "dump": (DumpDocument,),
    "load": (LoadDocument,),
    "import table": (ImportDocument,),
    "table list": (BuiltInTables,),
    "table make": (MadeTable,),
    "import proxies": (ProxyImport,),
    "import nasbench101": (ImportDocument,),
    "import nasbench201": (ImportDocument,),
    "import optuna": (StudyImport,),
    "import model": (ModelImport,),
    "import onnx": (ModelImport,),
    "bench machine": (MachineFigures,),
    "bench search": (SearchComparison, SuiteComparison),
    "db start": (ServerDocument,),
    "db stop": (ServerStop,),
    "db status": (ServerDocument,),
    "db gc": (CollectionDocument,),
    "db repair": (RepairDocument,),
    "doctor": (CheckList,),
}

DOCUMENTS: Mapping[str, tuple[type, ...]] = MappingProxyType(_COMMANDS)
"""Command, with an option where that changes the document, to the shape of the document.

A command with several shapes writes a stream, one of them a line; so does `study export --format
jsonl`.
"""

STREAMS = frozenset({"study log --follow", "study export --format jsonl"})
"""Commands that write one document a line (NDJSON)."""
