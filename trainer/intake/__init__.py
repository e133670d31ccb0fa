"""Models from elsewhere as architectures of the open space `torch`: from PyTorch by `torch.export`, and from ONNX."""
