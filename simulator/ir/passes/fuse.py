"""`acc + dot(a, b)` becomes `dot(a, b, acc)`: the Cube adds into L0C, no vector addition takes place.

Done where the product is used by that addition only and the sum has the product's own type and shape.
"""

from __future__ import annotations

from ..program import Op, Program, Region, Value


def fuse_accumulators(program: Program) -> None:
    """Rewrite every such addition of the program."""
    products = {op.results[0].id: 0 for op in program.of_kind("dot") if op.args[2] is None}
    if not products:
        return
    for op in program.walk():
        for v in op.args:
            if v is not None and v.id in products:
                products[v.id] += 1
        for inner in op.regions:
            for v in inner.yields:
                if v.id in products:
                    products[v.id] += 1
    _region(program.body, products)


def _region(region: Region, uses: dict[int, int]) -> None:
    dots = {op.results[0].id: op for op in region.ops if op.kind == "dot" and op.args[2] is None}
    gone: set[int] = set()
    for i, op in enumerate(region.ops):
        for inner in op.regions:
            _region(inner, uses)
        if not dots:
            continue
        found = _sum_with_dot(op, dots, uses)
        if found is not None:
            product, acc = found
            region.ops[i] = Op(
                op.id,
                "dot",
                "",
                (product.args[0], product.args[1], acc),
                op.results,
                product.attrs,
                product.loc,
            )
            gone.add(product.id)
    if gone:
        region.ops = [op for op in region.ops if op.id not in gone]


def _sum_with_dot(op: Op, dots: dict[int, Op], uses: dict[int, int]) -> tuple[Op, Value] | None:
    if op.kind != "binary" or op.name != "add":
        return None
    a, b = op.args
    assert a is not None
    assert b is not None
    for product, acc in ((b, a), (a, b)):
        dot = dots.get(product.id)
        if (
            dot is not None
            and uses[product.id] == 1
            and acc.dtype == product.dtype
            and acc.shape == product.shape
        ):
            return dot, acc
    return None
