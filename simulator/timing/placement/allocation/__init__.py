"""Which slot each value of a program gets; `allocate.py` puts them together."""
