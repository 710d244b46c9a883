"""What was found: explorations, the store that keeps every point, and what reads it back from files."""
