"""Faulty observers, one for each fault; their processes import this module."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from archive.trainer.observers.base import TrialObserver


class Counts(TrialObserver):
    """Writes a letter to a file for each call, and goes wrong as its subclasses say."""

    def __init__(
        self, home: Path, fault: str = "", number: int = 3, rate: float = 0.5, quick: bool = False
    ) -> None:
        super().__init__(home)
        self.fault = fault
        self.number = number
        self.rate = rate
        self.quick = quick

    def open(self) -> str:
        self.calls("o")
        return "http://me:hunter22@tracker/"

    def on_start(self, trial) -> None:
        self.calls("s")

    def on_metrics(self, trial, step, metrics) -> None:
        self.calls("m")

    def on_end(self, trial, end) -> None:
        self.calls("e")

    def close(self) -> None:
        self.calls("c")

    def calls(self, letter: str) -> None:
        with (self.home / "calls").open("a") as file:
            file.write(letter)

        print("called", letter)
        if letter in self.fault[1:]:
            getattr(self, f"{self.fault[0]}_")()

    def r_(self) -> None:
        raise ConnectionError(
            f"http://me:hunter22@tracker refuses {os.environ.get('TRACKER_TOKEN')}\nsecond line"
        )

    def h_(self) -> None:
        while True:
            time.sleep(60)

    def x_(self) -> None:
        sys.exit("as a script would")

    def d_(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(60)


class Unpicklable(Counts):
    """Holds what no other process can have."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.lock = threading.Lock()
