"""Torch modules of the space `torch`: networks of PyTorch's operations, from their graphs.

builder     the builder; without torch
network     the graph as a module
calls       the call of one operation: its arguments from attributes and edges
layers      modules of operations that own tensors or follow the mode; their matrices
initial     initial weights
"""
