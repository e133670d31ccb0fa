"""Prediction of results before training: graph features, recipe features, and a Gaussian process.

    stored results of a task ──> `table` ──> `process` ──> value, interval and nearest relatives
                                   ^
    network ──> `features`, protocol ──> `protocol_features`

`predicting` is the library function behind `archive predict`.
"""
