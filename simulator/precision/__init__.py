"""Number formats, rounding, error metrics and acceptance rules."""
