"""What a row of a table may say: bad input is told by the row's id, and what is odd but can be timed is in its note."""

import re
from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendtile.kernels.validation import Row, predict, registry
from ascendtile.kernels.validation.settings import BYTES, CAN_BE_ZERO, LARGEST_NUMBER, MOST, Settings
from ascendtile.simulator.errors import RunError, UsageError

OPS = sorted(registry.predictors())
ROWWISE = re.compile(  # ops that have a name for each of their sizes
    r"^((log_)?softmax|(rms|layer|group|batch)norm|rope|swiglu|matmul|quant|grouped|conv2d|(max|avg)pool|gather|pad|tile$|"
    r"slice)|attention|( rows?| columns| middle| images)$"
)
SIZES = (1, 2, 7, 16, 33)
NUMBERS = (0, 1, 2, 7, 50, 101, 10**9, 10**30)
SHAPES = st.lists(st.sampled_from(SIZES), min_size=1, max_size=7).filter(lambda x: prod(x) < 1e5)
KEYS = (
    "ahead", "aiv", "block", "buffers", "c0", "causal", "changed", "dropout", "each", "group", "groups", "kv_heads",
    "mask", "page", "part", "parts", "pass", "programs", "rows", "step", "stretch", "strips", "times", "wings",
)  # fmt: skip
PAIRS = ("block", "single", "split", "swizzle", "tile")
WORDS = (
    "time=core",
    "time=nonsense",
    "banks=sideways",
    "to=FRACTAL_NZ",
    "from=NC1HWC0",
    "b=T",
    "sums=wrong",
    "l2=warm",
)


def row(op, shapes, dtypes="fp32", tiling="cores=4", product="ascend910b3"):
    """A row that nobody measured, with the id "mine"."""
    cells = dict.fromkeys(Row.__dataclass_fields__, "") | {"measured": None, "fitted": False, "unit": "us"}
    told = {"op": op, "shapes": shapes, "dtypes": dtypes, "tiling": tiling, "product": product}
    return Row(**cells | {"id": "mine"} | told)


@st.composite
def any_row(draw):
    """Of any op, with sizes, types and settings that need not make sense."""
    shapes = "x".join(map(str, draw(SHAPES)))
    kinds = st.sampled_from((*BYTES, "fp8"))
    dtypes = draw(kinds) + draw(st.sampled_from(("", ","))) + draw(st.sampled_from(("", "->fp32")))
    numbers = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(NUMBERS), max_size=2))
    given = {k: str(v) for k, v in numbers.items()} | {"cores": str(draw(st.sampled_from((1, 3, 4, 0))))}
    if draw(st.booleans()):
        two = "x".join(str(draw(st.sampled_from((0, 1, 16, 50)))) for _ in range(2))
        given[draw(st.sampled_from(PAIRS))] = two
    words = draw(st.lists(st.sampled_from(WORDS), max_size=1))
    tiling = " ".join([*(f"{k}={v}" for k, v in given.items()), *words])
    return row(draw(st.sampled_from(OPS)), shapes, dtypes, tiling)


def told(tried):
    """What is said of a bad row, "" of one that is predicted or whose kernel would fail on the device."""
    try:
        assert predict(tried).value > 0
    except UsageError as e:
        return str(e)
    except RunError:
        pass
    return ""


@settings(max_examples=60, deadline=None)
@given(any_row())
def test_any_row_is_predicted_or_refused_by_its_id(tried):
    assert (told(tried) or "mine: ").startswith("mine: ")


@pytest.mark.exhaustive
@settings(max_examples=3000, deadline=None)
@given(any_row())
def test_very_many_rows_are_predicted_or_refused_by_their_id(tried):
    assert (told(tried) or "mine: ").startswith("mine: ")


@pytest.mark.parametrize("op", ["memcpy GM->UB", *(op for op in OPS if ROWWISE.search(op))])
def test_eight_sizes_are_refused_by_what_is_wanted_and_what_was_given(op):
    words = told(row(op, "x".join("2" * 8), tiling="cores=1 tile=2x2"))
    assert words.startswith("mine: shapes must be ")
    assert words.endswith(f"got {'x'.join('2' * 8)!r}")


@given(st.sampled_from(KEYS), st.integers(0, 2 * LARGEST_NUMBER))
def test_a_number_is_within_its_range_or_refused_by_key_and_id(key, number):
    tiled = Settings(row("add", "8", tiling=f"{key}={number}"))
    least, most = 0 if key in CAN_BE_ZERO else 1, MOST.get(key, LARGEST_NUMBER)
    if least <= number <= most:
        assert tiled.number(key) == number
    else:
        with pytest.raises(
            UsageError, match=f"^mine: tiling {key}={number}: numbers must be from {least} to {most}$"
        ):
            tiled.number(key)


@pytest.mark.parametrize(
    ("op", "shapes", "dtypes", "tiling", "words"),
    [
        ("softmax", "128", "fp32", "cores=4", "shapes must be rows x columns, got '128'"),
        ("matmul", "4x4", "fp16", "cores=4", "shapes must be M x N x K"),
        ("rope", "4x4x7", "fp16", "cores=4", "which must be even; got 7"),
        ("swiglu", "8x9", "fp16", "cores=4", "an even number of columns"),
        ("pad", "7x100x50", "fp32", "cores=4", "100 columns cannot be padded to 50"),
        ("slice", "7x100x50", "fp32", "cores=4", "100 columns cannot stay of 50"),
        ("rmsnorm", "8x64", "int8", "cores=4", "rmsnorm is for fp16, bf16, fp32; got dtypes 'int8'"),
        ("conv2d", "1x16x16x4x1x1x0", "int8", "cores=4", "conv2d is for fp16, bf16, fp32"),
        ("add", "64", "fp32", "cores=0", "cores=0: numbers must be from 1 to 4096"),
        ("add", "64", "fp32", "cores=1000000000", "cores=1000000000: numbers must be from 1 to 4096"),
        ("add", "64", "fp32", "cores=4 changed=101", "changed=101: numbers must be from 0 to 100"),
        ("add", "1024", "fp32", "cores=4 stretch=5", "4 cores have 20 of 1024 elements"),
        ("matmul", "64x64x64", "fp16", "cores=4 l1=0x0x0", "l1=0x0x0: numbers must be from 1"),
        ("matmul", "64x64x64", "fp16", "cores=4 l1=16x16x16 group=0", "group=0: numbers must be from 1"),
        ("matmul", "64x64x64", "int32", "cores=4", "matmul of 64x64x64, int32, cores=4: "),
        ("sqrt", "64", "bool", "cores=4", "sqrt of 64, bool, cores=4: "),
        ("add", "64", "fp32", "cores=4 buffers=100", "add of 64, fp32, cores=4 buffers=100: "),
        ("transdata", "768x768", "fp16", "cores=4 to=NC1HWC0", "FRACTAL_NZ is of M x N, NC1HWC0 and FRACTAL_Z of N x C"),
        ("transdata", "64x64", "fp16", "cores=4 to=FRACTAL_NZ c0=7", "c0=7: blocks have a power of two"),
        ("matmul", "64x64x64", "fp16", "cores=4 l1=16x16x16 keep=ab", "keep=ab is not one of a, b"),
        ("matmul", "64x64x64", "fp32", "cores=4 l1=16x16x16 hf32=no", "hf32=no is not one of yes"),
        ("conv2d", "1x16x16x4x1x1x0", "fp32", "cores=4 hf32=no", "hf32=no is not one of yes"),
        ("triton attention", "1x64x64", "fp16", "cores=4 block=32x32 maximum=no", "maximum=no is not one of running, none"),
        ("memcpy GM->UB", "64x64", "fp16", "cores=4 tile=16x16 all=yes", "all=yes is not one of same, turned"),
        ("add", "64", "fp32", "cores=4 code=hot", "code=hot is not one of cold, warm"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_words_of_the_table(op, shapes, dtypes, tiling, words):
    with pytest.raises(UsageError) as error:
        predict(row(op, shapes, dtypes, tiling))
    assert str(error.value).startswith("mine: ")
    assert words in str(error.value)
    assert ".py" not in str(error.value)


@pytest.mark.parametrize(
    ("op", "shapes", "dtypes", "tiling", "plain", "words"),
    [
        ("add", "64", "fp32", "cores=4 wings=2", "cores=4", "not used for this row: wings=2"),
        ("add", "64", "fp32", "cores=4 time=nonsense", "cores=4", "is not task or core: taken as time=task"),
        ("add", "64", "fp32", "cores=4 banks=sideways", "cores=4", "is not apart: taken as not given"),
        ("add", "64", "fp32", "cores=4 block=0", "cores=4", "block=0: taken as not given"),
        ("add", "64", "fp32", "cores=50", "cores=50", "cores=50: ascend910b3 has 40 of this kind"),
        ("adamw", "64", "fp16", "cores=4", "cores=4", "adamw is timed in fp32, not in fp16"),
        ("quant_matmul", "16x16x16", "fp16", "cores=4", "cores=4", "whose results are not scaled"),
        ("grouped_matmul", "7x16x16", "fp16", "cores=4 groups=8", "cores=4 groups=8", "each is taken to have 1"),
    ],
)  # fmt: skip
def test_what_is_odd_but_can_be_timed_is_in_the_note(op, shapes, dtypes, tiling, plain, words):
    found = predict(row(op, shapes, dtypes, tiling))
    assert words in found.note
    assert found.value == predict(row(op, shapes, dtypes, plain)).value


def test_matrices_that_become_fractals_are_taken_as_one_of_all_rows():
    several = row("transdata", "4x16x32", "fp16", "cores=4 to=FRACTAL_NZ")
    assert predict(several).value == predict(replace(several, shapes="64x32")).value
    assert "rows of all matrices" in predict(several).note
