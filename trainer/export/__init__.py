"""Export of trained networks: as a torch module, and as files for other programs.

    trained     the network of an evaluation, with its weights
    formats     .pt2 (torch.export), .onnx and .safetensors files

Imports `tasks`, `nn`, `datasets` and `storage`; reads the store through the archive that a caller
has opened.
"""
