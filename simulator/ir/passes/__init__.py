"""Rewrites of a tile program."""
