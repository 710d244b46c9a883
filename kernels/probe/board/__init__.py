"""What `ascendtile probe --out` copies: plain Triton, to be run on a board, or under the simulator as it is."""
