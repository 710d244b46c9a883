"""Pages about chains of operators."""
