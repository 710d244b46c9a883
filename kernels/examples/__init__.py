"""Programs that make real data for the operators."""
