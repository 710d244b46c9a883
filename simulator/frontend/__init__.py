"""`jit`: from a kernel's Python source to the tile program. Knows neither values nor time."""
