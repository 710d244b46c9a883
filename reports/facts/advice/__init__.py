"""What to change: knobs that help, lines that the compiler makes slow code of, causes of a difference of two runs."""
