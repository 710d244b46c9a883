"""The command line, called in this process."""

from tests.reports.conftest import ascendtile, refused

__all__ = ["ascendtile", "refused"]
