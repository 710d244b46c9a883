"""Whether programs of a launch see each other's stores, and in which order they then run."""
