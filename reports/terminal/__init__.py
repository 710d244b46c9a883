"""Pages of the terminal."""
