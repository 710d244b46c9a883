"""The cheapest formats and modes of a chain of operators that keep what is needed."""

from .cheapest import ChainSearch, cheapest_chain

__all__ = ["ChainSearch", "cheapest_chain"]
