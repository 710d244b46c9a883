"""Times of launches that were made before: the same program on the same memory with the same numbers takes the same time.

A script that launches a kernel ten thousand times would otherwise pay ten thousand simulations. What a time depends on is
all in the key: the program, the grid, the device with its options, every number, and every tensor's address, type and shape.
A tensor without data has no address of its own: the made-up ones are all alike.
Times that depend on data are not remembered.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from .interpreter.arguments import key_of_arguments
from .l2.state import InL2
from .record.recent import Recent
from .record.run import Launch

if TYPE_CHECKING:
    from .call import Call

MOST = 64


class Estimate(NamedTuple):
    """A launch, and what it leaves of its tensors in L2, oldest first; nothing unless that was asked for."""

    launch: Launch
    left: tuple[InL2, ...] = ()


_launches: Recent[tuple[Any, Estimate]] = Recent(MOST)


def recall(key: Hashable) -> Estimate | None:
    """The time of such a launch (see `key_of`), if it was made before."""
    found = _launches.recall(key)
    return found and found[1]


def remember(key: Hashable, call: Call, launch: Estimate) -> None:
    """Keep the time of a launch, and its program, so that the identity of that is not given to another one."""
    _launches.keep(key, (call.program, launch))


def key_of(call: Call, leaves: bool, product: Hashable = None) -> Hashable:
    """What the time of a launch depends on; None if an argument is neither a tensor nor a number.

    leaves: whether it says what is left in L2. product: in place of the device's, what is asked of it.
    """
    arguments = key_of_arguments(call.arguments)
    if arguments is None:
        return None
    return (
        id(call.program),
        leaves,
        call.grid,
        product or call.device.product,
        repr({n: x for n, x in vars(call.device).items() if n != "product"}),
        call.warnings,
        arguments,
    )
