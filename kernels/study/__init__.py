"""Precision studies: one operator in every mode on the same numbers."""
