"""Elements of a model's outputs at positions are those of the whole outputs in float64."""

import math

import numpy as np
import pytest

pytestmark = pytest.mark.extra("torch")
torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from ascendtile.reports.judging.sampling.lazy_inputs import LARGE, lazy_inputs  # noqa: E402
from ascendtile.reports.judging.sampling.reference.at_positions import ReferenceAt, together  # noqa: E402
from ascendtile.reports.judging.sampling.refusals import NotSampledError  # noqa: E402


def rand(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape)))


class Separable(nn.Module):
    def __init__(self):
        super().__init__()
        self.depthwise, self.pointwise = nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.Conv2d(4, 6, 1)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


def shifted_sum(x):
    zeros = torch.zeros_like(x.select(1, 0).unsqueeze(1))
    return torch.cat((zeros, torch.cumsum(x.narrow(1, 0, x.size(1) - 1), dim=1)), dim=1)


def masked_in_parts(x):
    mask = torch.zeros(6, 7)
    mask[:, 2:5] = 1
    mask[3].fill_(2)
    return x * mask


def new_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


PLAIN = {
    "mm": (torch.matmul, (9, 13), (13, 7)),
    "transposed": (lambda a, b: a.T @ b.T, (13, 9), (7, 13)),
    "batched": (torch.bmm, (3, 9, 13), (3, 13, 7)),
    "vector": (torch.matmul, (9, 13), (13,)),
    "three axes": (torch.matmul, (3, 9, 13), (13, 7)),
    "einsum": (lambda a, b: torch.einsum("bijl,lk->bijk", a, b), (2, 3, 4, 5), (5, 6)),
    "diagonal": (lambda a, b: a.unsqueeze(1) * b, (5,), (5, 6)),
    "triu": (lambda a, b: torch.triu(a @ b), (6, 6), (6, 6)),
    "tril": (lambda a, b: torch.tril(a @ b, -1), (6, 6), (6, 6)),
    "attention": (functional.scaled_dot_product_attention, (2, 3, 5, 8), (2, 3, 5, 8), (2, 3, 5, 8)),
    "causal": (
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        (2, 3, 5, 8),
        (2, 3, 5, 8),
        (2, 3, 5, 8),
    ),
    "swish": (lambda x: x * torch.sigmoid(x), (7, 9)),
    "gelu": (functional.gelu, (7, 9)),
    "new gelu": (new_gelu, (7, 9)),
    "elu": (functional.elu, (7, 9)),
    "hardtanh": (lambda x: functional.hardtanh(4 * x - 2), (7, 9)),
    "softmax": (lambda x: torch.softmax(x, 0), (7, 9)),
    "log softmax": (lambda x: torch.log_softmax(x, -1), (7, 9)),
    "rms by hand": (lambda x: x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5), (3, 5, 4)),
    "frobenius": (lambda x: x / torch.norm(x, p="fro"), (3, 5)),
    "l2": (lambda x: x / torch.norm(x, p=2, dim=1, keepdim=True), (3, 5)),
    "sum": (lambda x: torch.sum(x, dim=(0, 2), keepdim=True), (4, 5, 6)),
    "mean": (lambda x: torch.mean(x, dim=1), (4, 5, 6)),
    "mean of all": (torch.mean, (4, 5, 6)),
    "largest": (lambda x: torch.max(x, dim=1), (4, 5, 6)),
    "smallest": (lambda x: torch.min(x, dim=-1)[0], (4, 5, 6)),
    "argmin": (lambda x: torch.argmin(x, dim=1), (4, 5, 6)),
    "deviation": (lambda x: torch.std(x, dim=1), (4, 5, 6)),
    "cumsum": (lambda x: torch.cumsum(x, 1), (4, 6)),
    "cumprod": (lambda x: torch.cumprod(x, 0), (4, 6)),
    "reversed": (lambda x: torch.cumsum(x.flip(1), dim=1).flip(1), (4, 6)),
    "exclusive": (shifted_sum, (4, 6)),
    "masked": (lambda x: torch.cumsum(x * (x > 0.5), dim=1), (4, 6)),
    "losses": (
        lambda a, b: (torch.mean((a - b) ** 2), torch.mean(torch.clamp(1 - a * b, min=0))),
        (4, 6),
        (4, 6),
    ),
    "slices": (lambda x: x[1:, ::2].contiguous().reshape(-1), (6, 7)),
    "in place": (lambda x: functional.relu(x * 2 - 1, inplace=True).add_(1), (6, 7)),
    "where": (lambda x: torch.where(x > 0.5, x, 0.0), (6, 7)),
    "integers": (lambda x: (x * 10).to(torch.int32), (6, 7)),
    "stack": (lambda x, y: torch.stack([x, y], 1), (6, 7), (6, 7)),
    "halves": (lambda x: x.chunk(2, -1)[1] * functional.silu(x.chunk(2, -1)[0]), (6, 8)),
    "mask by hand": (lambda x: x * torch.ones(6, 7).triu_(), (6, 7)),
    "mask in parts": (masked_in_parts, (6, 7)),
    "embedding": (lambda w: functional.embedding(torch.tensor([[3, 0], [1, 3]]), w), (4, 6)),
}
LAYERS = {
    "linear": (nn.Linear(5, 4), (3, 5)),
    "batch norm": (nn.BatchNorm2d(5), (3, 5, 4, 6)),
    "batch norm, kept": (nn.BatchNorm2d(5).eval(), (3, 5, 4, 6)),
    "instance norm": (nn.InstanceNorm2d(5), (3, 5, 4, 6)),
    "group norm": (nn.GroupNorm(2, 6), (3, 6, 4, 6)),
    "layer norm": (nn.LayerNorm((5, 4)), (3, 5, 4)),
    "rms norm": (nn.RMSNorm(4), (3, 5, 4)),
    "triplet": (nn.TripletMarginLoss(1.0), (4, 6), (4, 6), (4, 6)),
    "separable": (Separable(), (2, 4, 7, 6)),
}
CONVOLVED = (
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "padding": 2},
    {"groups": 2, "bias": False},
    {"groups": 4},
)
TRANSPOSED = (
    {},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"dilation": 2, "padding": 2, "stride": 3},
    {"groups": 2, "bias": False},
    {"groups": 4},
)
WINDOWED = {
    f"{kind.__name__} {options}": (kind(4, 8, 3, **options), (2, 4, *(11 - k for k in range(axes))))
    for kinds, every in (
        ((nn.Conv1d, nn.Conv2d, nn.Conv3d), CONVOLVED),
        ((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), TRANSPOSED),
    )
    for axes, kind in enumerate(kinds, 1)
    for options in every
}
POOLED = {
    f"{kind.__name__} {size} {more}": (
        kind(size, stride, padding, *more),
        (2, 3, *(13 - k for k in range(axes))),
    )
    for size, stride, padding, dilation in ((3, 2, 1, 2), (2, 1, 0, 1), (4, 1, 2, 1))
    for axes in (1, 2, 3)
    for kind, every in (
        ((nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[axes - 1], [(dilation,)]),
        ((nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)[axes - 1], [(False, True), (True, True), (True, False)]),
    )
    for more in every
}
CASES = {**PLAIN, **LAYERS, **WINDOWED, **POOLED}


def outputs(model, inputs):
    found = model(*inputs)
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.drawn(40)
@pytest.mark.parametrize("name", CASES)
def test_positions_have_what_the_whole_output_has(name):
    model, *shapes = CASES[name]
    inputs = [rand(*s) for s in shapes]
    reference = ReferenceAt(model, inputs)
    wide = model.double() if isinstance(model, nn.Module) else model
    for k, want in enumerate(outputs(wide, [x.double() for x in inputs])):
        positions = np.unique(np.random.default_rng(k).integers(0, want.numel(), 60))
        found = reference.values(k, positions)
        np.testing.assert_allclose(found, want.detach().reshape(-1).numpy()[positions], 1e-5, 1e-7)
        assert reference.work(k, positions) > 0


@pytest.mark.parametrize(
    "constant",
    [
        lambda: torch.zeros((1 << 20, 1 << 12)),
        lambda: torch.full((1 << 20, 1 << 12), 3.0, dtype=torch.float16),
        lambda: torch.ones((1 << 12, 1 << 20)).T,
    ],
    ids=["zeros", "full", "transposed"],
)
def test_a_large_constant_of_one_number_takes_the_memory_of_one(constant):
    reference = ReferenceAt(lambda x: constant() + x, [rand(1, 1)])
    assert reference.shapes == [(1 << 20, 1 << 12)]
    found = reference.values(0, np.array([0, (1 << 32) - 1]))
    assert len(set(found.tolist())) == 1
    alone = ReferenceAt(lambda x: constant(), [rand(1)]).values(0, np.array([5]))
    np.testing.assert_allclose(found, alone[0] + rand(1, 1).item(), 1e-3)


def test_a_model_that_counts_its_calls_keeps_its_count():
    norm = nn.BatchNorm2d(5)
    ReferenceAt(norm, [rand(3, 5, 4, 6)])
    assert norm.num_batches_tracked == 0


def test_the_work_of_a_product_is_its_rows_and_columns():
    reference = ReferenceAt(torch.matmul, [rand(64, 1000), rand(1000, 64)])
    one, row = (reference.work(0, np.arange(n)) for n in (1, 64))
    assert one < row < 64 * one


def test_few_positions_are_moved_to_one_channel_where_each_takes_a_whole_one():
    reference = ReferenceAt(nn.BatchNorm2d(64), [rand(64, 64, 8, 8)])
    positions = np.random.default_rng(0).integers(0, 64 * 64 * 64, 64)
    found = reference.affordable(0, positions, most=6 * 64 * 64)
    channels = set((found // 64 % 64).tolist())
    assert len(found) >= 8
    assert len(channels) == 1


def test_what_takes_all_of_a_large_input_is_refused_with_the_budget():
    reference = ReferenceAt(torch.mean, [rand(1000, 1000)])
    with pytest.raises(NotSampledError, match="takes more than 1000 elements of work"):
        reference.affordable(0, np.array([0]), most=1000)


def test_an_operation_without_a_rule_is_refused_by_name():
    reference = ReferenceAt(lambda x: torch.sort(x)[0], [rand(6)])
    with pytest.raises(NotSampledError, match=r"no rule for aten\.sort"):
        reference.values(0, np.array([0]))


def test_a_model_that_looks_at_elements_is_refused():
    with pytest.raises(NotSampledError, match="without elements"):
        ReferenceAt(lambda x: x if x.sum() > 0 else -x, [rand(6)])


def test_moved_positions_have_one_place_along_the_axis():
    assert set((together(np.arange(24), (2, 3, 4), 1, 1) // 4 % 3).tolist()) == {0}


# -- lazy inputs -----------------------------------------------------------------------------------------------------

MANY = (LARGE // 1024, 2048)


def test_large_inputs_repeat_one_period_and_small_ones_are_filled():
    with lazy_inputs(3) as made:
        large, small = torch.rand(*MANY), torch.rand(5)
    assert made.of(large) is not None
    assert made.of(small) is None
    assert 0 <= float(large[77, 5]) < 1
    assert large[0, 0] != large[1, 0]


def test_the_seed_decides_the_values():
    def some(seed):
        with lazy_inputs(seed):
            return float(torch.rand(*MANY)[3, 3]), float(torch.randn(4)[0])

    assert some(1) == some(1) != some(2)


def test_elementwise_changes_are_made_to_one_period():
    with lazy_inputs(3) as made:
        x = torch.rand(*MANY)
        changed = [
            (x * torch.rand(()) * 2 - 1).half(),
            torch.randint(0, 7, MANY).bool(),
            torch.randn(*MANY).clamp_(min=0),
        ]
    assert all(made.of(y) is not None for y in changed)
    assert [y.dtype for y in changed] == [torch.float16, torch.bool, torch.float32]
    assert -1 <= float(changed[0].min()) < 0 <= float(changed[2].min())


def test_two_large_inputs_differ():
    with lazy_inputs(3):
        a, b = torch.rand(*MANY), torch.rand(*MANY)
    assert float((a[0] - b[0]).abs().max()) > 0.1


def test_views_of_lazy_inputs_are_views():
    with lazy_inputs(3):
        x = torch.rand(*MANY)
        y = x.T[3:]
    assert float(y[0, 9]) == float(x[9, 3])


def test_a_reference_of_repeated_inputs_has_their_values():
    with lazy_inputs(3) as made:
        x = torch.rand(*MANY)
    positions = np.array([0, 5000, LARGE * 2 - 1])
    found = ReferenceAt(lambda v: torch.softmax(v, 1), [x], made).values(0, positions)
    want = torch.softmax(x.double(), 1).reshape(-1)[torch.from_numpy(positions)]
    np.testing.assert_allclose(found, want.numpy(), 1e-12)


def test_a_large_operation_that_is_not_elementwise_is_refused():
    with pytest.raises(NotSampledError, match="_softmax"), lazy_inputs(3):
        torch.rand(16384, 8192).softmax(-1)
