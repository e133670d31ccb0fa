"""Data of the plots: records of studies in, arrays out.

Imports the store, the queries and kernels; no matplotlib.
"""
