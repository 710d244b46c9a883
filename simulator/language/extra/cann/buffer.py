"""Explicit buffers: `from ascendtile.simulator.language.extra.cann import buffer as bl`.

    q_l1 = bl.alloc(tl.float16, [M, K], al.ascend_address_space.L1)      # takes its bytes of L1 as long as it is used
    bl.to_buffer(tl.load(q), bind_buffer=q_l1)                           # the load goes there
    acc = tl.dot(bl.to_tensor(q_l1), k)

A tensor that was read from a buffer keeps what it was when the buffer is written again.
"""

from __future__ import annotations

from typing import Any

from ....ir.building import buffers
from ....ir.building.buffer_rules import AddressSpace as address_space
from ....ir.building.buffer_rules import KernelBuffer as buffer
from ....ir.building.registry import Builder, builtin
from ....ir.program import Value
from ....precision.dtypes import DType

buffer_type = buffer


@builtin
def alloc(
    b: Builder, etype: DType, shape: Any, _address_space: address_space | None = None, is_mem_unique: bool = False
) -> buffer:  # fmt: skip
    """A buffer of compile-time `shape` in one of `al.ascend_address_space`; without one in UB.

    etype: any number type. is_mem_unique: nothing else ever lies on its bytes. Until it is written it holds NaN, or the
    smallest integer of its type: on the device, whatever was there.
    """
    return buffers.new(b, etype, shape, _address_space, is_mem_unique)


@builtin
def to_buffer(
    b: Builder, tensor: Value, space: address_space | None = None, bind_buffer: buffer | None = None
) -> buffer:
    """The buffer that holds `tensor`, which must be a tile.

    bind_buffer: the tensor is put into this buffer (of one shape and type with it): in place where it is made just for it,
    else by a copy. space: without one or UB where the tensor lies, L1 brings it there. UB to L1 takes MTE3 where Cube and
    Vector share a core, and the path through global memory where they do not.
    """
    return buffers.of_tensor(b, tensor, space, bind_buffer)


@builtin
def to_tensor(b: Builder, memref: buffer, writable: bool = True, target_shape: Any = None) -> Value:
    """What a buffer in UB or L1 holds: a tile of its shape and type. `writable` changes nothing."""
    return buffers.to_tensor(b, memref, target_shape)


@builtin
def subview(b: Builder, src: buffer, offsets: Any, sizes: Any, strides: Any) -> buffer:
    """The part of a buffer at `offsets`, to be read and written in place.

    offsets: integers or integer scalars; sizes: compile-time; strides: 1. Its rows must begin on blocks of 32 bytes.
    """
    return buffers.part(b, src, offsets, sizes, strides)


buffer.methods.update(to_tensor=to_tensor, subview=subview)

__all__ = ["address_space", "alloc", "buffer", "buffer_type", "subview", "to_buffer", "to_tensor"]
