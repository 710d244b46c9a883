"""Times of launches that were made before: the same program on the same memory with the same numbers takes the same time.

A script that launches a kernel ten thousand times would otherwise pay ten thousand simulations. What a time depends on is
all in the key: the program, the grid, the device with its options, every number, and every tensor's address, type and shape.
Times that depend on data are not remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from .interpreter.tensors import Tensor

if TYPE_CHECKING:
    from .call import Call
    from .timing.estimate import Estimate

MOST = 64

_launches: OrderedDict[Hashable, tuple[Any, Estimate]] = OrderedDict()


def recall(key: Hashable) -> Estimate | None:
    """The time of such a launch (see `key_of`), if it was made before."""
    found = _launches.get(key)
    if key is None or found is None:
        return None
    _launches.move_to_end(key)
    return found[1]


def remember(key: Hashable, call: Call, launch: Estimate) -> None:
    """Keep the time of a launch; the one that was not asked for longest goes."""
    if key is None:
        return
    _launches[key] = (
        call.program,
        launch,
    )  # the program too, so that its identity is not given to another one
    if len(_launches) > MOST:
        _launches.popitem(last=False)


def key_of(call: Call, leaves: bool) -> Hashable:
    """What the time of a launch depends on; None if an argument is neither a tensor nor a number.

    leaves: whether it says what is left in L2.
    """
    if not all(isinstance(x, Tensor | bool | int | float) for x in call.arguments.values()):
        return None
    return (
        id(call.program),
        leaves,
        call.grid,
        call.device.product,
        repr({n: x for n, x in vars(call.device).items() if n != "product"}),
        call.warnings,
        tuple((name, _of(x)) for name, x in call.arguments.items()),
    )


def _of(x: Any) -> Hashable:
    if isinstance(x, Tensor):
        return (x.address, x.origin, x.elements, x.dtype.name, x.shape, x.window is None)
    return (type(x).__name__, repr(x))
