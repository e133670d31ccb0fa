"""PyTorch models as architectures of the open space `torch`, by `torch.export`."""
