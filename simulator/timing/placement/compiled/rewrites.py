"""Section 8."""
