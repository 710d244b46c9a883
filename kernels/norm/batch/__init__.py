"""Batch norm: its statistics and the sums of its gradient."""
