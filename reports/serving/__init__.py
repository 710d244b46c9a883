"""A server for the agents and programs that write kernels: the Model Context Protocol over stdio and HTTP, and plain HTTP.

`ascendtile serve` starts it; README.md in this folder says how clients reach it. `tools` has what it can be asked for, which
needs no server; everything else here needs the extra `serve` and is loaded by that command alone.
"""
