"""Profiles of boards, in the spellings of several releases, as tasks and as rows; what is absurd is refused by line."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels.validation import predict, registry
from ascendtile.kernels.validation.calibration.history import AGAIN, AWAY, FOUND, states
from ascendtile.kernels.validation.calibration.mapping import Unmapped, _known, call_of
from ascendtile.kernels.validation.calibration.profile import ProfiledTask, ProfiledTensor, read_profile
from ascendtile.kernels.validation.calibration.rows import read_rows, split
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import load_product

PRODUCT = load_product("ascend910b3")
SUMMARY = (
    "Model Name,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us),Block Dim,"
    "Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,"
    "aicore_time(us),aiv_time(us)"
)
NEWER = SUMMARY.replace("Block Dim", "Block Num").replace("Model Name", "Device_id")
OLDER = SUMMARY.replace("(us)", "").replace("OP State,", "").replace("Mix Block Dim,HF32 Eligible,", "")
DETAILS = (
    "Step Id,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Mix Block Dim,"
    "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats"
)
ADD = {
    "name": "aclnnAdd_AddAiCore_Add", "type": "Add", "core": "AI_VECTOR_CORE", "us": "12.5", "blocks": "40",
    "in": '"4096,1024;4096,1024"', "in_types": "FLOAT16;FLOAT16", "in_formats": "ND;ND",
    "out": '"4096,1024"', "out_types": "FLOAT16", "out_formats": "ND",
}  # fmt: skip
PLACES = {
    "name": ("Op Name", "Name"), "type": ("OP Type", "Type"), "core": ("Task Type", "Accelerator Core"),
    "us": ("Task Duration(us)", "Task Duration", "Duration(us)"), "blocks": ("Block Dim", "Block Num"),
    "in": ("Input Shapes",), "in_types": ("Input Data Types",), "in_formats": ("Input Formats",),
    "out": ("Output Shapes",), "out_types": ("Output Data Types",), "out_formats": ("Output Formats",),
}  # fmt: skip


def cells(head, task):
    known = {place: task[part] for part, places in PLACES.items() for place in places}
    return [known.get(column, "N/A") for column in head.split(",")]


def changed(change):
    """An Add that differs; a type for each of other inputs."""
    types = {"in_types": ";".join(["FLOAT16"] * (1 + change["in"].count(";")))} if "in" in change else {}
    return ADD | types | change


@pytest.fixture
def profile(tmp_path):
    """Writes tasks that differ from an Add as told; gives the path."""

    def write(*changes, head=SUMMARY):
        text = io.StringIO()
        csv.writer(text).writerows([head.split(","), *(cells(head, changed(c)) for c in changes)])
        path = tmp_path / "op_summary_0.csv"
        path.write_text(text.getvalue())
        return path

    return write


@pytest.mark.parametrize(
    "head", [SUMMARY, NEWER, OLDER, DETAILS], ids=["summary", "newer", "older", "details"]
)
def test_every_spelling_gives_the_same_task(profile, head):
    (task,) = read_profile(profile({}, head=head))
    assert (task.type, task.core, task.us, task.blocks) == ("Add", "AI_VECTOR_CORE", 12.5, 40)
    assert [(x.shape, x.dtype, x.format) for x in task.inputs] == [((4096, 1024), "fp16", "ND")] * 2
    assert [x.shape for x in task.outputs] == [(4096, 1024)]


@pytest.mark.parametrize(
    "change",
    [
        {"in": "4096,1024;4096,1024"},
        {"in": '"""4096,1024;4096,1024"""'},
        {"in": " 4096, 1024 ; 4096, 1024 "},
        {"in_types": "DT_FLOAT16;DT_FLOAT16", "in_formats": "FORMAT_ND;FORMAT_ND"},
        {"us": "12.500\t", "core": "AI Vector Core"},
    ],
)
def test_quotes_blanks_and_prefixes_make_no_difference(profile, change):
    (task,) = read_profile(profile(change))
    (usual,) = read_profile(profile({}))
    assert task == usual


def test_units_of_the_column_count(profile):
    nanoseconds = SUMMARY.replace("Task Duration(us)", "Task Duration(ns)")
    path = profile({}, head=nanoseconds)
    path.write_text(path.read_text().replace("AI_VECTOR_CORE,N/A,N/A", "AI_VECTOR_CORE,N/A,12500"))
    assert read_profile(path)[0].us == 12.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"us": "fast"}, "line 2: duration 'fast' is no number from 0 to 1e+09"),
        ({"us": "-3"}, "duration '-3' is no number"),
        ({"us": "inf"}, "duration 'inf' is no number"),
        ({"us": "1e30"}, "duration '1e30' is no number"),
        ({"blocks": "-1"}, "Block Dim '-1' is no whole number from 0 to 65536"),
        ({"blocks": "9999999"}, "Block Dim '9999999' is no whole number"),
        ({"in": "4096,x"}, "dimension 'x' is no whole number up to 2^40"),
        ({"in": "4096,9999999999999"}, "dimension '9999999999999' is no whole number"),
        ({"in": ",".join("2" * 17)}, "a shape has 17 dimensions, at most 16 are allowed"),
        ({"in": "1;" * 10001}, "inputs has 20002 characters, at most 20000"),
    ],
)
def test_absurd_values_are_refused_with_file_line_and_rule(profile, change, words):
    with pytest.raises(UsageError, match=r"op_summary_0\.csv") as error:
        read_profile(profile(change))
    assert words in str(error.value)


def test_a_file_that_is_no_profile_is_an_error_in_words(profile, tmp_path):
    for head, words in (
        (SUMMARY.replace("Input Shapes", "Shapes"), "line 1: no column Input Shapes;"),
        (SUMMARY + ",Input Shapes", "the column 'Input Shapes' is there twice"),
        (SUMMARY.replace("Task Duration(us)", "Task Duration(weeks)"), "in weeks, not one of us"),
    ):
        with pytest.raises(UsageError, match=words):
            read_profile(profile({}, head=head))
    path = tmp_path / "bad.csv"
    for content, words in (
        (b"", "empty; the first line"),
        (b"\xff\xfe", "not UTF-8"),
        ((SUMMARY + "\r\n1,2\r\n").encode("utf-16"), "not UTF-8"),
        ((SUMMARY + "\r1,2\r").encode(), "not a CSV table"),
        (SUMMARY.encode() + b"\n1,2\n", "line 2: 2 cells, the first line names 19 columns"),
        (SUMMARY.encode() + b'\n"a"b', "not a CSV table"),
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=words):
            read_profile(path)
        with pytest.raises(UsageError, match=words):
            read_rows(path, PRODUCT)  # which first asks whether it is a table of ours


MATMUL = {
    "type": "MatMulV2", "core": "AI_CORE", "blocks": "20", "in": '"128,256;512,256;"', "in_types": "DT_BF16;DT_BF16;",
    "out": '"128,512"', "out_types": "DT_BF16",
}  # fmt: skip


COLD = "l2=cold code=cold"


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    ("change", "op", "shapes", "dtypes", "tiling"),
    [
        ({}, "add", "4194304", "fp16,fp16->fp16", ""),
        ({"type": "RealDiv", "in": "8,4;"}, "muls", "32", "fp16->fp16", ""),
        ({"type": "Mul", "in": "8,40;40", "out": "8,40"}, "mul columns", "8x40", "fp16->fp16", ""),
        ({"type": "Sub", "in": "8,1;8,40", "out": "8,40"}, "sub row", "8x40", "fp16->fp16", ""),
        ({"type": "Less", "out_types": "BOOL", "in": "64;64", "out": "64"}, "less", "64", "fp16,fp16->bool", ""),
        ({"type": "Cast", "in": "64", "in_types": "FLOAT", "out": "64"}, "cast", "64", "fp32->fp16", ""),
        ({"type": "Silu", "in": "64", "out": "64"}, "silu", "64", "fp16->fp16", ""),
        ({"type": "ZerosLike", "out": "77"}, "memset", "77", "fp16->fp16", ""),
        (MATMUL, "matmul", "128x512x256", "bf16,bf16->bf16", "group=4 b=T"),
        (MATMUL | {"in": "256,128;256,512;"}, "matmul", "128x512x256", "bf16,bf16->bf16", "group=4 a=T"),
        ({"type": "SwiGlu", "in": "6,7,32", "in_types": "BF16", "out": "6,7,16"}, "swiglu", "42x32", "bf16", ""),
        ({"type": "Slice", "in": "5,64", "in_types": "INT64", "out": "5,16"}, "slice", "5x16x64", "int64", ""),
        ({"type": "ConcatD", "in": "5,64;5,8", "in_types": "FLOAT;FLOAT", "out": "5,72"}, "concat", "5x64x8", "fp32", ""),
        ({"type": "ReduceSum", "in": "512", "in_types": "FLOAT", "out": "1"}, "reduce_sum", "512", "fp32->fp16", ""),
        ({"type": "ReduceMean", "in": "8,16,32", "out": "8,16,1"}, "reduce_mean rows", "128x32", "fp16->fp16", ""),
        ({"type": "ReduceMax", "in": "8,16,32", "out": "8,32"}, "reduce_max middle", "8x16x32", "fp16->fp16", ""),
        ({"type": "ReduceSum", "in": "8,16,32", "out": "32"}, "reduce_sum columns", "128x32", "fp16->fp16", ""),
        ({"type": "RmsNorm", "in": "2,8,64;64"}, "rmsnorm", "16x64", "fp16", ""),
        ({"type": "SoftmaxV2", "in": "2,8,64", "out": "2,8,64"}, "softmax", "16x64", "fp16", ""),
        ({"type": "BNTrainingReduce", "in": "2,3,8,8", "out": "3;3"}, "batchnorm_reduce", "2x3x64", "fp16", ""),
        ({"type": "BNTrainingUpdate", "in": "2,4,8,8,16", "out": "2,4,8,8,16"}, "batchnorm_update", "2x64x64", "fp16", ""),
        ({"type": "Transpose", "in": "3,16,64", "out": "3,64,16"}, "transpose", "3x16x64", "fp16", ""),
        ({"type": "Transpose", "in": "3,16,4,64", "out": "3,4,16,64"}, "transpose", "3x16x4x64", "fp16", ""),
        ({"type": "GatherV2", "in": "100,64;7", "out": "7,64"}, "gather", "7x64x100", "fp16", ""),
        (
            {"type": "GroupedMatmul", "in": "64,32;4,32,16", "out": "64,16", "blocks": "20"},
            "grouped_matmul", "64x16x32", "fp16,fp16->fp16", "groups=4",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else str(sorted(x.values())),
)  # fmt: skip
def test_an_operator_becomes_the_row_that_is_meant_and_the_row_is_predicted(
    profile, change, op, shapes, dtypes, tiling
):
    ((row,), ()) = read_rows(profile(change), PRODUCT)
    assert (row.row.op, row.row.shapes, row.row.dtypes) == (op, shapes, dtypes)
    cores = (ADD | change)["blocks"]
    assert row.row.tiling == " ".join(x for x in (f"cores={cores}", COLD, tiling) if x)
    assert predict(row.row).value > 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"type": "FlashDream"}, "nothing predicts it"),
        ({"core": "AI_CPU"}, "runs on AI_CPU, not on the AI Core"),
        ({"core": "HCCL"}, "runs on HCCL"),
        ({"us": "0"}, "no duration"),
        ({"in": "N/A", "out": "N/A", "in_types": "N/A"}, "no shapes in the profile"),
        ({"in": "-1,4;8,4"}, "a shape is not known"),
        ({"in_types": "FLOAT;FLOAT;FLOAT"}, "2 input shapes and 3 input data types"),
        ({"out_types": "FLOAT;FLOAT"}, "1 output shapes and 2 output data types"),
        ({"blocks": "N/A"}, "no Block Dim"),
        ({"in": "8,4;2"}, "a broadcast that is neither"),
        ({"in_types": "COMPLEX64;COMPLEX64"}, "type COMPLEX64"),
        ({"in": "0,4;0,4"}, "an empty tensor"),
        (MATMUL | {"in_formats": "FRACTAL_NZ;ND"}, "an operand in FRACTAL_NZ"),
        (MATMUL | {"in": "3,128,256;3,256,512", "out": "3,128,512"}, "a batch of products"),
        (MATMUL | {"in": "128,256;99,512"}, "shapes 128x256 and 99x512 do not give 128x512"),
        ({"type": "Conv2D"}, "does not tell stride and padding"),
        ({"type": "FlashAttentionScore"}, "does not tell layout and mask"),
        ({"type": "ReduceSum", "in": "8,4,2", "out": "4"}, "a sum over axes that are not neighbours"),
        ({"type": "Transpose", "in": "8,4,2", "out": "2,4,8"}, "other axes than two neighbours"),
    ],
)
def test_what_cannot_be_predicted_is_left_out_with_the_reason(profile, change, reason):
    (rows, (left,)) = read_rows(profile(change), PRODUCT)
    assert rows == []
    assert reason in left.reason
    assert (left.type, left.launches) == ((ADD | change)["type"], 1)


def test_launches_of_one_kernel_become_their_median_without_the_first(profile):
    other = {"type": "Relu", "in": "4096,1024", "us": "5"}
    times = [x for us in ("90", "10", "12", "11", "0") for x in ({"us": us}, other)]
    rows, _ = read_rows(profile(*times, head=DETAILS), PRODUCT)
    first, *_ = (r for r in rows if r.row.op == "add" and "l2=warm" in r.row.tiling)
    assert (first.us, first.launches, first.total_us) == (11.5, 4, 33)  # 10 warms up, 0 is no time
    pair = read_rows(profile({"us": "10"}, {"us": "20"}), PRODUCT)[0]
    assert sorted((r.us, r.row.tiling) for r in pair) == [
        (10, f"cores=40 {COLD}"), (20, "cores=40 l2=loop code=warm"),
    ]  # fmt: skip


def test_a_task_finds_in_l2_what_was_touched_there_last():
    """As long as no more than L2 was touched since; launched right after itself it is a loop."""
    small, large = (ProfiledTensor((n,), "fp16", "ND") for n in (1000, 30_000))
    made, used, other = (
        ProfiledTask(k, "", kind, "AIV", 1.0, 1, inputs, outputs)
        for k, (kind, inputs, outputs) in enumerate(
            [("Cast", (), (small,)), ("Relu", (small,), ()), ("Exp", (large,), (large,))]
        )
    )
    assert list(states([made, used, used], 10_000)) == [FOUND, FOUND, AGAIN]
    assert list(states([made, other, used], 10_000))[1:] == [AWAY, AWAY]
    assert list(states([made, other, used], 200_000))[1:] == [AWAY, FOUND]


sizes = st.lists(st.integers(1, 1 << 20), min_size=12, max_size=40)


@given(sizes=sizes, seed=st.integers(0, 99), part=st.floats(0.1, 0.5))
def test_rows_of_one_kernel_stay_together_and_a_seed_leaves_out_the_same(tmp_path_factory, sizes, seed, part):
    path = tmp_path_factory.mktemp("profile") / "p.csv"
    tasks = [ADD | {"in": f"{n};{n}", "out": f"{n}", "blocks": str(k % 3 + 1)} for k, n in enumerate(sizes)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([SUMMARY.split(","), *(cells(SUMMARY, t) for t in tasks)])
    rows, _ = read_rows(path, PRODUCT)
    assert len({r.row.id for r in rows}) == len(rows)
    kernels = {r.kernel for r in rows}
    count = max(1, round(part * len(kernels)))
    if len(kernels) - count < 4:
        with pytest.raises(UsageError, match="4 or more have to stay"):
            split(rows, part, seed)
        return
    kept, out = split(rows, part, seed)
    assert {r.kernel for r in out}.isdisjoint(r.kernel for r in kept)
    assert len({r.kernel for r in out}) == count
    assert sorted(r.row.id for r in kept + out) == sorted(r.row.id for r in rows)
    assert split(rows[::-1], part, seed)[1] == out[::-1]


@given(text=st.text(max_size=60), part=st.sampled_from(sorted(ADD)))
def test_any_text_in_a_cell_is_read_or_refused_in_words(tmp_path_factory, text, part):
    path = tmp_path_factory.mktemp("profile") / "p.csv"
    with path.open("w", newline="", errors="ignore") as file:
        csv.writer(file).writerows([SUMMARY.split(","), cells(SUMMARY, ADD | {part: text})])
    try:
        rows, left_out = read_rows(path, PRODUCT)
    except UsageError as error:
        told = str(error)
    else:
        told = "" if len(rows) + len(left_out) <= 1 else "several rows"
    assert not told or "p.csv: " in told


def test_everything_that_is_mapped_is_predicted_by_something(profile):
    """No operator leads to an op that nobody predicts: what the mappers name is in the registry."""
    named = set()
    for change in (
        {}, MATMUL, {"type": "Cast"}, {"type": "ArgMaxV2", "in": "4,8", "in_types": "FLOAT", "out": "4"},
        {"type": "ApplyAdamWV2", "in_types": "FLOAT"}, {"type": "ApplyMomentum", "in_types": "FLOAT"},
        {"type": "RmsNormGrad"}, {"type": "LpNormV2", "in_types": "FLOAT", "out": "1"},
        MATMUL | {"type": "QuantBatchMatmulV3", "in_types": "INT8;INT8"},
    ):  # fmt: skip
        (task,) = read_profile(profile(change))
        named.add(call_of(task).op)
    assert named <= set(registry.predictors())
    assert len(named) == 9
    assert len(_known()) > 90
    with pytest.raises(Unmapped):
        call_of(read_profile(profile({"type": "Conv2D"}))[0])
