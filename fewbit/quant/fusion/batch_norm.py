"""Batch norms folded into the layers that feed them.

In eval mode a batch norm is a scale and a shift of each channel; after a Linear or a convolution
these go into weight and bias. Which layer feeds which batch norm is read from the model's
dataflow (`dataflow.trace`), never from the order of registration or the class of the parent. A
batch norm folds if every call of it takes, as it is, the output of a call of a layer, and no such
layer has an output that anything else uses. This covers a batch norm that serves two layers, and
a layer that is called twice before the same batch norm. The folded module turns into an
`nn.Identity` where it stands, so a `forward` that calls it, by whatever name, goes on working.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.base.typed_torch import attributes
from fewbit.quant.fusion.dataflow import Dataflow, LayerCall, trace
from fewbit.quant.fusion.layers import BATCH_NORMS, WEIGHTED, Layer, channels_of, output_rank
from fewbit.quant.fusion.matching import Match, UnfitError, find_matches
from fewbit.quant.fusion.probes import has_own_forward, why_not_affine
from fewbit.quant.fusion.report import FusionReport
from fewbit.quant.fusion.running import Inputs, working_copy
from fewbit.quant.fusion.symbolic import trace_symbolically


def fuse_batch_norm(
    model: nn.Module,
    example_inputs: Inputs,
    inplace: bool = False,
    *,
    one_path: bool = False,
    report: FusionReport | None = None,
) -> nn.Module:
    """The model with its BatchNorm1d/2d folded into the Linear, Conv1d and Conv2d before them.

    The result computes what `model.eval()` computes. Quantized layers (subclasses) are treated as
    the layers they stand for: their float weight takes the fold, so the result is the same before
    and after quantization is prepared. The dataflow comes from one run on `example_inputs` (see
    `dataflow`); a model that looks at values of tensors might take another path on other inputs
    and is left alone, unless `one_path` promises that it does not. `report` says what was done.
    """
    model = working_copy(model, inplace)
    return _fuse(model, trace(model, example_inputs), one_path, report)


def fuse_model(
    model: nn.Module,
    example_inputs: Inputs | None = None,
    inplace: bool = False,
    *,
    one_path: bool = False,
    report: FusionReport | None = None,
) -> nn.Module:
    """`fuse_batch_norm` that also works without example inputs, where symbolic tracing does."""
    if example_inputs is not None:
        return fuse_batch_norm(model, example_inputs, inplace, one_path=one_path, report=report)
    model = working_copy(model, inplace)
    return _fuse(model, trace_symbolically(model), one_path, report)


def _fuse(
    model: nn.Module, flow: Dataflow, one_path: bool, report: FusionReport | None
) -> nn.Module:
    report = FusionReport() if report is None else report
    matches = find_matches(model, flow, _is_batch_norm, _sources, one_path, report)
    for match in matches:
        _apply(match)
        report.fused.append(match.fused())
    return model


def _is_batch_norm(module: nn.Module) -> bool:
    return isinstance(module, BATCH_NORMS)


def _sources(path: str, norm: Layer, flow: Dataflow) -> dict[str, Layer]:
    """The layers that this batch norm folds into, all of them."""
    if has_own_forward(norm):
        raise UnfitError("its forward is not that of a batch norm")
    if norm.running_mean is None or norm.running_var is None:
        raise UnfitError("it uses the statistics of each batch")
    calls = flow.calls_of(norm)
    if not calls:
        raise UnfitError("it is not called")
    layers: dict[str, Layer] = {}
    for call in calls:
        source = _source(call)
        layers[source.path] = source.layer
    for name, layer in layers.items():
        _check_layer(name, layer, norm, flow)
    return layers


def _source(call: LayerCall) -> LayerCall:
    source = call.source
    if source is None or not isinstance(source.layer, WEIGHTED):
        raise UnfitError("its input is not the output of a Linear, Conv1d or Conv2d as it is")
    if source.rank is not None and source.rank != output_rank(source.layer):
        raise UnfitError(f"the channels of '{source.path}' are not the axis that it normalizes")
    if channels_of(source.layer) != call.layer.num_features:
        raise UnfitError(f"'{source.path}' has another number of channels")
    return source


def _check_layer(path: str, layer: Layer, norm: Layer, flow: Dataflow) -> None:
    for call in flow.calls_of(layer):
        if call.kept:
            raise UnfitError(f"the output of '{path}' is also returned or stored by the model")
        for user in call.users:
            if isinstance(user, str):
                raise UnfitError(f"the output of '{path}' is also used by {user}")
            if user.layer is not norm or user.source is not call:
                raise UnfitError(f"the output of '{path}' is also used by '{user.path}'")
    if reason := flow.why_not_change(path, layer):
        raise UnfitError(reason)
    if reason := why_not_affine(layer):
        raise UnfitError(f"'{path}' is a {type(layer).__name__}: {reason}")
    if not all(bool(part.isfinite().all()) for part in _fold(layer, norm)):
        raise UnfitError(f"the folded weight of '{path}' would not be finite")


def _apply(match: Match) -> None:
    for layer in match.layers.values():
        weight, bias = _fold(layer, match.module)
        with torch.no_grad():
            layer.weight.copy_(weight)
            if layer.bias is None:
                layer.bias = nn.Parameter(bias, requires_grad=layer.weight.requires_grad)
            else:
                layer.bias.copy_(bias)
    _become_identity(match.module)


def _fold(layer: Layer, norm: Layer) -> tuple[Tensor, Tensor]:
    """Weight and bias with the batch norm in them, computed in float64."""
    weight, mean, variance = (
        part.detach().double() for part in (layer.weight, norm.running_mean, norm.running_var)
    )
    scale = (variance + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight.detach().double()
    shift = -mean * scale
    if norm.bias is not None:
        shift = shift + norm.bias.detach().double()
    if layer.bias is not None:
        shift = shift + layer.bias.detach().double() * scale
    scaled = weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
    return scaled.to(layer.weight.dtype), shift.to(layer.weight.dtype)


def _become_identity(norm: Layer) -> None:
    """Turn the object itself, which may be known by several names, into an `nn.Identity`."""
    training = norm.training
    hooks = {name: value for name, value in attributes(norm).items() if "_forward_" in name}
    attributes(norm).clear()
    norm.__class__ = nn.Identity
    nn.Identity.__init__(norm)
    attributes(norm).update(hooks)
    norm.train(training)
