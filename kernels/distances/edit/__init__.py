"""The edit distance of network morphism (Auto-Keras)."""
