"""Batch norms are folded where the dataflow allows it, and left, with a reason, where not."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from fewbit.base.typed_torch import forward_hooks
from fewbit.errors import UnsupportedError, UsageError
from fewbit.quant import prepare_qat
from fewbit.quant.fusion import FusionReport, fuse_batch_norm, fuse_model
from tests.quant.fusion.networks import (
    BatchNormForTwo,
    InvertedResidual,
    Nested,
    Residual,
    SharedConv,
    TopLevel,
    TwoUsers,
    relative_error,
    settled,
)

IMAGE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
FEATURES = torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(2))
ROWS = torch.randn(5, 6, generator=torch.Generator().manual_seed(3))
SIGNAL = torch.randn(3, 2, 30, generator=torch.Generator().manual_seed(4))

FOLDABLE = {
    "sequential": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        IMAGE,
        [("0", "1")],
    ),
    "top level": (TopLevel, IMAGE, [("conv2", "bn2"), ("conv1", "bn1")]),
    "residual": (
        Residual,
        FEATURES,
        [("conv1", "bn1"), ("conv2", "bn2"), ("shortcut.0", "shortcut.1")],
    ),
    "inverted residual": (
        InvertedResidual,
        FEATURES,
        [("expand.0", "expand.1"), ("depthwise.0", "depthwise.1"), ("narrow.0", "narrow.1")],
    ),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(2, 5, 3, stride=2), nn.BatchNorm1d(5)),
        SIGNAL,
        [("0", "1")],
    ),
    "linear": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2)),
        ROWS,
        [("0", "1")],
    ),
    "no affine": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False)),
        IMAGE,
        [("0", "1")],
    ),
    "through dropout and identity": (
        lambda: nn.Sequential(
            nn.Linear(6, 5), nn.Dropout(), nn.Sequential(nn.Identity(), nn.BatchNorm1d(5))
        ),
        ROWS,
        [("0", "2.1")],
    ),
    "two layers, one batch norm": (
        BatchNormForTwo,
        IMAGE,
        [("left", "bn"), ("right", "bn")],
    ),
}


@pytest.mark.parametrize("with_inputs", [True, False], ids=["run", "symbolic"])
@pytest.mark.parametrize("name", FOLDABLE)
def test_output_is_the_same_without_batch_norms(name: str, with_inputs: bool) -> None:
    make, x, pairs = FOLDABLE[name]
    model = settled(make())
    expected = model(x)
    report = FusionReport()
    fused = fuse_model(model, x if with_inputs else None, report=report)
    assert report.pairs == pairs
    assert report.left == []
    assert not any(isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d) for m in fused.modules())
    assert relative_error(fused(x), expected) < 1e-5
    assert torch.equal(model(x), expected), "the original has changed"


def test_nested_modules_under_custom_forwards() -> None:
    model = settled(Nested())
    report = FusionReport()
    fused: Any = fuse_batch_norm(model, IMAGE, report=report)
    assert len(report.pairs) == 9
    assert report.left == []
    assert isinstance(fused.get_submodule("first.body.bn1"), nn.Identity)
    assert relative_error(fused(IMAGE), model(IMAGE)) < 1e-5


def test_in_place_changes_the_model_itself() -> None:
    model = settled(TopLevel())
    expected = model(IMAGE)
    assert fuse_batch_norm(model, IMAGE, inplace=True) is model
    assert model.conv1.bias is not None
    assert relative_error(model(IMAGE), expected) < 1e-5


def test_a_model_in_training_is_folded_as_its_eval_mode_computes() -> None:
    model = settled(TopLevel())
    expected = model(IMAGE)
    model.train()
    statistics = copy.deepcopy(dict(model.named_buffers()))
    fused: Any = fuse_batch_norm(model, IMAGE)
    assert model.training
    assert fused.bn1.training
    assert all(torch.equal(b, statistics[name]) for name, b in model.named_buffers())
    assert relative_error(fused.eval()(IMAGE), expected) < 1e-5


def test_every_name_of_a_batch_norm_is_folded() -> None:
    class Aliased(TopLevel):
        def __init__(self) -> None:
            super().__init__()
            self.alias = self.bn1
            self.unregistered = [self.bn2]

        def forward(self, x: Tensor) -> Tensor:
            return self.unregistered[0](self.conv2(self.alias(self.conv1(x))))

    model = settled(Aliased())
    fused: Any = fuse_batch_norm(model, IMAGE)
    assert isinstance(fused.alias, nn.Identity)
    assert relative_error(fused(IMAGE), model(IMAGE)) < 1e-5


def test_a_conv_called_twice_before_the_same_batch_norm() -> None:
    class Twice(SharedConv):
        def forward(self, x: Tensor) -> Tensor:
            return self.bn1(self.conv(x)) + self.bn1(self.conv(x.flip(-1)))

    model = settled(Twice())
    report = FusionReport()
    fused: Any = fuse_batch_norm(model, IMAGE, report=report)
    assert report.pairs == [("conv", "bn1")]
    assert report.reason("bn2") == "it is not called"
    assert relative_error(fused(IMAGE), model(IMAGE)) < 1e-5


def test_keyword_arguments_and_several_inputs() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = TopLevel()

        def forward(self, x: Tensor, *, scale: Tensor) -> tuple[Tensor, Tensor]:
            return self.one(x) * scale, scale

    model = settled(Two())
    inputs = {"x": IMAGE, "scale": torch.tensor(2.0)}
    report = FusionReport()
    fused: Any = fuse_batch_norm(model, inputs, report=report)
    assert len(report.pairs) == 2
    assert relative_error(fused(**inputs)[0], model(**inputs)[0]) < 1e-5


def store_both(model: Any, y: Tensor, normed: Tensor) -> Tensor:
    model.last = y
    return normed


def doubled(x: Tensor) -> Tensor:
    return x * 2


with warnings.catch_warnings(action="ignore"):
    scripted: Callable[[Tensor], Tensor] = cast(Any, torch.jit).script(doubled)


Use = Callable[[Any, Tensor, Tensor], Any]
"""What a model does with the output of its convolution, and of the batch norm behind it."""

USES: dict[str, tuple[Use, str]] = {
    "added": (lambda m, y, n: n + y, "also used by aten::add"),
    "returned": (lambda m, y, n: {"deep": [n, (y,)]}, "returned or stored"),
    "stored": (store_both, "returned or stored"),
    "viewed": (lambda m, y, n: n + y[:, :1], "also used by aten::slice"),
    "scripted": (lambda m, y, n: n + scripted(y), "also used by aten::mul"),
    "detached": (lambda m, y, n: n + y.data, "also used by aten::detach"),
    "another layer": (lambda m, y, n: n + m.conv(y[:, :3]), "also used by"),
    "weight used": (lambda m, y, n: n + m.conv.weight.sum(), "outside of its own calls"),
    "functional": (
        lambda m, y, n: n + functional.conv2d(n[:, :3], m.conv.weight, padding=1),
        "outside of its own calls",
    ),
    "values": (lambda m, y, n: n if n.sum() > 0 else -n, "looks at values"),
    "mask": (lambda m, y, n: n[n > 0].sum(), "looks at values"),
    "again": (lambda m, y, n: m.bn(n), "not the output of a Linear"),
}


@pytest.mark.parametrize("name", USES)
def test_a_batch_norm_is_left_where_folding_would_show(name: str) -> None:
    use, reason = USES[name]
    model = settled(TwoUsers(use))
    report = FusionReport()
    fused: Any = fuse_batch_norm(model, IMAGE, report=report)
    assert report.pairs == []
    assert reason in (report.reason("bn") or "")
    assert isinstance(fused.bn, nn.BatchNorm2d)
    before, after = (m(IMAGE) for m in (model, fused))
    if isinstance(before, Tensor):
        assert torch.equal(before, after)


def test_one_path_is_the_users_promise() -> None:
    model = settled(TwoUsers(lambda m, y, n: n if n.sum() > 0 else -n))
    report = FusionReport()
    fused: Any = fuse_batch_norm(model, IMAGE, one_path=True, report=report)
    assert report.pairs == [("conv", "bn")]
    assert relative_error(fused(IMAGE), model(IMAGE)) < 1e-5


def tied_convs() -> nn.Module:
    model = nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.Conv2d(3, 3, 3))
    model[2].weight = model[0].weight
    return model


class StandardizedConv(nn.Conv2d):
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        weight = weight / weight.std((1, 2, 3), keepdim=True)
        return super()._conv_forward(input, weight, bias)


class ConvWithReLU(nn.Conv2d):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).relu()


class BatchNormWithReLU(nn.BatchNorm2d):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).relu()


LEFT = {
    "shared conv": (SharedConv, IMAGE, "bn1", "also used by 'bn2'"),
    "batch statistics": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)),
        IMAGE,
        "1",
        "statistics of each batch",
    ),
    "batch norm first": (
        lambda: nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3)),
        IMAGE,
        "0",
        "not the output of a Linear",
    ),
    "relu between": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4)),
        IMAGE,
        "2",
        "not the output of a Linear",
    ),
    "tied weights": (tied_convs, IMAGE, "1", "shares a parameter"),
    "parametrized": (
        lambda: nn.Sequential(parametrizations.weight_norm(nn.Conv2d(3, 4, 3)), nn.BatchNorm2d(4)),
        IMAGE,
        "1",
        "computed",
    ),
    "standardized": (
        lambda: nn.Sequential(StandardizedConv(3, 4, 3), nn.BatchNorm2d(4)),
        IMAGE,
        "1",
        "does not follow the scale of its weight",
    ),
    "activation inside": (
        lambda: nn.Sequential(ConvWithReLU(3, 4, 3), nn.BatchNorm2d(4)),
        IMAGE,
        "1",
        "a change of its bias",
    ),
    "batch norm with activation": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), BatchNormWithReLU(4)),
        IMAGE,
        "1",
        "not that of a batch norm",
    ),
    "linear over tokens": (
        lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)),
        torch.randn(2, 4, 6),
        "1",
        "not the axis",
    ),
    "conv1d without a batch": (
        lambda: nn.Sequential(nn.Conv1d(2, 5, 3, padding=1), nn.BatchNorm1d(5)),
        torch.randn(2, 5),
        "1",
        "not the axis",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_batch_norm_that_cannot_be_folded_is_left(name: str) -> None:
    make, x, path, reason = LEFT[name]
    model = settled(make())
    report = FusionReport()
    fused: Any = fuse_batch_norm(model, x, report=report)
    assert report.pairs == []
    assert reason in (report.reason(path) or "")
    assert torch.equal(fused(x), model(x))


def test_hooks_that_change_the_output_are_noticed_and_others_kept() -> None:
    model = settled(TopLevel())
    seen: list[Tensor] = []

    def add_one(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output + 1

    def see(module: nn.Module, args: Any, output: Tensor) -> None:
        seen.append(output)

    model.conv1.register_forward_hook(add_one)
    model.bn2.register_forward_hook(see)
    report = FusionReport()
    fused: Any = fuse_batch_norm(model, IMAGE, report=report)
    assert report.pairs == [("conv2", "bn2")]
    assert report.reason("bn1") == "forward hooks change the output of 'conv1'"
    seen.clear()
    assert relative_error(fused(IMAGE), model(IMAGE)) < 1e-5
    assert relative_error(seen[0], seen[1]) < 1e-5


RECIPES = ["w8a8", "w3a4", "w2a8", "w1a8", "w1.58a8", "w4a8g3", "w4a8-tensor-mean", "w4a8-asym"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_result_is_the_same_before_and_after_quantization_is_prepared(recipe: str) -> None:
    model = settled(nn.Sequential(TopLevel(), InvertedResidual(6)))
    fused_first = prepare_qat(fuse_batch_norm(model, IMAGE), recipe)
    report = FusionReport()
    fused_last = fuse_batch_norm(prepare_qat(model, recipe), IMAGE, report=report)
    assert report.left == []
    assert fused_first.state_dict().keys() == fused_last.state_dict().keys()
    for name, value in fused_first.state_dict().items():
        assert torch.equal(value, fused_last.state_dict()[name]), name
    assert torch.equal(fused_first.eval()(IMAGE), fused_last.eval()(IMAGE))


def test_prepared_layers_are_folded_without_inputs_too() -> None:
    model = settled(TopLevel())
    report = FusionReport()
    fused = fuse_model(prepare_qat(model, "w4a8"), report=report)
    assert len(report.pairs) == 2
    assert torch.equal(fused(IMAGE), prepare_qat(fuse_model(model), "w4a8")(IMAGE))


def test_gradients_reach_the_folded_parameters() -> None:
    fused: Any = fuse_batch_norm(settled(TopLevel()), IMAGE)
    fused(IMAGE).sum().backward()
    assert fused.conv1.bias.grad.abs().sum() > 0
    assert all(p.is_leaf and p.requires_grad for p in fused.parameters())


def test_half_precision_stays_half_precision() -> None:
    model = settled(TopLevel()).to(torch.bfloat16)
    fused: Any = fuse_batch_norm(model, IMAGE.bfloat16())
    assert {p.dtype for p in fused.parameters()} == {torch.bfloat16}
    assert relative_error(fused(IMAGE.bfloat16()), model(IMAGE.bfloat16())) < 0.03


def test_symbolic_tracing_sees_other_users() -> None:
    model = settled(TwoUsers(lambda m, y, n: n + y))
    report = FusionReport()
    fuse_model(model, report=report)
    assert "also used by" in (report.reason("bn") or "")


def test_a_model_that_must_be_run_says_so() -> None:
    model = settled(TwoUsers(lambda m, y, n: n if n.sum() > 0 else -n))
    with pytest.raises(UnsupportedError, match="cannot be seen without running it") as caught:
        fuse_model(model)
    assert "example_inputs" in (caught.value.hint or "")


def test_tensors_stored_in_attributes_need_a_run() -> None:
    model = settled(TwoUsers(store_both))
    with pytest.raises(UnsupportedError, match="stores tensors in 'last'"):
        fuse_model(model, inplace=True)
    assert not hasattr(model, "last")


def test_a_model_without_layers_stays_as_it_is() -> None:
    report = FusionReport()
    assert torch.equal(fuse_batch_norm(nn.ReLU(), ROWS, report=report)(ROWS), ROWS.relu())
    assert str(report) == "nothing to do"


def test_layers_with_static_activations_take_a_fold() -> None:
    model = settled(TopLevel())
    scales = {"conv1": 0.02, "conv2": 0.02}
    report = FusionReport()
    fuse_batch_norm(prepare_qat(model, "w4a8-static", calibration=scales), IMAGE, report=report)
    assert len(report.pairs) == 2


def test_inputs_that_do_not_fit_are_a_usage_error() -> None:
    model = settled(TopLevel())
    with pytest.raises(UsageError, match="does not run on these inputs"):
        fuse_batch_norm(model, torch.randn(2, 5, 8, 8))
    assert not forward_hooks(model.conv1), "hooks were left behind"


def test_what_is_not_a_module_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="a torch module is needed"):
        fuse_model(42)  # pyright: ignore[reportArgumentType]


def test_the_report_reads_well() -> None:
    report = FusionReport()
    fuse_batch_norm(settled(SharedConv()), IMAGE, report=report)
    fuse_batch_norm(settled(TopLevel()), IMAGE, report=report)
    assert "conv1" in str(report)
    assert "bn1 left: the output of 'conv' is also used by 'bn2'" in str(report)
