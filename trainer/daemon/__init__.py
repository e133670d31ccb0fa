"""The trainer daemon: claims proposals, starts a trial for each, delivers the results."""
