"""What is told of a launch once the engine is done: bounds, lines, occupancy, rooflines, timeline."""
