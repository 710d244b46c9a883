"""Matrix products of quantised numbers: INT8 on the Cube, and weights of 8 or 4 bits that become floating point first."""
