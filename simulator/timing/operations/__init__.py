"""What timing knows of each operation of the tile program: one table, below all that reads it."""
