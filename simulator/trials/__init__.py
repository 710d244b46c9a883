"""What one change of a launch's knobs would do to its time: which are tried, how far, and why others are not."""
