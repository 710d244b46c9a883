"""Laws of declared chains: their order follows from what is read, and a chain that cannot be is refused with its reason."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels.chains import ChainInput, ChainStep, ReshapedTensor, assigned, chains, get_chain
from ascendtile.kernels.chains.assignment import in_short
from ascendtile.simulator.errors import UsageError

from .small import PARTS, small


@pytest.mark.parametrize("steps", list(itertools.permutations(PARTS["steps"])))
def test_steps_run_after_those_that_make_what_they_read_in_whatever_order_they_stand(steps):
    assert [s.name for s in small(steps=steps).order] == ["norm", "head", "bce"]


def changed_step(number, **changed):
    steps = list(PARTS["steps"])
    of = {n: getattr(steps[number], n) for n in ("name", "op", "inputs", "outputs", "options", "tiling")}
    steps[number] = ChainStep(**{**of, **changed})
    return small(steps=tuple(steps))


def circular():
    first = ChainStep("norm", "rms_norm", {"x": "x", "gamma": "loss"}, {"y": "y"})
    inputs = tuple(x for x in PARTS["inputs"] if x.name != "gamma")
    return small(steps=(first, *PARTS["steps"][1:]), inputs=inputs, groups={})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: circular(), "circular: norm for loss, head for y and bce for logits wait for each other"),
        (lambda: changed_step(1, op="matmull"), "unknown operator 'matmull'; did you mean matmul"),
        (lambda: changed_step(1, inputs={"a": "y", "c": "w"}), "matmul has no input 'c'"),
        (lambda: changed_step(1, inputs={"a": "y"}), "matmul needs the input b"),
        (
            lambda: changed_step(1, inputs={"a": "yy", "b": "w"}),
            "reads 'yy', which no step makes; did you mean y",
        ),
        (lambda: changed_step(1, outputs={}), "makes no tensor; matmul has out"),
        (lambda: changed_step(1, outputs={"product": "logits"}), "matmul has no output 'product'"),
        (lambda: changed_step(1, outputs={"out": "x"}), "'x' is the name of two things"),
        (lambda: changed_step(1, name="all"), "'all' is the name of two things"),
        (lambda: changed_step(2, options={"reduction": "median"}), "must be one of"),
        (lambda: changed_step(2, tiling={"blocks": 3}), "no tiling parameter 'blocks'"),
        (lambda: small(outputs=()), "has no output"),
        (lambda: small(outputs=("lost",)), "gives 'lost', which no step makes"),
        (lambda: small(outputs=("loss", "x")), "gives 'x', which no step makes"),
        (lambda: small(groups={"both": ("x", "norm")}), "group 'both' must be of tensors or of steps"),
        (lambda: small(groups={"none": ()}), "group 'none' must be of tensors or of steps"),
        (lambda: small(sizes={"rows": 32}), "has no size 'cols'"),
        (lambda: small(inputs=(*PARTS["inputs"], ChainInput("z", (3,)))), "nothing reads z"),
        (lambda: ChainInput("z", (3,), draw="bernoulli"), "unknown draw 'bernoulli'"),
        (
            lambda: changed_step(1, inputs={"a": ReshapedTensor("y", ("rows", "columns")), "b": "w"}),
            "no size 'columns'",
        ),
    ],
)
def test_a_chain_that_cannot_be_is_refused_with_the_reason(make, words):
    with pytest.raises(UsageError, match=words):
        make()


@pytest.mark.parametrize(
    ("formats", "modes", "words"),
    [
        ({"q": "fp16"}, {}, "no tensor or step 'q'"),
        ({"head": "fp16"}, {}, "'head' is a step, and formats are of tensors"),
        ({}, {"w": "USE_HF32"}, "'w' is a tensor; a cubeMathType is of head"),
        ({}, {"norm": "USE_HF32"}, "'norm' is a step that multiplies nothing"),
        ({}, {"head": 9}, "cube_math_type is 9; it must be 0 KEEP_DTYPE"),
        (["x"], {}, "formats must be a mapping"),
    ],
)
def test_formats_and_modes_of_what_is_not_there_are_refused(formats, modes, words):
    with pytest.raises(UsageError, match=words):
        assigned(small(), formats, modes)


def test_a_name_counts_more_than_its_group_and_a_group_more_than_all():
    found = assigned(small(), {"w": "fp32", "weights": "bf16", "all": "fp16"}, {"products": 3})
    assert found.formats == {
        "x": "fp16", "gamma": "bf16", "w": "fp32", "target": "fp16", "y": "fp16", "logits": "fp16", "loss": "fp16",
    }  # fmt: skip
    assert found.modes == {"head": "USE_HF32"}


def test_two_groups_that_disagree_are_refused():
    with pytest.raises(UsageError, match="two groups give 'w' different formats"):
        assigned(
            small(groups={"weights": ("gamma", "w"), "wide": ("w", "y")}), {"weights": "fp16", "wide": "bf16"}
        )


@given(st.lists(st.sampled_from(["fp32", "fp16", "bf16"]), min_size=8, max_size=8), st.integers(0, 4))
def test_an_assignment_in_short_is_the_same_assignment(formats, mode):
    chain = get_chain("mlp")
    whole = assigned(
        chain,
        dict(zip(chain.tensors, formats, strict=True)),
        {n: mode if n != "make_y" else 0 for n in chain.products},
    )
    assert assigned(chain, *in_short(chain, whole)) == whole


def test_a_whole_chain_in_one_format_is_told_by_one_name():
    chain = get_chain("attention")
    assert in_short(chain, assigned(chain, {"all": "fp16"}, {"products": 3})) == (
        {"all": "fp16"},
        {"products": "USE_HF32"},
    )


def test_every_shipped_chain_has_what_it_says():
    for name, chain in chains().items():
        assert chain.name == name
        assert set(chain.outputs) <= set(chain.tensors)
        assert {m for g in chain.groups.values() for m in g} <= {
            *chain.tensors,
            *(s.name for s in chain.steps),
        }


def test_an_unknown_chain_is_refused_with_those_that_are_near():
    with pytest.raises(UsageError, match="unknown chain 'mpl'; did you mean mlp"):
        get_chain("mpl")
