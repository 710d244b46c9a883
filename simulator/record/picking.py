"""Fields of a record by name, for views and JSON: a key that is called as its field is said once."""

from typing import Any


def picked(x: object, names: str) -> dict[str, Any]:
    """Fields of `x` by name, in this order: picked(launch, "kernel grid cycles")."""
    return {n: getattr(x, n) for n in names.split()}
