"""What torch does beside kernels: each operation is recorded as it is called, with its bytes, its products and its line."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.judging.pricing.host_ops import HostOp, HostTensor, classify, counted, record_ops
from ascendtile.reports.judging.pricing.names import ALIASES, CREATIONS, MOVES, OVERWRITING, UNWRITTEN, VIEWS
from ascendtile.simulator.errors import UsageError

NEEDS_TORCH = pytest.mark.extra("torch")
sizes = st.integers(0, 1 << 40)
tensors = st.builds(HostTensor, st.lists(sizes, max_size=4).map(tuple), st.sampled_from(["float32", "bool"]))
sides = st.lists(tensors, max_size=3).map(tuple)
plain = st.none() | st.booleans() | sizes | st.floats(allow_nan=False) | st.text(max_size=9)
options = st.lists(plain | st.lists(plain, max_size=3).map(tuple), max_size=4).map(tuple)
drawn_ops = st.builds(HostOp, st.just("aten.mm.default"), sides, sides, sizes, sizes, sizes, options)


def recorded(calls, file=None):
    import torch

    with torch.no_grad(), record_ops(file) as ops:
        calls(torch)
    return ops


def bases(ops):
    return [op.base for op in ops]


@given(drawn_ops)
def test_an_operation_comes_back_from_json(op):
    assert HostOp.from_json(json.loads(json.dumps(op.to_json()))) == op


@pytest.mark.parametrize(
    "change",
    [
        *({"name": x} for x in (3, "x" * 999)),
        *({"inputs": x} for x in (5, [[[-1], "float32"]])),
        *({"flops": True}, {"bytes": 1.5}, {"line": None}, {"outputs": [["a"]]}),
        *({"options": x} for x in ([{}], [[0] * 999])),
        *({"transposed": x} for x in ([1, 2], [1, 2, -3], 4)),
    ],
)
def test_what_is_no_operation_is_refused(change):
    good = HostOp("aten.mm.default", (), ()).to_json()
    with pytest.raises(UsageError, match="host operation"):
        HostOp.from_json(good | change)
    for broken in (None, [], {}, 3):
        with pytest.raises(UsageError, match="host operation"):
            HostOp.from_json(broken)


def test_no_name_is_of_two_kinds():
    assert not VIEWS & CREATIONS
    assert not VIEWS & MOVES
    assert not CREATIONS & MOVES
    assert UNWRITTEN <= CREATIONS
    assert OVERWRITING <= CREATIONS | MOVES


def test_without_torch_nothing_is_recorded(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with record_ops() as ops:
        pass
    assert ops == []


def test_equal_operations_are_counted_together():
    first, second = HostOp("aten.mm.default", (), ()), HostOp("aten.add.Tensor", (), ())
    assert dict(counted([first, second, first])) == {first: 2, second: 1}


@NEEDS_TORCH
def test_views_are_what_torch_says_shares_memory():
    import torch

    shared = {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::")
        and any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        and any("Tensor" in str(r.type) for r in schema.returns)
    }
    of_scripts = {
        "__getitem__",
        "get",
        "keys",
        "pop",
        "setdefault",
        "as_tensor",
        "cpu",
        "cuda",
        "to",
        "pin_memory",
    }
    nested = {n for n in shared if n.startswith(("_nested", "_ncf", "_test", "_autocast", "_sparse"))}
    not_aliases = {"_unsafe_view", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"}
    of_autograd = {
        "_fw_primal",
        "_make_dual",
        "_unpack_dual",
        "_grad_sum_to_size",
        "_indices",
        "slice_inverse",
    }
    assert shared - of_scripts - nested - of_autograd - ALIASES <= {
        "_unwrap_optional",
        "local_value",
        "to_here",
    }
    assert ALIASES - not_aliases <= shared


@NEEDS_TORCH
def test_kinds_follow_what_is_done_with_the_data():
    def calls(torch):
        x = torch.zeros(4, 6)
        torch.empty(2), torch.randn(3), torch.full((2,), 1.0)
        x.t(), x[1:], x.view(24), x.unsqueeze(0), x.expand(2, 4, 6), x.split(2)
        x.t().contiguous(), x.half(), x.clone(), x.fill_(2.0), x.copy_(x)
        x.sum(), x + 1, x @ x.t(), torch.cat([x, x]), torch.nn.functional.pad(x, (1, 1))

    kinds = [classify(op) for op in recorded(calls)]
    assert [k for k in kinds if k != "view"] == ["create"] * 4 + ["move"] * 5 + ["compute"] * 5


@NEEDS_TORCH
def test_bytes_are_each_different_element_read_and_written_once():
    def calls(torch):
        x = torch.ones(4, 6)
        x.half(), x[:1].expand(4, 6).clone(), x.zero_(), x.t(), torch.empty(9)
        torch.nn.functional.embedding(torch.zeros(3, dtype=torch.long), x)

    found = {op.base: op.bytes for op in recorded(calls)}
    assert found["_to_copy"] == 24 * (4 + 2)
    assert found["clone"] == 6 * 4 + 24 * 4
    assert found["zero_"] == 24 * 4
    assert found["t"] == found["empty"] == 0
    assert found["embedding"] == 3 * 8 + 2 * 18 * 4  # three rows are read, not the table


@NEEDS_TORCH
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_copy_that_is_written_along_another_axis_than_it_is_read_says_its_sizes(device):
    def calls(torch):
        x, y = torch.empty(4, 6, 5, device=device), torch.empty(5, 6, 4, device=device)
        (
            x.transpose(1, 2).contiguous(),
            y.copy_(x.permute(2, 1, 0)),
            x.mT.half().contiguous(),
            x.permute(2, 1, 0).reshape(-1),
        )
        x.transpose(0, 1).contiguous(), x.clone(), x.mT.clone(), x[:, ::2].contiguous()
        x[:1].mT.expand(4, 5, 6).contiguous(), x[:1, :1].mT.contiguous()

    copies = [op.transposed for op in recorded(calls) if classify(op) == "move"]
    assert copies == [(4, 6, 5), (6, 4, 5), (), (4, 6, 5), (6, 4, 5), *[()] * 5]


@NEEDS_TORCH
def test_products_count_two_for_each_multiplication_and_others_nothing():
    def calls(torch):
        x, w = torch.empty(2, 8, 5, 5, device="meta"), torch.empty(4, 8, 3, 3, device="meta")
        torch.empty(3, 4) @ torch.empty(4, 5)
        torch.nn.functional.conv2d(x, w)
        x + x

    flops = {op.base: op.flops for op in recorded(calls)}
    assert flops["mm"] == 2 * 3 * 4 * 5
    assert flops["convolution"] == 2 * (2 * 4 * 3 * 3) * (8 * 3 * 3)
    assert flops["add"] == 0


@NEEDS_TORCH
def test_attention_is_one_operation():
    def calls(torch):
        q = torch.empty(2, 3, 16, 8, device="meta")
        torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)

    op = recorded(calls)[-1]
    assert op.base == "scaled_dot_product_attention"
    assert op.flops == 2 * 2 * 6 * 16 * 16 * 8
    assert op.options == (True,)


@NEEDS_TORCH
def test_meta_and_real_tensors_are_recorded_alike():
    def calls(device):
        def on(torch):
            x = torch.zeros(4, 8, device=device)
            torch.softmax(x, -1), torch.nn.functional.layer_norm(x, (8,)), x.t() @ x, x.amax(1)

        return on

    meta, real = (recorded(calls(device)) for device in ("meta", "cpu"))
    assert [(op.name, op.inputs, op.flops, op.bytes) for op in meta] == [
        (op.name, op.inputs, op.flops, op.bytes) for op in real
    ]


@NEEDS_TORCH
def test_a_line_is_that_of_the_file_that_called():
    def calls(torch):
        torch.nn.Linear(4, 4)(torch.zeros(2, 4))

    first = calls.__code__.co_firstlineno
    assert {op.line for op in recorded(calls, __file__)} == {first + 1}
    assert {op.line for op in recorded(calls, "another.py")} == {0}
    assert {op.line for op in recorded(calls)} == {first + 1}


@NEEDS_TORCH
def test_two_records_at_once_both_have_all():
    import torch

    with record_ops() as outer, record_ops() as inner:
        torch.ones(3).add(1)
    assert bases(outer) == bases(inner) == ["ones", "add"]
