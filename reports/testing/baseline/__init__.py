"""The figures of tests that a project commits: what is kept of a run, the file, and the state of a test run."""
