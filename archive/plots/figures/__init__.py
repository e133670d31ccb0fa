"""Drawing of the data of plots with matplotlib, one module a figure.

Imports `archive.plots.data`.
"""
