"""The operators, one file each, as tile kernels with their float64 references."""

if __name__ == "kernels":
    raise ImportError("import ascendtile.kernels: the folder kernels/ is only the source of that package")
