"""Chosen programs of a launch: which of them write what is wanted, what they read, and their values alone."""
