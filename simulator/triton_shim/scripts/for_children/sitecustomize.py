"""Python runs this at its start in every process that a script under `ascendtile run` has started.

It does nothing until the process imports triton or torch; then the simulator takes Triton's place. A `sitecustomize` of the
machine's own that would have been found otherwise is run, too.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("triton", "torch", "torch_npu", "tbe")


class First:
    """A finder that waits for the first import of one of NAMES, and then steps back."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in NAMES or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        from ascendtile.simulator.triton_shim.scripts.child_processes import join

        join()
        return importlib.util.find_spec(fullname)


def run_the_other() -> None:
    """Run the `sitecustomize` that this one stands before."""
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == "sitecustomize":
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != HERE]
    sys.meta_path.insert(0, First())
    run_the_other()
