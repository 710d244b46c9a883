"""Whether elements come out with the same bits: their expressions compared, and inputs that tell different ones apart."""
