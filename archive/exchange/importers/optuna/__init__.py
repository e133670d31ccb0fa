"""Importer of Optuna's studies, with architectures or with parameters in their trials.

| Optuna                            | archive                                                                       |
|-----------------------------------|-------------------------------------------------------------------------------|
| study, directions, metric names   | study with its objectives; an agent of the kind `optuna` made its proposals   |
| trial, complete                   | proposal with its evaluation; values, intermediate values as the curve        |
| trial, pruned                     | proposal PRUNED with its last value and curve; FAILED without a value         |
| trial, failed, or NaN or infinite | proposal FAILED, with the reason                                              |
| trial, running or waiting         | left out until it has finished                                                |
| constraints                       | metrics `constraint_…`; the study is constrained by `constraint_violation<=0` |
| start, end and duration           | times of the proposal, seconds of the evaluation                              |
| parameters of the architecture    | the architecture; other parameters are hyperparameters of the proposal        |
| parameters and distributions,     | a space of parameters (`parameters`); the trial's parameters are its          |
| where no space is named           | configuration                                                                 |
| numbers among the user attributes | metrics                                                                       |
| other user attributes             | `user_attributes` in the environment of the evaluation, or the study's config |

The caller passes a function that reads a trial's architecture or configuration. A trial is added once: importing
again adds the trials that have finished since. The storage's address is not recorded, because it
may contain a password.
"""

from archive.exchange.importers.optuna.parameters import find_space
from archive.exchange.importers.optuna.study import import_study, objective_names, open_study

__all__ = ["find_space", "import_study", "objective_names", "open_study"]
