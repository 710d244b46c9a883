"""What looks at the accesses of a launch with values: whether they are what the author can have meant."""
