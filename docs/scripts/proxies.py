"""Rank correlation of this package's zero-cost proxies with those of a published table.

    python docs/scripts/proxies.py --task cifar10 --protocol cifar10/jpeg --networks 100 FILE

FILE is a table of NAS-Bench-Suite-Zero with the column `net_str`. Random cells of the table are
built as modules and measured on one batch of 64 images, as the table's were. A row has Spearman's
rank correlation over the cells. Proxies that depend on the weights or the images differ by the draw
of both; `synflow`, `params` and `flops` do not depend on images, and `params` and `flops` on
nothing drawn.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from archive.spaces.tables.reader import Table
from archive.trainer.proxies.measurement import ProxyMeasurement
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task

COLUMNS = {"naswot": "nwot"}
"""Name of a proxy to its column in the table, where they differ."""


def main() -> None:
    """Measure cells, and print one row per proxy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--task", default="cifar10")
    parser.add_argument("--protocol", default=None)
    parser.add_argument("--networks", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = Table.load(options.file)
    task = registry.get(options.task)
    if not isinstance(task, Task):
        parser.error(f"{options.task} is a table: networks are measured on a trained task")

    measure = ProxyMeasurement(task, task.protocol(options.protocol))
    chosen = np.random.default_rng(options.seed).permutation(len(table))[: options.networks]
    began = time.process_time()
    scores = [measure(table.architectures[at]) for at in chosen]
    seconds = (time.process_time() - began) / len(chosen)
    print(f"{len(chosen)} cells, {seconds:.2f} s of processor time each")
    for name in scores[0]:
        column = COLUMNS.get(name, name)
        if column in table.columns:
            own = [each[name] for each in scores]
            published = table.column(column)[chosen]
            print(f"{name:12} {spearmanr(own, published, nan_policy='omit').statistic:.3f}")


if __name__ == "__main__":
    main()
