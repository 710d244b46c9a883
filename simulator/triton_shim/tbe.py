"""What stands for `tbe.common.platform` of the vendor's toolkit: figures of the chip, from the product in force.

Kernel libraries size their tiles by it (`get_soc_spec("UB_SIZE")`); without it they would ask for an installed toolkit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..device import current_device
from ..errors import UsageError
from ..products import Product

# Names as the toolkit's platform files have them; sizes in bytes.
SPECS: dict[str, Callable[[Product], Any]] = {
    "SOC_VERSION": lambda p: p.text("product.soc_version"),
    "FULL_SOC_VERSION": lambda p: p.text("product.soc_version"),
    "CORE_NUM": lambda p: p.cube_cores,
    "CUBE_CORE_CNT": lambda p: p.cube_cores,
    "VECTOR_CORE_CNT": lambda p: p.vector_cores,
    "UB_SIZE": lambda p: p.ub_bytes,
    "L1_SIZE": lambda p: p.l1_bytes,
    "L0A_SIZE": lambda p: p.l0a_bytes,
    "L0B_SIZE": lambda p: p.l0b_bytes,
    "L0C_SIZE": lambda p: p.l0c_bytes,
}


UB_BITS = "ASCEND_UB_CAPACITY_BITS"


def announce_ub() -> bool:
    """Set the variable that kernel libraries read before they ask the toolkit: the size of UB in bits, of the product in
    force now. Whether it was set: one that is there is the user's."""
    if UB_BITS in os.environ:
        return False
    os.environ[UB_BITS] = str(current_device().product.ub_bytes * 8)
    return True


def get_soc_spec(name: str) -> Any:
    """A figure of the chip, by the toolkit's name for it."""
    if name not in SPECS:
        raise UsageError(f"get_soc_spec({name!r}): the simulator knows {', '.join(SPECS)}")
    return SPECS[name](current_device().product)


def set_current_compile_soc_info(soc_version: str, *_: Any, **__: Any) -> None:
    """The product in force answers; scripts set here what the device itself said."""


NAMES = {"get_soc_spec": get_soc_spec, "set_current_compile_soc_info": set_current_compile_soc_info}
