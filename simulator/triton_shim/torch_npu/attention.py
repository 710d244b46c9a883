"""`torch_npu.npu_fusion_attention`, which scripts compare their kernels with: the documented formula, computed by torch.

    attention = dropout(softmax(mask(scale * (pse + query key^T)))) value

in float32, rounded once to the type of the inputs (documentation of torch_npu, npu_fusion_attention). It is a reference on
the CPU and takes no simulated time. A block of rows is computed at a time, and computed again for the gradient, so that
the matrix of all scores is never in memory.

Supported: the layouts BSH, SBH, BSND and BNSD; fewer heads in key and value (their number divides that of query); pse; an
atten_mask in sparse_mode 0 to 4, where 2, 3 and 4 derive it from their rule; keep_prob 1. Anything else is a `UsageError`.
"""

from __future__ import annotations

from typing import Any

from ...errors import UsageError

BLOCK_SCORES = 1 << 22  # scores at a time: 16 MiB in float32
SUM_COLUMNS = 8  # the vendor repeats maximum and sum of a row so often in the last axis
LAYOUTS = ("BSH", "SBH", "BSND", "BNSD")
NAME = "npu_fusion_attention"
REFUSED = ("padding_mask", "prefix", "actual_seq_qlen", "actual_seq_kvlen")


def npu_fusion_attention(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    pse: Any = None,
    padding_mask: Any = None,
    atten_mask: Any = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = 2147483647,
    next_tockens: int = 2147483647,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
) -> tuple[Any, Any, Any, Any, int, int, int]:
    """Attention of float tensors in `input_layout`; (attention, softmax maximum, softmax sum, empty, 0, 0, 0).

    Maximum and sum: (B, N, Sq, 8) float32, all 8 alike. Gradients go through the first result. `UsageError` for what is not
    supported, see above.
    """
    refused = dict(zip(REFUSED, (padding_mask, prefix, actual_seq_qlen, actual_seq_kvlen), strict=True))
    _refuse({name: x for name, x in refused.items() if x is not None}, keep_prob, sparse_mode, input_layout)
    given = {"query": query, "key": key, "value": value}
    q, k, v = (_heads(x, input_layout, head_num, name) for name, x in given.items())
    _check(q, k, v)
    import torch

    masked = _mask(torch, q.shape[2], k.shape[2], atten_mask, sparse_mode, pre_tockens, next_tockens)
    out, high, total = _all_blocks(torch, q, k, v, pse, masked, scale)
    empty = torch.empty(0, dtype=query.dtype)
    return _as_given(out, input_layout), high, total, empty, 0, 0, 0


def _refuse(given: dict[str, Any], keep_prob: float, sparse_mode: int, layout: str) -> None:
    if given:
        raise UsageError(f"{NAME}: {next(iter(given))} is not supported in ascendtile, only None is")
    if keep_prob != 1.0:
        raise UsageError(
            f"{NAME}: keep_prob must be 1 in ascendtile (the device's dropout is drawn), got {keep_prob}"
        )
    if sparse_mode not in range(5):
        raise UsageError(f"{NAME}: sparse_mode must be 0 to 4 in ascendtile, got {sparse_mode}")
    if layout not in LAYOUTS:
        raise UsageError(
            f"{NAME}: input_layout must be one of {', '.join(LAYOUTS)} in ascendtile, got {layout!r}"
        )


def _heads(x: Any, layout: str, heads: int, name: str) -> Any:
    """The tensor as (B, N, S, D)."""
    if x.dim() != (4 if "N" in layout else 3):
        raise UsageError(f"{NAME}: {name} has shape {tuple(x.shape)}, which is no {layout}")
    if layout in ("BSH", "SBH"):
        if x.shape[2] % heads:
            raise UsageError(
                f"{NAME}: {name} has a last axis of {x.shape[2]}, which {heads} heads do not divide"
            )
        x = x.transpose(0, 1) if layout == "SBH" else x
        x = x.unflatten(2, (heads, x.shape[2] // heads))
    return x if layout == "BNSD" else x.transpose(1, 2)


def _as_given(x: Any, layout: str) -> Any:
    """(B, N, S, D) in the layout that was asked for."""
    if layout == "BNSD":
        return x
    x = x.transpose(1, 2)
    x = x if layout == "BSND" else x.flatten(2)
    return x.transpose(0, 1).contiguous() if layout == "SBH" else x


def _check(q: Any, k: Any, v: Any) -> None:
    kinds = {str(x.dtype).removeprefix("torch.") for x in (q, k, v)}
    if len(kinds) > 1 or not kinds <= {"float16", "bfloat16", "float32"}:
        raise UsageError(
            f"{NAME}: query, key and value are all float16, bfloat16 or float32, got {sorted(kinds)}"
        )
    shapes = tuple(tuple(x.shape) for x in (q, k, v))
    same = q.shape[0] == k.shape[0] and k.shape[:3] == v.shape[:3] and q.shape[3] == k.shape[3]
    if not same or q.shape[1] % k.shape[1]:
        raise UsageError(f"{NAME}: query, key and value do not fit as (B, N, S, D): {shapes}")


def _mask(torch: Any, rows: int, columns: int, given: Any, mode: int, before: int, after: int) -> Any:
    """Where a score is left out, to be broadcast to (B, N, Sq, Skv); None where none is."""
    if given is None:
        return None  # documented: sparse_mode, pre_tockens and next_tockens have no effect then
    i, j = torch.arange(rows)[:, None], torch.arange(columns)[None, :]
    corner = columns - rows if mode in (3, 4) else 0  # these count from the lower right
    if mode in (2, 3):
        return j > i + corner
    outside = (j > i + corner + after) | (j < i + corner - before)
    if mode == 4:
        return outside
    masked = given.bool()
    if tuple(masked.shape[-2:]) != (rows, columns):
        raise UsageError(
            f"{NAME}: atten_mask has shape {tuple(given.shape)}, its last axes must be {(rows, columns)}"
        )
    if mode == 0 and (outside & ~masked).any():
        raise UsageError(
            f"{NAME}: atten_mask keeps scores outside of pre_tockens={before} and next_tockens={after}, which the "
            "documentation forbids; widen them, or use sparse_mode=1"
        )
    return masked


def _all_blocks(
    torch: Any, q: Any, k: Any, v: Any, pse: Any, masked: Any, scale: float
) -> tuple[Any, Any, Any]:
    """The results of all rows, (B, N, Sq, ...), put together from blocks."""
    from torch.utils.checkpoint import checkpoint

    group, size = q.shape[1] // k.shape[1], max(1, BLOCK_SCORES // k.shape[2])
    shape = (*q.shape[:3], k.shape[2])
    pse, masked = (None if x is None else torch.broadcast_to(x, shape) for x in (pse, masked))
    found: list[list[Any]] = [[], [], []]
    for b in range(shape[0]):
        for n in range(shape[1]):
            keys, values = k[b, n // group], v[b, n // group]
            for r in range(0, shape[2], size):
                place = (b, n, slice(r, r + size))
                more = [None if x is None else x[place] for x in (pse, masked)]
                parts = checkpoint(_block, q[place], keys, values, *more, scale, use_reentrant=False)
                for into, part in zip(found, parts, strict=True):
                    into.append(part)
    out, high, total = (torch.cat(parts).unflatten(0, shape[:3]) for parts in found)
    return out, *(x.detach()[..., None].expand(*shape[:3], SUM_COLUMNS).contiguous() for x in (high, total))


def _block(q: Any, k: Any, v: Any, pse: Any, masked: Any, scale: float) -> tuple[Any, Any, Any]:
    """Rows (R, D) against keys and values (Skv, D): attention (R, D), maximum (R,) and sum (R,) of the softmax."""
    scores = q.float() @ k.float().T
    scores = (scores if pse is None else scores + pse.float()) * scale
    if masked is not None:
        if masked.all(-1).any():
            raise UsageError(
                f"{NAME}: atten_mask leaves a row of scores without any, whose softmax is not defined"
            )
        scores = scores.masked_fill(masked, float("-inf"))
    high = scores.amax(-1)
    weights = (scores - high[:, None]).exp()
    total = weights.sum(-1)
    return (weights @ v.float() / total[:, None]).to(q.dtype), high, total
