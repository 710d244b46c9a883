"""What the server can be asked for: one module for each tool, plain functions from arguments to JSON.

`catalogue` lists them. They run in a worker process of `ascendtile.reports.judging.processes`, never in the server's own.
"""
