"""Attention, forward: how kernels by hand do it, and their times."""
