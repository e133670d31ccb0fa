"""Measurements of the page: how long an archive of a hundred thousand evaluations takes to show."""
