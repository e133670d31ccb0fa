"""CUDA graphs of training steps: each size of batch is recorded once, and replayed with one launch.

A step of a small network is hundreds of kernels, and to launch them takes a processor longer than a
GPU computes. The batches of an epoch have two sizes at most, so there are two graphs at most.

    the first `WARMUP` steps of a size   kernel by kernel: libraries and the optimiser allocate
    the last of them                     watched: a step that waits for the GPU cannot be recorded
    the next one                         recorded: the same calls, without running their kernels
    from then on                         batch and rates copied to the recorded addresses, a replay

A replay repeats the same kernels; only the content of tensors can differ. Steps that draw random
numbers on the CPU would repeat these numbers, and are not recorded. Neither are networks that take
much of the device's memory: their kernels are long, and the evaluation could not use the memory of
a recording. Where a step cannot be recorded, all steps run kernel by kernel, and the log says why.
`ARCHIVE_CUDA_GRAPHS=0` in the environment of a trainer switches recording off.
"""

from __future__ import annotations

import logging
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from archive import runtime
from archive.errors import first_line
from archive.trainer.nn.base import HasProgress

log = logging.getLogger("archive.trainer")

SWITCH = "ARCHIVE_CUDA_GRAPHS"
WARMUP = 3
LARGEST_SHARE = 0.125
"""Largest share of the device's memory in use with which steps are recorded."""
_WAITS = "synchronizing CUDA operation"
"""Words of torch's warning in its debug mode of synchronisation."""

Step = Callable[[Tensor, Tensor, Sequence[float | Tensor]], Tensor]
"""A step on inputs and targets with the learning rates of the optimisers; returns a new tensor of
its losses."""


def suit(network: nn.Module) -> bool:
    """Whether steps of a network may be recorded.

    Recording must not be switched off, and replays must follow the progress. A network that depends
    on the progress of the training must keep it in tensors, which `set_progress` changes. A replay
    would repeat the value of a Python number.
    """
    if os.environ.get(SWITCH) == "0":
        return False

    if not isinstance(network, HasProgress):
        return True

    def versions() -> list[int]:
        return [tensor._version for tensor in (*network.parameters(), *network.buffers())]

    before = versions()
    network.set_progress(0.0)
    return versions() != before


def host_generators() -> tuple[object, ...]:
    """Return the states of the CPU's generators that a network may draw from."""
    numpys: Any = np.random.get_state()
    _, keys, *rest = numpys
    return torch.get_rng_state().numpy().tobytes(), random.getstate(), keys.tobytes(), *rest


class StepGraphs:
    """The recorded steps of one training.

    Args:
        step: A step kernel by kernel. It leaves no gradients behind.
        clear: Deletes gradients that a failed recording has left behind.
        device: GPU of the network and the batches.
    """

    def __init__(self, step: Step, clear: Callable[[], None], device: torch.device) -> None:
        self._step = step
        self._clear = clear
        self._device = device
        self._recorded: dict[torch.Size, _Recorded] = {}
        self._seen: Counter[torch.Size] = Counter()
        self._records = True
        self._earlier = torch.cuda.max_memory_allocated(device)
        # Kernels of the default stream cannot be recorded.
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    def __len__(self) -> int:
        """Return the number of recorded steps."""
        return len(self._recorded)

    def take(self, inputs: Tensor, targets: Tensor, rates: Sequence[float]) -> Tensor:
        """Take one step; return its losses."""
        size = inputs.shape
        if self._records and size not in self._recorded:
            self._seen[size] += 1
            if self._seen[size] <= WARMUP:
                return self._warm_up(inputs, targets, rates, watched=self._seen[size] == WARMUP)

            self._record(inputs, targets, rates)

        if size in self._recorded:
            return self._recorded[size].replay(inputs, targets, rates)

        return self._step(inputs, targets, rates)

    def _warm_up(
        self, inputs: Tensor, targets: Tensor, rates: Sequence[float], watched: bool
    ) -> Tensor:
        """Take a step on the recording's stream: libraries keep memory for each stream."""
        if not watched:
            return self._run(inputs, targets, rates)

        before = host_generators()
        with _waits() as waits:
            losses = self._run(inputs, targets, rates)

        if waits:
            self._give_up("a step waits for the GPU")
        elif host_generators() != before:
            self._give_up("a step draws random numbers on the CPU")

        return losses

    def _run(self, inputs: Tensor, targets: Tensor, rates: Sequence[float]) -> Tensor:
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            losses = self._step(inputs, targets, rates)

        current.wait_stream(self._stream)
        losses.record_stream(current)
        return losses

    def _record(self, inputs: Tensor, targets: Tensor, rates: Sequence[float]) -> None:
        _, total = torch.cuda.mem_get_info(self._device)
        if self._most_used() > LARGEST_SHARE * total:
            self._give_up("the network takes much of the GPU's memory", logging.INFO)
            return

        graph = torch.cuda.CUDAGraph()
        recorded_inputs = inputs.clone()
        recorded_targets = targets.clone()
        recorded_rates = [torch.full((), rate, device=self._device) for rate in rates]
        generator = torch.cuda.get_rng_state(self._device)
        try:
            # The device is set first: a recording waits for the current one, and would create a
            # context there. Garbage may hold graphs of earlier trainings; a recording does not
            # survive their deletion.
            with (
                runtime.pause_gc(),
                torch.cuda.device(self._device),
                _stream_kept(self._device),
                torch.cuda.graph(graph, pool=self._pool, stream=self._stream),
            ):
                losses = self._step(recorded_inputs, recorded_targets, recorded_rates)
        except RuntimeError as error:
            self._clear()
            self._give_up(first_line(error))
            # The allocator may still refer to it.
            _failed.append(graph)
            _renew_generator(self._device, generator)
            return

        self._recorded[inputs.shape] = _Recorded(
            graph, recorded_inputs, recorded_targets, recorded_rates, losses
        )

    def _most_used(self) -> int:
        """Return the largest memory of this training; the present one if it is not known."""
        peak = torch.cuda.max_memory_allocated(self._device)
        return peak if peak > self._earlier else torch.cuda.memory_allocated(self._device)

    def _give_up(self, reason: str, level: int = logging.WARNING) -> None:
        log.log(level, "steps not recorded as CUDA graphs reason=%r", reason)
        self._records = False
        # A graph draws from the generator that it was recorded with, which a failure replaces.
        self._recorded.clear()


class _Recorded(NamedTuple):
    """A graph with the tensors that it reads, and its losses, which the next replay overwrites."""

    graph: torch.cuda.CUDAGraph
    inputs: Tensor
    targets: Tensor
    rates: list[Tensor]
    losses: Tensor

    def replay(self, inputs: Tensor, targets: Tensor, rates: Sequence[float]) -> Tensor:
        self.inputs.copy_(inputs)
        self.targets.copy_(targets)
        # A kernel's argument: a copy from the processor's memory would wait for the GPU.
        for recorded, rate in zip(self.rates, rates, strict=True):
            recorded.fill_(rate)

        self.graph.replay()
        return self.losses.clone()


_failed: list[torch.cuda.CUDAGraph] = []


@contextmanager
def _waits() -> Iterator[list[str]]:
    """Collect torch's warnings of calls that make the processor wait for the GPU."""
    waits: list[str] = []
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode(before)
            texts = [str(warning.message) for warning in caught]
            waits += [text for text in texts if _WAITS in text]


@contextmanager
def _stream_kept(device: torch.device) -> Iterator[None]:
    """Restore the current stream: older versions of torch leave a failed recording's."""
    with torch.cuda.stream(torch.cuda.current_stream(device)):
        yield


def _renew_generator(device: torch.device, state: Tensor) -> None:
    """Give torch's generator of a GPU a new state: a failed recording breaks the old one."""
    renewed = torch.Generator(device)
    renewed.set_state(state)
    index = torch.cuda.current_device() if device.index is None else device.index
    torch.cuda.default_generators[index].graphsafe_set_state(renewed)
