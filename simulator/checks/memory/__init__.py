"""Where accesses go: the memory of a launch's arguments as areas, and what an access touches of it as runs of elements."""
