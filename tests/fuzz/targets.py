"""The nine targets: each makes one input by chance and tries it."""

from __future__ import annotations

from collections.abc import Callable

from . import commands, products, records, sources, stores, tables
from .judge import Bench
from .mutators import Chance

TARGETS: dict[str, Callable[[Chance, Bench], None]] = {
    "record_bytes": records.record_bytes,
    "record_content": records.record_content,
    "archive_claims": records.archive_claims,
    "product_toml": products.product_toml,
    "explore_store": stores.explore_store,
    "input_arrays": tables.input_arrays,
    "vendor_csv": tables.vendor_csv,
    "kernel_source": sources.kernel_source,
    "command_line": commands.command_line,
}
