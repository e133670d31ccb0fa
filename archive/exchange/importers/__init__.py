"""Importers of external results: tables, benchmark files, Optuna studies."""
