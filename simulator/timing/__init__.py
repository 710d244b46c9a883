"""Time of a launch. Imports go one way: placement < costs < engine < trace < lowering < results < estimate."""
