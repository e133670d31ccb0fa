"""Simulated searches of tables with results after several numbers of epochs:

`docs/scripts/fidelity.py`.
"""
