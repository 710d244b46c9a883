"""A chain of operators as data: tensors by name, steps that make some of others, sizes by name.

    CHAIN = Chain(
        name="scores",
        title="a product and its loss",
        sizes={"rows": 64, "cols": 128},
        inputs=(
            ChainInput("x", ("rows", "cols")),
            ChainInput("w", ("cols", 32), fan="cols"),
            ChainInput("target", ("rows", 32), draw="labels"),
        ),
        steps=(
            ChainStep("product", "matmul", {"a": "x", "b": "w"}, {"out": "logits"}),
            ChainStep("loss", "bce_with_logits", {"x": "logits", "target": "target"}, {"out": "mean_loss"}),
        ),
        outputs=("mean_loss",),
    )

Steps may stand in any order. An operator is one of ours, one of `glue/`, or an `Operator` of the user's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...simulator.errors import UsageError
from ..operator.messages import listed, near
from ..operator.operator import Operator
from ..operator.registry import get_operator, operators
from .glue import GLUE

DRAWS = ("signal", "normal", "labels", "one_hot")
EVERY_TENSOR, EVERY_PRODUCT = "all", "products"  # groups that every chain has
Dims = tuple[str | int, ...]


@dataclass(frozen=True)
class ChainInput:
    """A tensor that the chain is given.

    shape: numbers and names of sizes. draw: "signal" (of the distribution of the run), "normal", "labels" (from 0 to 1)
    or "one_hot" (one 1 in each row of the last axis). scale, center: of noise; fan: a size by whose root it is divided.
    """

    name: str
    shape: Dims
    draw: str = "signal"
    scale: float = 1.0
    center: float = 0.0
    fan: str | None = None

    def __post_init__(self) -> None:
        if self.draw not in DRAWS:
            raise UsageError(f"input {self.name!r}: unknown draw {self.draw!r}{near(self.draw, DRAWS)}")


@dataclass(frozen=True)
class ReshapedTensor:
    """A tensor of the chain, read in another shape of as many elements; nothing is copied."""

    tensor: str
    shape: Dims


@dataclass(frozen=True)
class ChainStep:
    """One operator. inputs: its input -> tensor; outputs: its output -> tensor, those that nothing reads left out."""

    name: str
    op: str | Operator
    inputs: Mapping[str, str | ReshapedTensor]
    outputs: Mapping[str, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    tiling: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def operator(self) -> Operator:
        """Raises `UsageError` for an unknown name."""
        if isinstance(self.op, Operator):
            return self.op
        if self.op in GLUE:
            return GLUE[self.op]
        if self.op not in operators():
            raise UsageError(f"unknown operator {self.op!r}{near(self.op, (*GLUE, *operators()))}")
        return get_operator(self.op)

    @property
    def reads(self) -> tuple[str, ...]:
        """Tensors that it reads."""
        return tuple(x.tensor if isinstance(x, ReshapedTensor) else x for x in self.inputs.values())

    @property
    def tensors(self) -> tuple[str, ...]:
        """Tensors that it reads and makes, each once."""
        return tuple(dict.fromkeys((*self.reads, *self.outputs.values())))


@dataclass(frozen=True)
class Chain:
    """A chain: sizes with their usual values, what it is given, its steps, and the tensors that it is for.

    groups: name -> tensors, or name -> steps, whose formats, or cubeMathTypes, are chosen together. Raises `UsageError` for
    names that mean nothing or two things, a tensor that two steps make or nothing reads, and steps that wait for each other.
    """

    name: str
    title: str
    sizes: Mapping[str, int]
    inputs: tuple[ChainInput, ...]
    steps: tuple[ChainStep, ...]
    outputs: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for step in self.steps:
            _check_step(step)
        _check_names(self)
        _check_tensors(self)
        _ = self.order

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """Every tensor: those that are given, then those that the steps make."""
        made = (t for step in self.order for t in step.outputs.values())
        return (*(x.name for x in self.inputs), *made)

    @cached_property
    def order(self) -> tuple[ChainStep, ...]:
        """The steps so that each comes after those that make what it reads."""
        known, left, out = {x.name for x in self.inputs}, list(self.steps), []
        while left:
            ready = next((s for s in left if known.issuperset(s.reads)), None)
            if ready is None:
                waits = listed(f"{s.name} for {listed(sorted(set(s.reads) - known))}" for s in left)
                raise UsageError(f"the chain {self.name} is circular: {waits} wait for each other")
            left.remove(ready)
            out.append(ready)
            known.update(ready.outputs.values())
        return tuple(out)

    @cached_property
    def products(self) -> tuple[str, ...]:
        """Steps for which a cubeMathType means something."""
        return tuple(s.name for s in self.order if s.operator.resolve is not None)

    def members(self, name: str) -> tuple[str, ...]:
        """The tensors or steps of that name or group. Raises `UsageError`."""
        found = {EVERY_TENSOR: self.tensors, EVERY_PRODUCT: self.products, **self.groups}
        if name in found:
            return tuple(found[name])
        steps = [s.name for s in self.steps]
        if name not in (*self.tensors, *steps):
            raise UsageError(
                f"the chain {self.name} has no tensor or step {name!r}{near(name, (*self.tensors, *steps, *found))}"
            )
        return (name,)

    def sized(self, given: Mapping[str, Any] | None) -> dict[str, int]:
        """Every size: those given, the usual values of the others. Raises `UsageError`."""
        for n, x in (given or {}).items():
            if n not in self.sizes:
                raise UsageError(f"the chain {self.name} has no size {n!r}{near(n, self.sizes)}")
            if isinstance(x, bool) or not isinstance(x, int) or x < 1:
                raise UsageError(
                    f"the chain {self.name}: size {n!r} must be a whole number from 1, got {x!r}"
                )
        return {**self.sizes, **(given or {})}


def dims_of(shape: Dims, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple(sizes[n] if isinstance(n, str) else n for n in shape)


def _check_step(step: ChainStep) -> None:
    op = step.operator
    for what, known, given in (
        ("input", (*op.required, *op.optional), step.inputs),
        ("output", op.outputs, step.outputs),
    ):
        for n in given:
            if n not in known:
                raise UsageError(f"step {step.name!r}: {op.name} has no {what} {n!r}{near(n, known)}")
    missing = [n for n in op.required if n not in step.inputs]
    if missing:
        raise UsageError(f"step {step.name!r}: {op.name} needs the input {listed(missing)}")
    if not step.outputs:
        raise UsageError(f"step {step.name!r} makes no tensor; {op.name} has {listed(op.outputs)}")
    op.read_options(step.options)
    op.read_tiling(step.tiling)


def _check_names(chain: Chain) -> None:
    """Names of sizes mean something, and names of tensors, steps and groups one thing each."""
    made = [t for s in chain.steps for t in s.outputs.values()]
    names = [*(x.name for x in chain.inputs), *made, *(s.name for s in chain.steps), *chain.groups]
    twice = [n for n, count in Counter([*names, EVERY_TENSOR, EVERY_PRODUCT]).items() if count > 1]
    if twice:
        raise UsageError(
            f"the chain {chain.name}: {twice[0]!r} is the name of two things; each needs its own"
        )
    shapes = [x.shape for x in chain.inputs] + [
        v.shape for s in chain.steps for v in s.inputs.values() if isinstance(v, ReshapedTensor)
    ]
    for n in (*(d for shape in shapes for d in shape), *(x.fan for x in chain.inputs if x.fan)):
        if isinstance(n, str) and n not in chain.sizes:
            raise UsageError(f"the chain {chain.name} has no size {n!r}{near(n, chain.sizes)}")


def _check_tensors(chain: Chain) -> None:
    made = {t for s in chain.steps for t in s.outputs.values()}
    tensors = {x.name for x in chain.inputs} | made
    read = {t for s in chain.steps for t in s.reads}
    _known(chain, read, tensors, "reads")
    _known(chain, chain.outputs, made, "gives")
    if not chain.outputs:
        raise UsageError(f"the chain {chain.name} has no output; name the tensors that it is for")
    idle = sorted(tensors - read - set(chain.outputs))
    if idle:
        raise UsageError(
            f"the chain {chain.name}: nothing reads {listed(idle)}; leave it out, or make it an output"
        )
    steps = {s.name for s in chain.steps}
    for n, members in chain.groups.items():
        if not members or not (tensors.issuperset(members) or steps.issuperset(members)):
            raise UsageError(
                f"the chain {chain.name}: group {n!r} must be of tensors or of steps, got {members}"
            )


def _known(chain: Chain, names: Iterable[str], known: set[str], verb: str) -> None:
    for n in sorted(names):
        if n not in known:
            raise UsageError(
                f"the chain {chain.name} {verb} {n!r}, which no step makes{near(n, sorted(known))}"
            )
