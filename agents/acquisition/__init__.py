"""Acquisition functions, candidate generators and batch selection.

An acquisition sees a posterior, never a model.
"""
