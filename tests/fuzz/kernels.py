"""Kernels whose source is changed: between them most of the language. All have the same arguments.

a: fp32 [4096]; b: fp16 [4096]; c: int32 [4096], values 0 to 15; out: fp32 [4096]; more: int32 [4096]; n: 4000.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
import ascendtile.simulator.language.extra.cann.extension as al
from ascendtile.simulator.language.extra.cann import buffer as bl


@sim.jit
def larger(p, q):
    return tl.maximum(p, q)


@sim.jit
def rows(a, b, c, out, more, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    at = pid * B + i
    x = tl.load(a + at, mask=at < n, other=0.0)
    y = tl.load(b + at, mask=at < n, other=1.0).to(tl.float32)
    z = tl.load(c + at, mask=at < n, other=0)
    e = tl.exp(x - tl.max(x, axis=0))
    x = e / tl.sum(e, axis=0) + tl.where(z > 3, y, -y)
    y = larger(x, tl.abs(y)) * tl.rsqrt(y * y + 1.0)
    z = (z << 2) ^ (z // 3) + z % 5 & 0x7F | pid
    tl.store(out + at, x + y, mask=at < n)
    tl.store(more + at, z, mask=at < n)


@sim.jit
def loops(a, b, c, out, more, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.zeros((B,), tl.float32)
    z = tl.full((B,), 1, tl.int32)
    s = tl.load(c + pid)
    for k in range(0, 4):
        y = tl.load(a + k * B + i)
        if s > k:
            x += y * 2.0
        else:
            x = x - y
    for k in tl.static_range(2):
        z = z * 3 + k
    for k in range(s):
        x = x + tl.load(b + k * B + i).to(tl.float32)
    while s < 20:
        s = s + 5
    for start in range(pid * B, n, tl.num_programs(0) * B):
        at = start + i
        tl.store(out + at, x, mask=at < n)
    tl.atomic_add(more + i, z + s)
    t = tl.atomic_max(more + 4000, s)
    if t == 20:
        return
    tl.store(more + 4001, t)


@sim.jit
def products(a, b, c, out, more, n, B: tl.constexpr):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    x = tl.load(b + i * 32 + j)
    y = tl.load(b + 1024 + i * 32 + j)
    z = tl.dot(x, y)
    z = tl.dot(tl.trans(x), y, z)
    s = tl.sum(z, axis=1)
    z = z + tl.broadcast_to(s[:, None], (32, 32)) + tl.reshape(tl.load(a + tl.arange(0, 1024)), (32, 32))
    at = tl.program_id(0) * 1024 + i * 32 + j
    tl.store(out + at, tl.cumsum(z, axis=1))
    tl.store(more + at, tl.argmax(z, axis=1)[:, None] + j)


@sim.jit
def shapes(a, b, c, out, more, n, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(a + i)
    z = tl.load(c + i)
    y = tl.gather(x, z, 0)
    x = tl.flip(x, 0) + tl.sort(y)
    y = tl.interleave(x, y)
    w = tl.join(x, x)
    p, q = tl.split(w)
    w = tl.cat(p, q, can_reorder=True)
    h = tl.histogram(z, 16)
    r = tl.associative_scan(x, 0, larger)
    block = tl.make_block_ptr(a, (64, 64), (64, 1), (pid * 16, 0), (16, 16), (1, 0))
    m = tl.load(block, boundary_check=(0, 1))
    block = tl.advance(block, (0, 16))
    m = m + tl.load(block)
    tl.device_assert(n > 0, "sizes")
    tl.static_assert(B == 64)
    tl.store(out + pid * 64 + i, r)
    tl.store(out + 1024 + tl.arange(0, 16), tl.max(m, 1))
    tl.store(more + tl.arange(0, 16), h)
    tl.store(out + 2048 + tl.arange(0, 128), y + w)


@sim.jit
def buffers(a, b, c, out, more, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = bl.alloc(tl.float32, [B], al.ascend_address_space.UB)
    bl.to_buffer(tl.load(a + i), bind_buffer=total)
    s = tl.load(c) % 4 * 8
    part = bl.subview(total, [s], [8], [1])
    bl.to_buffer(bl.to_tensor(part) * 10.0, bind_buffer=part)
    x = total.to_tensor()
    x = al.insert_slice(x, al.extract_slice(x, [0], [8], [1]), [8], [8], [1])
    tl.store(out + i, x)


@sim.jit
def cores(a, b, c, out, more, n, B: tl.constexpr):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    at = i * 32 + j
    with al.scope(core_mode="cube"):
        x = tl.load(b + at)
        for k in range(2):
            tl.store(out + k * 1024 + at, tl.dot(x, x))
            al.sync_block_set("cube", "vector", 0)
    with al.scope(core_mode="vector"):
        for k in range(2):
            al.sync_block_wait("cube", "vector", 0)
            y = tl.load(out + k * 1024 + at)
            tl.store(out + 2048 + k * 1024 + at, y * 2.0)
