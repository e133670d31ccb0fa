"""Imports of the fork server before its first trial, which would otherwise cost each trial seconds.

Only the fork server may import this module: the import changes the process's signal handling.
"""

from __future__ import annotations

import signal
import warnings

import numpy.random  # noqa: F401

import archive.trainer.datasets.readers
import archive.trainer.datasets.scikit_learn
import archive.trainer.fit.train
import archive.trainer.storage.weights_file
import archive.trainer.trial.main  # noqa: F401
from archive.trainer.trial import process_tree

# Orphans of dead trials come to the fork server, so that the daemon finds and kills them
# (`archive.trainer.trial.process_tree`); multiprocessing is surprised when they end.
process_tree.adopt()
warnings.filterwarnings("ignore", message="forkserver: waitpid returned unexpected pid")

# A service manager, or `timeout`, signals every process of a group. The daemon decides how its
# trials end, and the server ends after the daemon.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
