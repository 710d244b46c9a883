"""How far predictions are off: statistics of rows, their groups, and the interval that holds nine of ten measured times."""
