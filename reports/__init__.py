"""Views of runs: terminal, JSON and the command line. A view never changes a number."""

from ascendtile._names import public_names

if __name__ == "reports":
    raise ImportError("import ascendtile.reports: the folder reports/ is only the source of that package")

__all__ = ["comparing", "html", "pictures", "traces", "vendor"]
__getattr__, __dir__ = public_names(__name__, (), __all__)
