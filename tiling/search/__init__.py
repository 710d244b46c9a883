"""Which points of a space are evaluated: exact search by bounds, or sampling; and where it stops."""
