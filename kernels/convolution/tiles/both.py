# mypy: disable-error-code="no-untyped-def"
"""grad_input and grad_weight in one launch: cores that have no tile of grad_input left go on with tiles of grad_weight."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ...operator.operator import Step
from .weight import weight_tiles
from .window import image_windows


@sim.jit
def both_gradients(
    src_ptr,
    w_ptr,
    image_ptr,
    image_items,
    narrow_ptr,
    wide_ptr,
    weight_ptr,
    weight_items,
    N,
    chunks,
    part,
    part_stride,
    IMAGE: tl.constexpr,
    WEIGHT: tl.constexpr,
):
    """IMAGE, WEIGHT: what `image_windows` and `weight_tiles` take after their scalars, in order."""
    image_windows(
        src_ptr, w_ptr, image_ptr, image_ptr, image_items, N, IMAGE[0], IMAGE[1], IMAGE[2], IMAGE[3], IMAGE[4], IMAGE[5],
        IMAGE[6], IMAGE[7], IMAGE[8], IMAGE[9], IMAGE[10], IMAGE[11], IMAGE[12], IMAGE[13], IMAGE[14], IMAGE[15],
        IMAGE[16], IMAGE[17], IMAGE[18], IMAGE[19], False,
    )  # fmt: skip
    weight_tiles(
        narrow_ptr, wide_ptr, weight_ptr, image_items, weight_items, N, chunks, part, part_stride,
        WEIGHT[0], WEIGHT[1], WEIGHT[2], WEIGHT[3], WEIGHT[4], WEIGHT[5], WEIGHT[6], WEIGHT[7], WEIGHT[8], WEIGHT[9],
        WEIGHT[10], WEIGHT[11], WEIGHT[12], WEIGHT[13], WEIGHT[14], WEIGHT[15],
    )  # fmt: skip


IMAGE_NUMBERS = (
    *(
        "SRC",
        "SRC_PITCH",
        "OUT",
        "OUT_CHANNELS",
        "OUT_PITCH",
        "PHASES",
        "TAPS",
        "STEPS",
        "EACH",
        "GATHER",
        "ROWS",
        "COLS",
    ),
    *("GROUPS", "BM", "BK", "BN", "BH", "BW", "C0", "WEIGHT_C0"),
)
WEIGHT_NUMBERS = (
    *("NARROW", "NARROW_PITCH", "WIDE", "WIDE_PITCH", "AXES", "ROWS", "COLS", "GROUPS"),
    *("BA", "BB", "BN", "BH", "BW", "C0", "ATOMIC", "WINDOWS"),
)


def joined(image: Step, weight: Step, cores: int) -> Step:
    """One launch for the two; the kernels are `image_windows` and `weight_tiles`."""
    a, b = image.arguments, weight.arguments
    arguments = {
        **{
            "src_ptr": a["src_ptr"],
            "w_ptr": a["w_ptr"],
            "image_ptr": a["out_ptr"],
            "image_items": a["items"],
        },
        **{"narrow_ptr": b["narrow_ptr"], "wide_ptr": b["wide_ptr"], "weight_ptr": b["out_ptr"]},
        **{"weight_items": b["items"], **{n: b[n] for n in ("N", "chunks", "part", "part_stride")}},
        "IMAGE": tuple(a[n] for n in IMAGE_NUMBERS),
        "WEIGHT": tuple(b[n] for n in WEIGHT_NUMBERS),
        "multibuffer": a["multibuffer"],
    }
    return Step(both_gradients, min(a["items"] + b["items"], cores), arguments, image.switches)
