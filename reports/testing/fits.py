"""`assert_fits`: what a kernel needs of the buffers, against limits of a test."""

from __future__ import annotations

from collections.abc import Callable

from ...simulator.errors import BufferOverflowError, UsageError
from ...simulator.products import load_product, product_names
from ...simulator.products.quantity import BadQuantityError, convert
from ...simulator.products.spec import rule_for
from ...simulator.record.run import Buffer, LiveValue, Run
from ..facts import facts, texts
from .runs import one_run

__tracebackhide__ = True  # pytest shows the line of the test
NAME = "assert_fits"
SECTION = "buffers."
BUFFERS = (
    "ub",
    "l1",
    "l0a",
    "l0b",
    "l0c",
    "bt",
)  # of which runs have peaks; a product's other sizes have none
MOST_CULPRITS = 4


def assert_fits(run: object, **limits: int | str) -> None:
    """Fail unless the tiles of `run` fit into the buffers, or into parts of them.

    A launch that does not fit its product raises on its own. So give limits, below which a kernel is to stay; or a function
    of no arguments that launches it, whose overflow then fails the test with the sizes that would fit; or a run on a
    product of ours whose buffers were changed (`overrides={"buffers.ub": "1MiB"}`): it is held against the product as it is.

    Args:
        run: a `Run`, an `OpResult`, a list of them, or a function that gives one.
        limits: bytes by buffer: ub, l1, l0a, l0b, l0c, bt. 65536 or "64KiB".

    Raises:
        AssertionError: the text names the buffer, both numbers, and the values that are alive at the peak.
        UsageError: there is no such buffer, a limit is no size, or the run has no times.
    """
    asked = {_buffer(name): _bytes(name, limit) for name, limit in limits.items()}
    whole = one_run(_launched(run) if callable(run) else run, NAME)
    too_large = [
        _too_large(whole, n, b, most, asked)
        for n, b in whole.buffers.items()
        if b.peak_bytes > (most := asked.get(n, _own_bytes(whole, n, b)))
    ]
    if too_large:
        raise AssertionError("\n".join(too_large))


def _launched(launch: Callable[[], object]) -> object:
    try:
        return launch()
    except BufferOverflowError as error:
        raise AssertionError(str(error)) from None


def _buffer(name: str) -> str:
    if name.lower() not in BUFFERS:
        raise UsageError(f"{NAME}: no buffer {name!r}; there are {', '.join(BUFFERS)}")
    return name.upper()


def _bytes(name: str, limit: int | str) -> int:
    rule = rule_for(SECTION + name.lower())
    assert rule is not None
    try:
        return int(convert(limit, rule))  # type: ignore[arg-type]
    except BadQuantityError as error:
        raise UsageError(f"{NAME}: {name} {error}") from None


def _own_bytes(run: Run, name: str, buffer: Buffer) -> int:
    """What the product has, before anything was changed."""
    key = SECTION + name.lower()
    if key not in facts.overrides(run) or facts.product_name(run) not in product_names():
        return buffer.capacity_bytes
    return int(load_product(facts.product_name(run)).value(key))  # type: ignore[arg-type]


def _too_large(run: Run, name: str, buffer: Buffer, most: int, asked: dict[str, int]) -> str:
    rule = "the test allows" if name in asked else f"{facts.product_name(run)} has"
    alive = [v for v in buffer.peak if v.bytes]
    rows = [_culprit(v) for v in alive[:MOST_CULPRITS]]
    if more := alive[MOST_CULPRITS:]:
        rows.append(f"    {sum(v.bytes * v.copies for v in more):>8} B  in {len(more)} smaller ones")
    head = f"{run.name} needs {buffer.peak_bytes} bytes of {name}, {rule} {most}"
    return "\n".join([f"{head}{'. Alive at the peak:' if rows else ''}", *rows])


def _culprit(v: LiveValue) -> str:
    shape = f" {list(v.shape)} {v.dtype}" if v.dtype else ""
    copies = f" x {v.copies} copies" if v.copies > 1 else ""
    return f"    {v.bytes * v.copies:>8} B  {texts.clean(v.name, 60)}{shape}{copies}  {texts.place(v.file, v.line)}"
