"""What is in L2 when a launch starts, and what launches that follow each other leave there."""
