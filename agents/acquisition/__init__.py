"""Acquisition functions, and the choice of a batch among candidates. An acquisition sees a posterior, never a model."""
