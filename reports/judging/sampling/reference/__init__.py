"""What a task's model gives at positions of its outputs: its operations, from the outputs back to the inputs, in float64."""
