"""Kernels on the Vector units alone: what predicts the rows of theirs."""
