"""Triton kernels whose times are published: kernels of our own after their descriptions, compiled by Triton-Ascend."""
