"""Network morphism of trained weights: a grown network begins with what its ancestor has learned."""
