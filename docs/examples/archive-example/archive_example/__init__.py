"""Plug-ins for the Architecture Archive.

An agent, a kernel, a space, a builder, a task, a recipe and an observer.
"""
