"""Launches and parts of kernels that several families have: sums over cores, casts, inputs that broadcast."""
