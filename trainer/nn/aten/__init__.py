"""Torch modules of the space `torch`: networks of PyTorch's operations, built again from their
graphs.

builder     the builder; without torch
network     the graph as a module
calls       the call of one operation: its arguments from attributes and edges
layers      modules of operations with tensors of their own, and of those that follow the mode
matrices    matrices and kernels of layers, and how their units lie
initial     initial weights
shapes      shapes of what a module computes
sizes       sizes in a graph that may be wrong for images of other sides
"""
