"""Placement of trials on devices, and seats on the GPUs of a machine."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from archive.errors import SettingsError, UsageError
from archive.queue.causes import Cause, MemoryNeed
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.placement import LOOK_SECONDS, Occupancy, Placement, of_devices
from archive.trainer.daemon.seats import Seats
from archive.trainer.trial.devices import Device
from archive.trainer.trial.messages import TrialFailed

GIB = 1 << 30
GPUS = [
    Device("cuda", f"cuda:{i}", "GPU", (i + 1) * GIB, f"GPU-{i}", f"uuid-{i}") for i in range(3)
]


def proposal(memory_bytes=None, *, alone=False):
    return SimpleNamespace(memory_bytes=memory_bytes, alone=alone)


def trial(device, **about):
    return SimpleNamespace(device=device, claim=SimpleNamespace(proposal=proposal(**about)))


def test_trials_spread_over_the_devices():
    placement = Placement(GPUS, per_device=2)
    in_flight = []
    chosen = []
    for _ in range(6):
        chosen.append(placement.choose(proposal(), in_flight))
        in_flight.append(trial(chosen[-1]))

    assert chosen == GPUS * 2
    assert placement.choose(proposal(), in_flight) is None
    assert placement.room(in_flight).slots == 0


def test_memory_of_a_proposal_chooses_the_device():
    placement = Placement(GPUS)
    assert placement.choose(proposal(2 * GIB), []) == GPUS[1]
    assert placement.room([trial(GPUS[2])]).memory_bytes == 2 * GIB
    assert placement.choose(proposal(3 * GIB), [trial(GPUS[2])]) is None


def test_trial_alone_has_its_device_alone():
    placement = Placement(GPUS[:1], per_device=3)
    assert placement.choose(proposal(alone=True), [trial(GPUS[0])]) is None
    assert placement.room([trial(GPUS[0])]).alone_bytes == -1
    # The largest device has a slot, and a smaller one is empty: neither serves a large trial that
    # must be alone.
    assert Placement(GPUS, per_device=2).room([trial(GPUS[2])]).alone_bytes == 2 * GIB
    assert placement.room([trial(GPUS[0], alone=True)]).slots == 0


def test_device_without_memory_for_its_trials_is_emptied():
    placement = Placement(GPUS[:1], per_device=3)
    failed = TrialFailed(
        "out of memory", cause=Cause.OUT_OF_MEMORY, memory=MemoryNeed(1, GIB, alone=True)
    )
    assert placement.with_neighbours(failed, GPUS[0], []) == failed
    beside = [trial(GPUS[0])]
    assert placement.with_neighbours(failed, GPUS[0], beside) == replace(
        failed, memory=MemoryNeed(1, GIB, alone=False)
    )
    assert placement.room(beside).slots == 0
    assert placement.room([]).slots == 3
    assert placement.room(beside).slots == 2


def test_gpu_that_another_program_fills_gets_no_trial_until_it_has_room():
    free = [100 << 20]
    now = [0.0]
    big = replace(GPUS[2], memory_bytes=80 * GIB)
    placement = Placement(
        [GPUS[1], big], occupancy=Occupancy(lambda device: free[0], lambda: now[0])
    )
    failed = TrialFailed(
        "out of memory", cause=Cause.OUT_OF_MEMORY, memory=MemoryNeed(GIB, 80 * GIB, alone=False)
    )
    told = placement.with_neighbours(failed, big, [])
    assert told.reason == "out of memory; other programs use it: cuda:2 waits for its memory"
    assert (told.memory, told.cause) == (failed.memory, failed.cause)
    assert (placement.room([]).slots, placement.choose(proposal(4 * GIB), [])) == (1, None)
    # The memory of the trial suffices with that of a context; a look is cheap, but not each tick.
    free[0] = 3 * GIB
    assert placement.room([]).slots == 1
    now[0] += LOOK_SECONDS
    assert placement.room([]).slots == 2
    assert placement.choose(proposal(4 * GIB), []) == big


def test_gpu_waits_for_no_more_memory_than_it_can_have():
    free = [GIB]
    now = [0.0]
    placement = Placement(GPUS[:1], occupancy=Occupancy(lambda device: free[0], lambda: now[0]))
    memory = MemoryNeed(75 * GIB, 80 * GIB, alone=False)
    placement.with_neighbours(TrialFailed("out of memory", memory=memory), GPUS[0], [])
    assert placement.room([]).slots == 0
    now[0] = LOOK_SECONDS
    free[0] = 78 * GIB
    assert placement.room([]).slots == 1


@pytest.mark.parametrize("free", [None, 40 * GIB])
def test_gpu_whose_memory_is_free_or_not_known_does_not_wait(free):
    placement = Placement(GPUS[:1], occupancy=Occupancy(lambda device: free))
    failed = TrialFailed("out of memory", memory=MemoryNeed(GIB, 80 * GIB, alone=False))
    assert placement.with_neighbours(failed, GPUS[0], []) == failed
    assert placement.room([]).slots == 1


@pytest.mark.parametrize(
    ("devices", "slots", "per_device", "expected"),
    [
        (3, None, None, (3, 1)),
        (3, None, 4, (12, 4)),
        (2, 5, None, (5, 3)),
        (3, 2, None, (2, 1)),
        (1, 4, None, (4, 4)),
    ],
)
def test_slots_of_a_trainer(devices, slots, per_device, expected):
    placement = Placement(GPUS[:devices], slots, per_device)
    assert (placement.slots, placement.per_device) == expected


def test_more_slots_than_the_devices_have():
    with pytest.raises(SettingsError, match="2 devices with 2 slots each have no 5 slots"):
        Placement(GPUS[:2], 5, 2)


def answering(monkeypatch, devices) -> None:
    monkeypatch.setattr("archive.trainer.daemon.placement.devices.find", lambda request: devices)
    monkeypatch.setattr("archive.trainer.daemon.placement.devices.check", lambda device: None)


def placed(tmp_path, **options) -> tuple[Placement, Seats]:
    seats = Seats(tmp_path)
    return of_devices(TrainerOptions(**options), seats), seats


def test_a_trial_has_a_group_of_devices(monkeypatch, tmp_path):
    answering(monkeypatch, [*GPUS, replace(GPUS[0], label="cuda:3", visible="GPU-3", uuid="3")])
    placement, _ = placed(tmp_path, devices_per_trial=2)
    first, second = placement.devices
    assert (placement.slots, placement.per_device) == (2, 1)
    assert (first.name, first.label, first.visible) == ("cuda", "cuda:0+cuda:1", "GPU-0,GPU-1")
    # A proposal goes by the smallest device of a group.
    assert (first.memory_bytes, second.memory_bytes) == (GIB, GIB)
    assert placement.choose(proposal(), [trial(first)]) == second


def test_a_rest_of_devices_is_left_to_other_trainers(monkeypatch, tmp_path, caplog):
    answering(monkeypatch, GPUS)
    placement, _ = placed(tmp_path, devices_per_trial=2)
    assert [device.label for device in placement.devices] == ["cuda:0+cuda:1"]
    assert "left out device=cuda:2 reason='no group of 2'" in caplog.text
    assert Seats(tmp_path).choose(GPUS, None, shared=False) == GPUS[2:]


def test_a_trainer_takes_the_devices_of_its_slots(monkeypatch, tmp_path):
    answering(monkeypatch, GPUS)
    placement, _ = placed(tmp_path, devices_per_trial=2, slots=1)
    assert Seats(tmp_path).choose(GPUS, None, shared=False) == GPUS[2:]
    assert placement.slots == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"device": "0,1,2", "devices_per_trial": 2},
            r"^3 devices are no groups of 2 \(--devices-per-trial\): leave out cuda:2$",
        ),
        (
            {"devices_per_trial": 4},
            r"^a trial needs 4 devices \(.*\), and this trainer has 3: cuda:0, cuda:1, cuda:2$",
        ),
        ({"devices_per_trial": 2, "slots": 2}, "1 devices with 1 slots each have no 2 slots"),
    ],
)
def test_devices_that_are_no_groups_are_refused(monkeypatch, tmp_path, options, message):
    answering(monkeypatch, GPUS)
    with pytest.raises(SettingsError, match=message):
        placed(tmp_path, **options)


def test_a_cpu_has_any_number_of_ranks_and_trials(monkeypatch, tmp_path):
    answering(monkeypatch, [Device("cpu", "cpu", "x86_64", GIB)])
    placement, _ = placed(tmp_path, device="cpu", devices_per_trial=3, slots=2)
    assert [device.label for device in placement.devices] == ["cpu+cpu+cpu"]
    assert (placement.slots, placement.devices[0].visible) == (2, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices_per_trial": 2, "slots_per_device": 2}, "a trial on 2 devices has them alone"),
        ({"devices_per_trial": 0}, "must be at least 1, got 0"),
    ],
)
def test_trials_on_several_devices_share_none(options, message):
    with pytest.raises(UsageError, match=message):
        TrainerOptions(**options)
