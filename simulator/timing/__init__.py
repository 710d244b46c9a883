"""Time of a launch. Imports go one way: operations < placement < costs < engine < trace < lowering < results < estimate."""
