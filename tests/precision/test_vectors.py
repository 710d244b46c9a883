"""The vector table: every rule that the specification pins down, one row at a time."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from ascendtile.simulator.precision.rounding import encode, round_to

TABLE = Path(__file__).parent / "data" / "precision_vectors.csv"
ROWS = list(csv.DictReader(TABLE.open(encoding="utf-8")))


def options(row: dict[str, str]) -> dict[str, str]:
    subnormals = "flush" if row["subnormal_inputs"] == "flush" else "keep"
    return {"mode": row["rounding"], "overflow": row["overflow_mode"], "subnormals": subnormals}


def test_the_table_is_whole() -> None:
    assert [row["id"] for row in ROWS] == [str(i) for i in range(1, 190)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']}-{row['format']}-{row['rounding']}")
def test_row(row: dict[str, str]) -> None:
    x = np.array(int(row["input_bits"], 16), np.uint32).view(np.float32)
    single = round_to(x, row["format"], **options(row))
    with np.errstate(invalid="ignore"):
        double = round_to(x.astype(np.float64), row["format"], **options(row))
    if row["expected_as_fp32_bits"] == "NAN":
        assert math.isnan(single)
        assert math.isnan(double)
        return
    assert hex(single.view(np.uint32)) == hex(int(row["expected_as_fp32_bits"], 16))
    assert hex(double.view(np.uint32)) == hex(int(row["expected_as_fp32_bits"], 16))
    if row["format"] != "hf32":
        packed = encode(x, row["format"], **options(row)).view(np.uint16)
        assert hex(packed) == hex(int(row["expected_bits"], 16))
