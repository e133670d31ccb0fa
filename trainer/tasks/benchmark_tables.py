"""Tasks of built-in tables.

| task                              | space             | value                                |
|-----------------------------------|-------------------|--------------------------------------|
| `nb201-cifar10`, `nb201-cifar100` | `nasbench201`     | validation accuracy after 12 epochs  |
| `nb201-cifar10-200`               | `nasbench201`     | validation accuracy after 200 epochs |
| `nb101`                           | `nasbench101` (1) | validation accuracy after 108 epochs |
| `transnas-scene`, `-object`       | `nasbench201` (2) | validation accuracy                  |
| `transnas-autoencoder`            | `nasbench201` (2) | structural similarity (SSIM)         |
| `nbmacro`                         | `choices`         | test accuracy, mean of 3 trainings   |

(1) cells in the installed table; (2) without pooling. Accuracies are fractions; files in percent
become fractions, as imports store them. TransNAS-Bench-101 (Duan et al., 2021) has
one training of each cell, NAS-Bench-Macro (Su et al., 2021) three of each network.
"""

from __future__ import annotations

from archive.trainer.tasks.tabular import TabularProtocol, TabularTask

COMPLETE = ("nb201", "nbmacro")
"""Tables that hold their whole space."""


def _official(
    name: str,
    summary: str,
    table: str,
    space: str,
    scale: float,
    *protocols: TabularProtocol,
    metric: str = "accuracy",
    objective: str = "valid_accuracy",
) -> TabularTask:
    return TabularTask(
        name=name,
        label=name,
        summary=summary,
        reference=table,
        spaces=(space,),
        complete=table in COMPLETE,
        metric=metric,
        objective=objective,
        direction="maximise",
        scale=scale,
        protocols=protocols,
    )


NB201_CIFAR10 = _official(
    "nb201-cifar10",
    "NAS-Bench-201 on CIFAR-10, from the table: validation accuracy after 12 epochs, or 200",
    "nb201",
    "nasbench201",
    0.01,
    TabularProtocol("nb201/12", "cifar10_valid_12ep", "cifar10_test_12ep", 12),
    TabularProtocol("nb201/200", "cifar10_valid_200ep", "cifar10_test_200ep", 200),
)

NB201_CIFAR100 = _official(
    "nb201-cifar100",
    "NAS-Bench-201 on CIFAR-100, from the table: validation accuracy after 12 epochs",
    "nb201",
    "nasbench201",
    0.01,
    TabularProtocol("nb201/12", "cifar100_valid_12ep", "cifar100_test_12ep", 12),
)

NB101 = _official(
    "nb101",
    "NAS-Bench-101 on CIFAR-10, from the table: validation accuracy after 108 epochs, or 36, 12, 4",
    "nb101",
    "nasbench101",
    1.0,
    TabularProtocol("nb101/108", "val_acc_108ep", "test_acc_108ep", 108),
    TabularProtocol("nb101/36", "val_acc_36ep", "test_acc_36ep", 36),
    TabularProtocol("nb101/12", "val_acc_12ep", "test_acc_12ep", 12),
    TabularProtocol("nb101/4", "val_acc_4ep", "test_acc_4ep", 4),
)

NB201_CIFAR10_200 = _official(
    "nb201-cifar10-200",
    "NAS-Bench-201 on CIFAR-10, from the table: validation accuracy after 200 epochs",
    "nb201",
    "nasbench201",
    0.01,
    TabularProtocol("nb201/200", "cifar10_valid_200ep", "cifar10_test_200ep", 200),
)

TRANSNAS_SCENE = _official(
    "transnas-scene",
    "TransNAS-Bench-101, scene classification, from the table: validation accuracy",
    "transnas-micro",
    "nasbench201",
    0.01,
    TabularProtocol("transnas/1", "class_scene"),
)

TRANSNAS_OBJECT = _official(
    "transnas-object",
    "TransNAS-Bench-101, object classification, from the table: validation accuracy",
    "transnas-micro",
    "nasbench201",
    0.01,
    TabularProtocol("transnas/1", "class_object"),
)

TRANSNAS_AUTOENCODER = _official(
    "transnas-autoencoder",
    (
        "TransNAS-Bench-101, autoencoding, from the table: structural similarity on the validation "
        "part"
    ),
    "transnas-micro",
    "nasbench201",
    1.0,
    TabularProtocol("transnas/1", "autoencoder"),
    metric="ssim",
    objective="valid_ssim",
)

NBMACRO = _official(
    "nbmacro",
    "NAS-Bench-Macro on CIFAR-10, from the table: test accuracy, the mean of three trainings",
    "nbmacro",
    "choices",
    0.01,
    TabularProtocol("nbmacro/1", "mean_acc"),
    objective="test_accuracy",
)
