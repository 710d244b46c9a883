"""The tile program: types, operations, loops, what is derived from it."""
