"""Convolutions of FP32 operands in slices of 16 bits."""
