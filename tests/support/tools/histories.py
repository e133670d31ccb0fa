"""Histories that the real packages write, for the tests of their imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WANDB = """
import os
import wandb

config = {"lr": 0.1, "train": {"seed": 3}, "model": {"width": 8}, "api_key": "hunter2222"}
with wandb.init(
    project="p q", name="first run", notes="try it", tags=["a"], group="g", config=config, id="aaa"
) as run:
    print("token hunter2222 and a last line")
    for step in range(3):
        run.log({"loss": 1 / (step + 1), "val": {"acc/x y": step / 4}})

    run.log({"loss": float("nan"), "h": wandb.Histogram([1, 2, 3])})
    run.summary["best"] = 0.9

run = wandb.init(project="p q", config={"lr": 0.2}, id="bbb")
run.log({"loss": 2.0})
print("RuntimeError: out of ideas")
run.finish(exit_code=1)
run = wandb.init(project="p q", config={"lr": 0.3}, id="ccc")
for step in range(200):
    run.log({"loss": 3.0, "val": {"acc/x y": 0.5}})

import time
time.sleep(1)
os.kill(os.getpid(), 9)
"""


def write_wandb(folder: Path) -> Path:
    """Write offline runs: one that is complete, one that failed, one that was killed.

    Returns:
        The folder `wandb`.
    """
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    environment |= {"HOME": str(folder), "WANDB_DIR": str(folder)}
    subprocess.run(
        [sys.executable, "-c", WANDB],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return folder / "wandb"


def write_mlflow(uri: str) -> dict[str, str]:
    """Write runs of every state to a tracking store, and return their ids by name.

    The run `b` is a change of `a`; `e` has a metric without steps; `other` is of an experiment of
    its own.
    """
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(tracking_uri=uri)
    experiment = client.create_experiment("tuning")
    ids: dict[str, str] = {}
    for number, (name, status) in enumerate(
        [("a", "FINISHED"), ("b", "FAILED"), ("c", "KILLED"), ("d", None), ("e", "FINISHED")]
    ):
        tags = {"mlflow.source.name": "/home/me/train.py", "mlflow.source.git.commit": "1" * 40}
        if name == "b":
            tags["mlflow.parentRunId"] = ids["a"]

        start = 1_785_600_000_000 + 1000 * number
        run = client.create_run(experiment, start_time=start, run_name=name, tags=tags)
        ids[name] = run.info.run_id
        client.log_param(ids[name], "opt/lr rate", 0.1 * (number + 1))
        client.log_param(ids[name], "seed", 3)
        if status is not None:
            client.set_terminated(ids[name], status, start + 500)

    points = [Metric("val/acc x", step / 10, step, step) for step in range(3)]
    points += [Metric("loss", float("nan"), 0, 0), Metric("high", float("inf"), 0, 0)]
    points += [Metric("system/cpu", 1.0, 0, 0)]
    client.log_batch(ids["a"], metrics=points)
    client.log_batch(ids["b"], metrics=points[:2])
    client.log_batch(ids["e"], metrics=[Metric("val/acc x", n / 2, n, 0) for n in range(2)])
    client.set_tag(ids["a"], "mlflow.note.content", "why")
    client.set_tag(ids["a"], "team", "vision")
    other = client.create_run(client.create_experiment("other"), run_name="other")
    ids["other"] = other.info.run_id
    client.log_metric(ids["other"], "val/acc x", 0.3)
    client.set_terminated(ids["other"])
    deleted = client.create_run(experiment, run_name="deleted")
    client.delete_run(deleted.info.run_id)
    return ids


def write_mlflow_tables(path: Path) -> None:
    """Write a run to a database with those tables of the installed release that runs are in.

    The client itself would run forty migrations first, which takes ten seconds.
    """
    from mlflow.store.tracking.dbmodels import models
    from sqlalchemy import create_engine, insert

    engine = create_engine(f"sqlite:///{path}")
    kinds = (
        models.SqlExperiment,
        models.SqlRun,
        models.SqlMetric,
        models.SqlParam,
        models.SqlTag,
    )
    tables = [kind.__table__ for kind in kinds]
    models.Base.metadata.create_all(engine, tables=tables)
    run = {"run_uuid": "r1", "experiment_id": 1, "lifecycle_stage": "active", "name": "a"}
    run |= {"status": "FINISHED", "start_time": 1_785_600_000_000, "end_time": 1_785_600_000_500}
    point = {"run_uuid": "r1", "key": "val/acc x", "is_nan": False}
    rows: list[list[dict[str, object]]] = [
        [{"experiment_id": 1, "name": "tuning", "lifecycle_stage": "active", "workspace": "w"}],
        [run, {**run, "run_uuid": "r2", "lifecycle_stage": "deleted"}],
        [
            {**point, "step": 1, "timestamp": 2, "value": 0.2},
            {**point, "step": 0, "timestamp": 1, "value": 0.1},
            {**point, "step": 0, "timestamp": 1, "key": "loss", "value": 0.0, "is_nan": True},
            {**point, "step": 0, "timestamp": 1, "key": "high", "value": 1.7976931348623157e308},
        ],
        [{"run_uuid": "r1", "key": "opt/lr rate", "value": "0.1"}],
        [{"run_uuid": "r1", "key": "mlflow.note.content", "value": "why"}],
    ]
    with engine.begin() as connection:
        for table, table_rows in zip(tables, rows, strict=True):
            for row in table_rows:
                connection.execute(insert(table), row)

    engine.dispose()


def write_neptune(path: Path, rows: list[dict[str, object]]) -> None:
    """Write rows as the exporter writes them, with its columns and types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("project_id", pa.string()),
            ("run_id", pa.string()),
            ("attribute_path", pa.string()),
            ("attribute_type", pa.string()),
            ("step", pa.decimal128(18, 6)),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("int_value", pa.int64()),
            ("float_value", pa.float64()),
            ("string_value", pa.string()),
            ("bool_value", pa.bool_()),
            ("datetime_value", pa.timestamp("ms", tz="UTC")),
            ("string_set_value", pa.list_(pa.string())),
            ("file_value", pa.struct([("path", pa.string())])),
            (
                "histogram_value",
                pa.struct(
                    [
                        ("type", pa.string()),
                        ("edges", pa.list_(pa.float64())),
                        ("values", pa.list_(pa.float64())),
                    ]
                ),
            ),
        ]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="snappy")
