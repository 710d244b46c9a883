"""What an operator is, where operators are found, and how one is run."""
