"""Running an operator: inputs, launches, outputs, errors, and advice."""
