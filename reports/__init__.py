"""Views of runs: terminal, JSON and the command line. A view never changes a number."""

if __name__ == "reports":
    raise ImportError("import ascendtile.reports: the folder reports/ is only the source of that package")
