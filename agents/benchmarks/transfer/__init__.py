"""Gain of warm starts: scenarios and a matrix of tasks, the plan of their studies, and the rows of
the result.
"""
