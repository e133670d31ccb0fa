"""Search the chains with an objective of our own."""

import sys

import archive
from archive import agents, spaces

name = sys.argv[1] if len(sys.argv) > 1 else "best-mutant"
agent = agents.get(name, spaces.get("chains"))
with archive.connect() as store:
    study = agents.study(store, f"chains-{name}", "chains")
    for _ in range(15):
        for trial in study.ask(agent):
            operations = [layer.op for layer in trial.architecture.layers]
            study.tell(trial, operations.count("conv") / 5)
    print(
        f"{name}: the best of {len(study.evaluations())} chains has the value "
        f"{study.best().score:g}"
    )
