"""The process of the embedded server (ArcadeDB): start, discovery, supervision.

Imports settings and errors.
"""
