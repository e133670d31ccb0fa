"""PyTorch models and ONNX files as architectures of the open space `torch`, by `torch.export`."""
