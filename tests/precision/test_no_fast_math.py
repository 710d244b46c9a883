"""No extension module may switch the processor to flush-to-zero.

A library linked with -ffast-math does so for the whole process when it is loaded, numpy included; every
figure near 2^-126 would change without a word.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np

import ascendtile.simulator

ROOT = Path(ascendtile.simulator.__file__).parents[1]
FOLDERS = ("simulator", "kernels", "tiling", "reports")


def extension_modules() -> list[str]:
    files = (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.pyx")))
    return [".".join(("ascendtile", *p.relative_to(ROOT).with_suffix("").parts)) for p in files]


def test_subnormals_survive_every_extension() -> None:
    names = extension_modules()
    assert "ascendtile.simulator.precision._rounding" in names
    for name in names:
        importlib.import_module(name)
    tiny = np.full(64, 1e-40, np.float32)
    assert (tiny * np.float32(1) != 0).all()
    assert np.float32(2.0**-126) / np.float32(2) != 0
    assert 2.0**-1074 * 1.0 != 0
