"""Pages about number formats."""
