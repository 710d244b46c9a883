"""Reports as one HTML file each: they open offline, ask nobody for anything, and read only what records hold."""

from .pages import page_of, write_page

__all__ = ["page_of", "write_page"]


def __dir__() -> list[str]:
    return __all__
