"""The official files of NAS-Bench-101 and -201, written as TensorFlow, protoc and the authors'
programs write them."""

from __future__ import annotations

import base64
import collections
import json
import struct

import numpy as np

from archive.exchange.releases.nasbench101 import masked_crc

MATRIX = [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
LABELS = ["input", "conv3x3-bn-relu", "maxpool3x3", "output"]
CELLS = (
    "|nor_conv_3x3~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|skip_connect~2|",
    "|none~0|+|none~0|none~1|+|nor_conv_1x1~0|none~1|none~2|",
)


def message(*fields):
    """A protocol buffer: (number, value), the kind of field by the type of the value."""
    text = b""
    for number, value in fields:
        if isinstance(value, float):
            text += varint(number << 3 | 1) + struct.pack("<d", value)
        elif isinstance(value, int):
            text += varint(number << 3) + varint(value)
        else:
            text += varint(number << 3 | 2) + varint(len(value)) + value

    return text


def varint(value):
    text = b""
    while value > 0x7F:
        text = text + bytes([value & 0x7F | 0x80])
        value = value >> 7

    return text + bytes([value])


def row(module="a" * 32, epochs=108, valid=0.9, matrix=MATRIX, labels=LABELS):
    stages = [(0.0, 0.0, 0.1), (epochs / 2, 700.5, 0.5), (float(epochs), 1400.25, valid)]
    evaluations = [
        (
            1,
            message(
                (1, epoch),
                (2, seconds),
                (3, found + 0.05),
                (4, found),
                (5, found - 0.05),
                (6, b"model.ckpt-1"),
            ),
        )
        for epoch, seconds, found in stages
    ]
    metrics = base64.b64encode(message(*evaluations, (2, 2_694_282), (3, 1500.0))).decode()
    digits = "".join(str(entry) for line in matrix for entry in line)
    return json.dumps([module, epochs, digits, ",".join(labels), metrics]).encode()


def framed(data):
    length = struct.pack("<Q", len(data))
    return (
        length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))
    )


def result(dataset, epochs, seed, valid):
    steps = range(epochs)
    test = "x-test" if dataset == "cifar100" else "ori-test"
    parts = [test] if dataset == "cifar10" else ["x-valid", test]
    return {
        "name": "infer.tiny", "net_state_dict": None, "train_acc5es": None, "arch_config": {"channel": 16},
        "train_acc1es": {step: 50.0 + step / 10 for step in steps},
        "train_losses": {step: 2.0 / (step + 1) for step in steps},
        "train_times": {step: 8.5 for step in steps},
        "params": np.float64(0.073306), "flop": np.float64(7.78305), "seed": seed, "epochs": epochs,
        "latency": [0.014, 0.016], "eval_names": parts,
        "eval_acc1es": {f"{part}@{step}": np.float64(valid - (part == test)) for part in parts for step in steps},
        "eval_times": {f"{part}@{step}": 1.5 for part in parts for step in steps},
        "eval_losses": {f"{part}@{step}": 0.5 for part in parts for step in steps},
    }  # fmt: skip


def trainings(index, epochs):
    runs = {
        ("cifar10-valid", 777): 80.0 + index, ("cifar10-valid", 888): 82.0, ("cifar10", 777): 90.0 + epochs / 100,
        ("cifar100", 777): 40.0,
    }  # fmt: skip
    found = {
        (dataset, seed): result(dataset, epochs, seed, valid)
        for (dataset, seed), valid in runs.items()
    }
    seeds = collections.OrderedDict(
        {"cifar10-valid": [777, 888], "cifar10": [777], "cifar100": [777]}
    )
    return {
        "arch_index": index, "arch_str": CELLS[index], "all_results": found, "dataset_seed": seeds,
        "clear_net_done": True,
    }  # fmt: skip
