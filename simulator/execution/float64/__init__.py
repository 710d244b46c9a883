"""The same tile program in float64 without rounding, beside its values: what every kernel's error is measured against."""
