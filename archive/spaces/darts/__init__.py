"""Spaces of genotypes: `darts`, and `nasnet` with cells like NASNet's and AmoebaNet's.

    from archive.architecture.genotypes.codec import from_genotype, to_genotype
    from archive.spaces.darts.published import PUBLISHED

    network = from_genotype("Genotype(normal=[('sep_conv_3x3', 1), …], normal_concat=range(2, 6),
    reduce=[…], …)")
    print(to_genotype(network))                 # the published form again
    PUBLISHED["DARTS_V2"].architecture

`archive.architecture.genotypes.codec` has the conventions: which layers and edges a genotype
becomes.
"""
