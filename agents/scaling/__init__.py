"""Losses of larger and longer trainings, from smaller and shorter ones.

`report` reads the results of studies. `laws` are losses by parameters and tokens, `residuals` what a
design loses against a law, and `forecast` both together, with intervals. `choice` selects what to train
next.
"""
