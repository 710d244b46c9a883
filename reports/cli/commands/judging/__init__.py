"""Commands about answers to tasks: for people, for CI, for the programs that write kernels."""
