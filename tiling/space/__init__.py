"""Spaces of tilings: axes, the rules of an operator and of a user, and what a kernel declares."""
