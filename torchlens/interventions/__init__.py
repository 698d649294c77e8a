"""Editing values and computing what changes."""
