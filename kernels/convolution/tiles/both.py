# mypy: disable-error-code="no-untyped-def"
"""grad_input and grad_weight in one launch: cores that have no tile of grad_input left go on with tiles of grad_weight."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ...operator.plan import Step
from .weight import weight_tiles
from .window import image_windows


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
