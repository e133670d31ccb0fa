"""Surrogates: what is believed of architectures that nobody has trained yet."""
