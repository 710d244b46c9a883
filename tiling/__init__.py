"""Tiling spaces and their exploration."""

if __name__ == "tiling":
    raise ImportError("import ascendtile.tiling: the folder tiling/ is only the source of that package")
