"""Tasks and answers as the benchmarks write them: their files, their cases, the reference, what counts as equal."""
