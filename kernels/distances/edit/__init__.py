"""Edit distance of network morphism (Auto-Keras)."""
