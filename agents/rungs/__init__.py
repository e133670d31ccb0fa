"""Results at rungs for agents: partial trainings projected to full length, with the uncertainty of
the projection.
"""
