"""Parts of messages: what was probably meant, lists; and refusals with the status that the vendor's library gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from ...simulator.errors import RefusedError
from ...simulator.precision.cube_math import PARAM_INVALID
from ...simulator.products import Product
from .tensors import Tensor, dtype_name

TILING_FAILED = 561002


def near(name: object, known: Iterable[str]) -> str:
    """ "; did you mean ...?" for a name that is not among `known`, or all of them where nothing is near."""
    names = list(known)
    text = str(name)
    starts = [n for n in names if text and n.startswith(text)]
    close = starts or get_close_matches(text.lower(), names, n=3, cutoff=0.5)
    return f"; did you mean {listed(close, 'or')}?" if close else f"; known are {listed(names)}"


def listed(names: Iterable[object], last: str = "and") -> str:
    """ "a, b and c"."""
    items = [str(n) for n in names]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else "none"


def refuse(message: str, status: int = PARAM_INVALID) -> RefusedError:
    """The error to raise; the message names the parameter, the rule and both values."""
    return RefusedError(message, status, message)


def check_dtype(op: str, name: str, tensor: Tensor, allowed: Iterable[str], product: Product) -> None:
    """Refuse a tensor whose type is not among those of the product."""
    found, have = dtype_name(tensor), tuple(allowed)
    if found not in have:
        raise refuse(f"{op}: {name} is {found}; on {product.name} it must be {listed(have, 'or')}")


def check_same_dtype(op: str, tensors: Mapping[str, Tensor], first: str, names: Iterable[str]) -> None:
    """Refuse tensors whose type is not that of `first`."""
    want = dtype_name(tensors[first])
    for n in names:
        if n in tensors and dtype_name(tensors[n]) != want:
            raise refuse(
                f"{op}: {n} is {dtype_name(tensors[n])}, {first} is {want}; they must be of one type"
            )
