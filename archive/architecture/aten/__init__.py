"""Operations of the open space `torch`: signatures, vocabulary, attributes of layers.

Imports the package above it, and no torch.
"""
