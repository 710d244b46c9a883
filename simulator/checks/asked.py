"""Which checks of its accesses a launch is to make."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..device import Device


class Checks(NamedTuple):
    """check: whether the dear checks are made, too. poison: whether masked-out lanes of a load without `other` hold poison
    instead of 0. warn_outside: whether an access outside of its tensor is told and left out, instead of an error. split:
    whether the Cube and the Vector units are on cores of their own.
    """

    check: bool = False
    poison: bool = False
    warn_outside: bool = False
    split: bool = True


NONE_ASKED = Checks()


def checks_of(device: Device) -> Checks:
    """What a device asks for: `check`, `masked` and `out_of_bounds` of `Device`; and whether its product has split cores."""
    poison, warn = device.check or device.masked == "poison", device.out_of_bounds == "warn"
    return Checks(device.check, poison, warn, device.product.core_model == "split")
