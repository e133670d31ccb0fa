"""What the fork server imports before its first trial: whatever a trial would otherwise spend seconds on.

Imported by the fork server alone: its import changes how the process takes signals.
"""

from __future__ import annotations

import signal

import archive.trainer.fit.train
import archive.trainer.storage.weights_file
import archive.trainer.trial.main  # noqa: F401

# A service manager, or `timeout`, signals every process of a group. The daemon decides what becomes of its trials, and
# the server leaves when the daemon has.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
