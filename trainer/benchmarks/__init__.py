"""Measurements of the trainer: its overhead, its start-up, its throughput, and the gain of
inherited weights.
"""
