"""What looks at the accesses of a launch with values: races, masked-out lanes. Values do not depend on it."""
