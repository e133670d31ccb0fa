"""Histories of other tools as runs: `archive import wandb`, `mlflow`, `tensorboard` and others.

Each source yields runs of one kind (`external_run.ExternalRun`), which `archive.runs.imported` adds
to a study. A source reads and names what it leaves out; it never asks its service.

| module         | source                                                                        |
|----------------|-------------------------------------------------------------------------------|
| `external_run` | a run of another tool, and what a source leaves out                           |
| `table_files`, `table_columns`, `table_rows` | tables that people keep                         |
| `wandb_log`, `wandb_runs` | folders that Weights & Biases writes                               |
| `wandb_export` | tables of runs that people export from it                                     |
| `mlflow_runs`  | MLflow's file store, databases and servers                                    |
| `tensorboard_runs` | event files of TensorBoard                                                |
| `neptune_runs` | Parquet files of Neptune's exporter                                           |
| `git_commits`  | commits with a metric in their message or in a file                           |
"""
