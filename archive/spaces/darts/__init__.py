"""Spaces of genotypes: `darts`, the search space of DARTS, and `nasnet`, cells like those of NASNet
and AmoebaNet.

    from archive.architecture.genotypes.codec import from_genotype, to_genotype
    from archive.spaces.darts.published import PUBLISHED

    network = from_genotype("Genotype(normal=[('sep_conv_3x3', 1), …], normal_concat=range(2, 6),
    reduce=[…], …)")
    print(to_genotype(network))                 # the published form again
    PUBLISHED["DARTS_V2"].architecture

`archive.architecture.genotypes.codec` has the conventions: which layers and edges a genotype
becomes.
"""
