"""Core counts and memory of the product in force, under the names that Triton's drivers have for them."""

from __future__ import annotations

from typing import Any

from ..device import current_device


class Utilities:
    """`driver.active.utils`."""

    def get_device_properties(self, device: Any = 0) -> dict[str, Any]:
        """Core counts and on-chip memory of the product. A product whose cores have both units counts them as both."""
        product = current_device().product
        return {
            "max_shared_mem": product.ub_bytes,
            "multiprocessor_count": product.cube_cores,
            "num_aicore": product.cube_cores,
            "num_vectorcore": product.vector_cores,
            "name": product.text("product.soc_version"),
            "sm_clock_rate": int(product.aicore_mhz * 1000),
            "total_memory": product.integer("memory.size"),
        }

    def get_aicore_num(self) -> int:
        return current_device().product.cube_cores

    def get_aivector_core_num(self) -> int:
        return current_device().product.vector_cores

    def get_arch(self) -> str:
        return current_device().product.text("product.soc_version")
