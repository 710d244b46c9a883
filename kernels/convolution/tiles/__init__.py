"""Tile kernels of convolution."""
