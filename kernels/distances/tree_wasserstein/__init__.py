"""The tree-Wasserstein distance, in closed form on trees of operations, n-grams and degrees."""
