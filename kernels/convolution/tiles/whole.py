# mypy: disable-error-code="no-untyped-def"
"""Both gradients in one launch, or all of a call: layouts, both gradients, and the gradient of the weight transposed back.

The Vector cores make what grad_input is made of. After a barrier of all cores the Cubes go on with grad_input, and
beside them the Vector cores make the other image and sum the bias. They tell the Cubes when the other image is there (a
barrier of Vector cores, then a flag), which go on with grad_weight. After one more barrier the Vector cores transpose
grad_weight back.
"""

from __future__ import annotations

from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al
from ...operator.layout import up
from ...operator.plan import Step
from ...shared.sums import sum_partials
from ..preparation import JOBS
from .layout import from_rows
from .prepare import bias_sums, clear_items, image_blocks, weight_fractals
from .weight import weight_tiles
from .window import image_windows

VECTOR_CORES = 2  # beside each Cube


@sim.jit
def whole(
    first_ptr, first_out, second_ptr, second_out, weight_ptr, weight_out, zero_ptr, gaps_ptr, dy_ptr,
    parts_ptr, bias_ptr, image_ptr, sums_ptr, transposed_ptr, zeros, gaps, image_items, weight_items, N, chunks,
    part, part_stride,
    FIRST: tl.constexpr, SECOND: tl.constexpr, WEIGHT: tl.constexpr, ZERO: tl.constexpr, GAPS: tl.constexpr,
    BIAS: tl.constexpr, BIAS_SUM: tl.constexpr, IMAGE: tl.constexpr, GRAD_WEIGHT: tl.constexpr,
    NARROW_FIRST: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    """Jobs as for `prepare`, `image_windows` and `weight_tiles`; an empty tuple: there is no such job.

    SECOND is made beside grad_input if there is one. BIAS_SUM: (channels, parts, columns) of `sum_partials`. NARROW_FIRST:
    the first image is the one that GRAD_WEIGHT calls narrow. BACK: what `from_rows` takes after its pointers.
    """
    done = 0
    if FIRST:
        image_blocks(first_ptr, first_out, done, *FIRST, True)
        done += FIRST[0]
    if WEIGHT:
        weight_fractals(weight_ptr, weight_out, done, *WEIGHT, True)
        done += WEIGHT[0]
    if ZERO:
        clear_items(zero_ptr, done, zeros, ZERO[1], True)
        done += ZERO[0]
    if GAPS:
        clear_items(gaps_ptr, done, gaps, GAPS[1], True)
        done += GAPS[0]
    if IMAGE:
        al.sync_block_all("all", 0)
    if SECOND:
        image_blocks(second_ptr, second_out, done, *SECOND, True)
        done += SECOND[0]
    if GRAD_WEIGHT:
        al.sync_block_all("all_vector", 1)
        al.sync_block_set("vector", "cube", 2)
    if BIAS:
        bias_sums(dy_ptr, parts_ptr, done, *BIAS, True)
        al.sync_block_all("all_vector", 3)
        sum_partials(parts_ptr, bias_ptr, *BIAS_SUM)
    if IMAGE:
        image_windows(first_out, weight_out, image_ptr, image_ptr, image_items, N, IMAGE)
    if GRAD_WEIGHT:
        al.sync_block_wait("vector", "cube", 2)
        narrow_ptr = first_out if NARROW_FIRST else second_out
        wide_ptr = second_out if NARROW_FIRST else first_out
        weight_tiles(
            narrow_ptr,
            wide_ptr,
            sums_ptr,
            image_items,
            weight_items,
            N,
            chunks,
            part,
            part_stride,
            GRAD_WEIGHT,
        )
    if BACK:
        al.sync_block_all("all", 4)
        from_rows(sums_ptr, transposed_ptr, *BACK, True)


def whole_step(
    prepared: Step, image: Step | None, weight: Step | None, back: Step | None, bias: Step | None, cores: int
) -> Step:
    """One launch for these steps: `prepare`, `image_windows`, `weight_tiles`, `from_rows`, `sum_partials` of the bias."""
    jobs = prepared.arguments
    given: dict[str, Any] = {n: x for n, x in jobs.items() if n != "multibuffer"}
    stand_in = jobs["first_ptr"]
    a, b = (s.arguments if s is not None else {} for s in (image, weight))
    c, d = (s.arguments if s is not None else {} for s in (back, bias))
    given |= {
        **{"bias_ptr": d.get("out_ptr", stand_in), "image_ptr": a.get("out_ptr", stand_in)},
        **{"sums_ptr": b.get("out_ptr", stand_in), "transposed_ptr": c.get("out_ptr", stand_in)},
        **{"image_items": a.get("items", 0), "weight_items": b.get("items", 0), "N": (a or b)["N"]},
        **{n: b.get(n, 0) for n in ("chunks", "part", "part_stride")},
        "BIAS_SUM": (d["n"], d["PARTS"], d["COLS"]) if d else (),
        **{"IMAGE": a.get("S", ()), "GRAD_WEIGHT": b.get("S", ())},
        "NARROW_FIRST": bool(b) and b["narrow_ptr"] is jobs["first_out"],
        "BACK": tuple(c[n] for n in ("items", "C", "P", "PITCH", "BC", "BP")) if c else (),
        "multibuffer": (a or b)["multibuffer"],
    }
    jobs_items = [given[n][0] for n in JOBS if given[n]]
    busy = max(
        given["image_items"] + given["weight_items"],
        *(up(n, VECTOR_CORES) // VECTOR_CORES for n in jobs_items),
    )
    step = image or weight
    assert step is not None
    return Step(whole, min(busy, cores), given, step.switches)


@sim.jit
def both_gradients(
    src_ptr, w_ptr, image_ptr, image_items, narrow_ptr, wide_ptr, weight_ptr, weight_items, N, chunks, part, part_stride,
    IMAGE: tl.constexpr, WEIGHT: tl.constexpr,
):  # fmt: skip
    """IMAGE, WEIGHT: the sizes of `image_windows` and of `weight_tiles`."""
    image_windows(src_ptr, w_ptr, image_ptr, image_ptr, image_items, N, IMAGE)
    weight_tiles(
        narrow_ptr, wide_ptr, weight_ptr, image_items, weight_items, N, chunks, part, part_stride, WEIGHT
    )


def joined(image: Step, weight: Step, cores: int) -> Step:
    """One launch for the two; the kernels are `image_windows` and `weight_tiles`."""
    a, b = image.arguments, weight.arguments
    arguments = {
        **{n: a[n] for n in ("src_ptr", "w_ptr", "multibuffer")},
        **{"image_ptr": a["out_ptr"], "image_items": a["items"], "IMAGE": a["S"]},
        **{n: b[n] for n in ("narrow_ptr", "wide_ptr", "N", "chunks", "part", "part_stride")},
        **{"weight_ptr": b["out_ptr"], "weight_items": b["items"], "WEIGHT": b["S"]},
    }
    return Step(both_gradients, min(a["items"] + b["items"], cores), arguments, image.switches)
