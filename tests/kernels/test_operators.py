"""Operators as data: what can be asked of every one, whatever it computes."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile import kernels
from ascendtile.kernels import Case, Parameter, get_operator, operators, run_op
from ascendtile.kernels.operator.declared import read_cases, read_parameters
from ascendtile.kernels.operator.messages import listed
from ascendtile.kernels.running.face import python_face

ALL = list(operators().values())
EVERY_CASE = [(op, case) for op in ALL for case in op.cases]
by_name = pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)


def test_operators_are_found_by_name():
    assert {"rms_norm_grad", "bce_with_logits_backward"} <= set(operators())
    assert all(get_operator(name) is op for name, op in operators().items())
    operators().clear()  # the caller's own copy
    assert operators()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rms_norm_gard", "unknown operator 'rms_norm_gard'; did you mean rms_norm_grad"),
        ("bce", "did you mean bce_with_logits or bce_with_logits_backward?"),
        ("zzz", "; known are batch_norm_reduce_backward, batch_norm_statistics"),
        ("", "unknown operator ''"),
    ],
)
def test_an_unknown_operator_is_answered_with_what_is_near(name, text):
    with pytest.raises(sim.UsageError) as error:
        get_operator(name)
    assert text in str(error.value)


@by_name
def test_an_operator_describes_itself(op):
    assert op.summary
    assert op.main in op.required
    assert set(op.fixed_dtypes) <= {*op.required, *op.optional}
    assert all(p.help and p.kind in ("int", "ints", "float", "choice") for p in (*op.parameters, *op.options))
    assert all(case.name == name and case.title and case.source for name, case in op.cases.items())
    assert {name for case in op.cases.values() for name in case.sizes} <= set(op.sizes)
    assert "tiny" in op.cases


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"sizes": {"rowss": 4}}, "rms_norm: case 'odd' has the unknown size 'rowss'; did you mean rows?"),
        ({"options": {"eps": 1}}, "rms_norm: case 'odd' has the unknown option 'eps'"),
    ],
)
def test_a_case_of_sizes_and_options_that_an_operator_lacks_is_refused(entry, text):
    op = get_operator("rms_norm")
    odd = replace(op.cases["tiny"], name="odd", **entry)
    with pytest.raises(sim.UsageError) as error:
        replace(op, cases={"odd": odd})
    assert text in str(error.value)


def test_a_file_of_cases_is_read_in_its_order_and_refused_with_the_entry_that_is_wrong(tmp_path):
    good = '[op.b]\ntitle = "B"\nsizes = { n = 3, m = [1, 2] }\nsource = "x"\n'
    (tmp_path / "cases.toml").write_text(
        good + good.replace("op.b", "op.a") + good.replace("op.b", "other.c")
    )
    cases = read_cases(str(tmp_path / "op.py"), "op")
    assert list(cases) == ["b", "a"]
    assert cases["b"] == Case("b", "B", {"n": 3, "m": (1, 2)}, "x")
    (tmp_path / "cases.toml").write_text(good + "tilte = 1\n")
    with pytest.raises(sim.UsageError, match=r"cases\.toml: op\.b has title, sizes, source, tilte"):
        read_cases(str(tmp_path / "op.py"), "op")


def test_knobs_in_a_file_have_the_fields_of_a_parameter(tmp_path):
    (tmp_path / "knobs.toml").write_text(
        '[op.tiling]\nrows = { low = 1, help = "rows" }\nform = { default = "a", choices = ["a", "b"], help = "f" }\n'
        "[op.options]\nn = { lwo = 1 }\n"
    )
    rows, form = read_parameters(str(tmp_path / "op.py"), "op")
    assert rows == Parameter("rows", "int", None, low=1, help="rows")
    assert form == Parameter("form", "choice", "a", ("a", "b"), help="f")
    with pytest.raises(sim.UsageError, match=r"knobs\.toml: op\.options\.n: .*lwo"):
        read_parameters(str(tmp_path / "op.py"), "op", "options")


@pytest.mark.drawn(8)
@pytest.mark.parametrize(("op", "case"), EVERY_CASE, ids=lambda x: getattr(x, "name", x))
def test_shapes_are_those_of_the_inputs(op, case):
    shapes = op.shapes(case, op.dtypes[-1])
    if sum(s.size for s in shapes.values()) > 1 << 20:
        case = {n: x for n, x in op.cases["tiny"].sizes.items()}
        shapes = op.shapes(case, op.dtypes[-1])
    inputs = op.inputs(case, op.dtypes[-1])
    assert {n: (a.shape, a.dtype) for n, a in inputs.items()} == {
        n: (s.shape, s.dtype.storage) for n, s in shapes.items()
    }


@by_name
@pytest.mark.parametrize("distribution", ["normal", "heavy"])
def test_inputs_are_the_same_for_the_same_seed(op, distribution):
    a, b = (op.inputs("tiny", "float16", 7, distribution) for _ in range(2))
    other = op.inputs("tiny", "float16", 8, distribution)
    assert all(np.array_equal(a[n], b[n]) for n in a)
    assert not all(np.array_equal(a[n], other[n]) for n in a)


def test_inputs_of_one_type_are_the_rounded_ones_of_another():
    op = get_operator("rms_norm_grad")
    wide, narrow = (op.inputs("tiny", t) for t in ("float32", "float16"))
    np.testing.assert_array_equal(wide["dy"].astype(np.float16), narrow["dy"])


def test_distributions():
    """Student's t with 4 degrees of freedom has twice the variance of a normal, and far outliers."""
    op = get_operator("rms_norm_grad")
    normal, heavy = (
        op.inputs({"rows": 1000, "cols": 1000}, "float32", 0, d)["dy"] for d in ("normal", "heavy")
    )
    assert abs(normal.mean()) < 0.01
    assert abs(normal.std() - 1) < 0.01
    assert np.abs(normal).max() < 6
    assert abs(heavy.std() - np.sqrt(2)) < 0.03
    assert np.abs(heavy).max() > 15
    assert abs(np.mean(np.abs(heavy) > 2.776) - 0.05) < 0.002  # the table of Student's t: 5 % beyond 2.776


def test_labels_are_soft_with_both_ends():
    t = get_operator("bce_with_logits_backward").inputs({"shape": 100_000}, "float32")["target"]
    assert t.min() == 0
    assert t.max() == 1
    assert abs(np.mean(t == 0) - 0.25) < 0.01
    assert abs(np.mean(t == 1) - 0.25) < 0.01


def test_rstd_belongs_to_x():
    inputs = get_operator("rms_norm_grad").inputs({"rows": (3, 4), "cols": (5, 6)}, "float16")
    x = np.float64(inputs["x"])
    np.testing.assert_allclose(inputs["rstd"], 1 / np.sqrt((x * x).mean((2, 3)) + 1e-6), rtol=1e-7)


@by_name
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"case": "tyni"}, "has no case 'tyni'; did you mean tiny?"),
        ({"dtype": "float61"}, "has no data type 'float61'; did you mean float16"),
        ({"dtype": "int8"}, "has no data type 'int8'; known are {dtypes}"),
        ({"seed": -1}, "seed must be an integer from 0, got -1"),
        ({"seed": 1.5}, "seed must be an integer from 0, got 1.5"),
        ({"distribution": "heavi"}, "unknown distribution 'heavi'; did you mean heavy?"),
    ],
)
def test_wrong_arguments_of_inputs(op, arguments, text):
    with pytest.raises(sim.UsageError) as error:
        op.inputs(**{"case": "tiny", "dtype": "float16", **arguments})
    assert text.format(dtypes=listed(op.dtypes)) in str(error.value)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"row": 3, "cols": 4}, "rms_norm_grad has no size 'row'; did you mean rows?"),
        ({"rows": 3}, "rms_norm_grad: size 'cols' is missing (length of a row"),
        ({"rows": -1, "cols": 4}, "size 'rows' must be made of integers from 0, got -1"),
        ({"rows": (2, 2.5), "cols": 4}, "size 'rows' must be made of integers from 0, got 2.5"),
        ({"rows": "8", "cols": 4}, "size 'rows' must be made of integers from 0, got '8'"),
        ({"rows": True, "cols": 4}, "size 'rows' must be made of integers from 0, got True"),
    ],
)
def test_wrong_sizes(sizes, text):
    with pytest.raises(sim.UsageError) as error:
        run_op("rms_norm_grad", sizes)
    assert text in str(error.value)


def test_a_case_of_ones_own():
    case = Case("mine", "mine", {"rows": 3, "cols": 32}, "here")
    assert run_op("rms_norm_grad", case, values=False).run.case == "mine"
    assert run_op("rms_norm_grad", {"rows": (3, 2), "cols": 32}, values=False).run.case == "rows=3x2 cols=32"


def test_short_names_of_types():
    assert run_op("rms_norm_grad", "tiny", "bf16", values=False).run.dtype == "bfloat16"


# -- knobs -----------------------------------------------------------------------------------------------------------


@by_name
@pytest.mark.parametrize(
    ("tiling", "text"),
    [
        ({"core": 4}, "{op} has no tiling parameter 'core'; did you mean cores?"),
        ({"zzz": 4}, "{op} has no tiling parameter 'zzz'; known are "),
        ({"cores": 2.5}, "{op}: tiling parameter 'cores' must be an integer, got 2.5"),
        ({"cores": float("nan")}, "{op}: tiling parameter 'cores' must be an integer, got nan"),
        ({"cores": float("inf")}, "{op}: tiling parameter 'cores' must be an integer, got inf"),
        ({"cores": "many"}, "{op}: tiling parameter 'cores' must be an integer, got 'many'"),
        ({"cores": True}, "{op}: tiling parameter 'cores' must be an integer, got True"),
        ({"cores": [4]}, "{op}: tiling parameter 'cores' must be an integer, got [4]"),
        ({"cores": -4}, "{op}: tiling parameter 'cores' must be at least 1, got -4"),
        ({"cores": 0}, "{op}: tiling parameter 'cores' must be at least 1, got 0"),
        ({"buffers": 17}, "{op}: tiling parameter 'buffers' must be at most 16, got 17"),
    ],
)
def test_wrong_tilings(op, tiling, text):
    with pytest.raises(sim.UsageError) as error:
        run_op(op, "tiny", tiling=tiling)
    assert text.format(op=op.name) in str(error.value)


def test_wrong_choice():
    with pytest.raises(
        sim.UsageError,
        match="'strategy' must be one of auto, full_row, kept_row, split_row, grid or vendor, got 'whole'",
    ):
        run_op("rms_norm_grad", "tiny", tiling={"strategy": "whole"})


@pytest.mark.drawn(6)
@by_name
@pytest.mark.parametrize("value", [3, 3.0, "3", np.int64(3), np.float32(3)], ids=repr)
def test_whole_numbers_are_read_in_any_form(op, value):
    assert run_op(op, "tiny", tiling={"buffers": value}, values=False).tiling["buffers"] == 3


@pytest.mark.drawn(2)
@by_name
@pytest.mark.parametrize("value", [None, "auto"])
def test_auto_leaves_the_choice_to_the_operator(op, value):
    chosen = run_op(op, "tiny", tiling={"cores": value}, values=False).tiling
    assert chosen == run_op(op, "tiny", values=False).tiling
    assert set(chosen) <= {p.name for p in op.parameters}
    assert None not in chosen.values()
    assert run_op(op, "tiny", tiling=chosen, values=False).tiling == chosen


def test_a_parameter_without_limits():
    assert Parameter("n", "int", 1, None, None, None, "any").read("x", -(10**9)) == -(10**9)


@by_name
def test_the_python_face_is_what_the_operator_declares(op):
    face = python_face(op, __name__)
    parameters = inspect.signature(face).parameters
    assert list(parameters)[: len(op.required) + len(op.optional)] == [*op.required, *op.optional]
    assert [n for n in op.optional if parameters[n].default is not None] == []
    needed = {n for n, p in parameters.items() if p.default is p.empty and p.kind is not p.KEYWORD_ONLY}
    assert set(op.required) <= needed
    assert {n for n, p in inspect.signature(kernels.run_op).parameters.items()} >= set(parameters) - {
        *op.required,
        *op.optional,
        *(x.name for x in op.arguments),
    }
    assert op.doc
    assert (face.__name__, face.__module__, face.__doc__[: len(op.doc)]) == (op.name, __name__, op.doc)
    with pytest.raises(TypeError, match=rf"^{op.name}\(\) missing a required argument: '{op.required[0]}'"):
        face()
    with pytest.raises(TypeError, match=rf"^{op.name}\(\) got an unexpected keyword argument 'nothing'"):
        face(*needed, nothing=1)


def test_the_package_offers_the_faces_where_their_operators_are():
    offered = [name for name in kernels.__all__ if name in operators()]
    assert len(offered) > 10
    for name in offered:
        face = getattr(kernels, name)
        home = sys.modules[face.__module__]
        assert (getattr(home, name), home.OPERATOR) == (face, get_operator(name))
