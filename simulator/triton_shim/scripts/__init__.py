"""Running other people's scripts, and the processes that they start."""
