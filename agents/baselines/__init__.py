"""Agents without a surrogate, and Optuna's samplers."""
