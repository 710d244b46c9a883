"""The commands, one file each: every module here has a `command`, and that is all it takes to be one.

A module imports click at its top and the rest in its functions, so that `ascendtile --help` is quick.
"""
