"""Operations of the open space `torch`: their signatures, the vocabulary, and what a layer's
attributes say.

Imports the package above it, and no torch.
"""
