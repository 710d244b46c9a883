"""Two executed notebooks, one for each of the two jobs: exploring tilings, and studying precision."""
