"""Measurements that users run, and statistics of measured values."""
