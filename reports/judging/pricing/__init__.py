"""What operations of torch cost beside kernels, what a task takes at least, and what to change in an answer."""
