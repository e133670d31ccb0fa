"""Graphs of ONNX files as PyTorch modules, which `torch.export` turns into architectures.

files          reading and checking a file
module         the module: weights of the file, nodes in order, operators by name
values         tensors, and values that are known before any tensor: constants and sizes
weighted, elementwise, shapes, resizing, sizes    their functions
"""
