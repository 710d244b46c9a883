"""What was found: explorations, the store that keeps every point, and the way back from files."""
