"""SmoothQuant: large activations made smaller, and the weights that meet them larger.

Where the output of a normalization feeds Linear layers and nothing else, each of its channels j is
divided by s_j = amax_activation_j^alpha / amax_weight_j^(1 - alpha), and column j of those weights
multiplied by it. The division goes into the normalization's own weight and bias, so the model
computes the same in float and costs the same, but its activations round with less error. The
pattern is found in the model's dataflow (`dataflow.trace`): LayerNorm, RMSNorm, and a user's own
normalization whose output is proportional to its weight. Residuals take the normalization's input,
not its output, and do not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from fewbit.base.progress import progress
from fewbit.base.typed_torch import own_parameters
from fewbit.errors import Place, UsageError
from fewbit.quant.fusion.dataflow import Dataflow, trace
from fewbit.quant.fusion.layers import Layer, is_norm
from fewbit.quant.fusion.matching import Match, UnfitError, find_matches
from fewbit.quant.fusion.probes import why_not_linear, why_not_scaled_by_weight
from fewbit.quant.fusion.report import FusionReport
from fewbit.quant.fusion.running import Batches, Inputs, batches_of, looking_at, run, working_copy

SMALLEST = 1e-5
"""Bounds a channel's largest magnitudes from below."""


def smooth(
    model: nn.Module,
    calibration_inputs: Batches,
    alpha: float = 0.5,
    inplace: bool = False,
    *,
    one_path: bool = False,
    report: FusionReport | None = None,
) -> nn.Module:
    """The model with activations smoothed before its Linear layers; its float output is the same.

    `alpha` says how much of the difficulty moves from activations to weights: 0 none, 1 all.
    Smooth before static activation ranges are calibrated. `one_path` as in `fuse_batch_norm`.
    """
    if not 0 <= alpha <= 1:
        raise UsageError(f"alpha is {alpha}", hint="alpha is between 0 and 1; 0.5 is usual")
    model = working_copy(model, inplace)
    batches = batches_of(calibration_inputs)
    report = FusionReport() if report is None else report
    flow = trace(model, batches[0])
    groups = find_matches(model, flow, is_norm, _linears, one_path, report)
    for group, amax in zip(groups, _amax_of_outputs(model, groups, batches), strict=True):
        _apply(group, amax, alpha)
        report.fused.append(group.fused())
    return model


def _linears(path: str, norm: Layer, flow: Dataflow) -> dict[str, Layer]:
    """The Linear layers that this normalization feeds, all of its users."""
    if norm.weight is None:
        raise UnfitError("it has no weight to take the scale")
    if norm.weight.ndim != 1:
        raise UnfitError("it normalizes more than the last axis")
    if reason := flow.why_not_change(path, norm):
        raise UnfitError(reason)
    calls = flow.calls_of(norm)
    if not calls:
        raise UnfitError("it is not called")
    linears: dict[str, Layer] = {}
    for call in calls:
        if call.kept:
            raise UnfitError("its output is also returned or stored by the model")
        for user in call.users:
            if isinstance(user, str):
                raise UnfitError(f"its output is also used by {user}")
            if not isinstance(user.layer, nn.Linear) or user.source is not call:
                raise UnfitError(f"its output is also used by '{user.path}', which is not a Linear")
            linears[user.path] = user.layer
    if not linears:
        raise UnfitError("its output is not used")
    for name, linear in linears.items():
        _check_linear(name, linear, norm, flow)
    if reason := why_not_scaled_by_weight(norm):
        raise UnfitError(f"it is a {type(norm).__name__}: {reason}")
    return linears


def _check_linear(path: str, linear: Layer, norm: Layer, flow: Dataflow) -> None:
    if any(c.source is None or c.source.layer is not norm for c in flow.calls_of(linear)):
        raise UnfitError(f"'{path}' has other inputs, too")
    if linear.in_features != norm.weight.numel():
        raise UnfitError(f"'{path}' has another number of inputs")
    if reason := flow.why_not_change(path, linear):
        raise UnfitError(reason)
    if reason := why_not_linear(linear):
        raise UnfitError(f"'{path}' is a {type(linear).__name__}: {reason}")


def _amax_of_outputs(model: nn.Module, groups: list[Match], batches: list[Inputs]) -> list[Tensor]:
    """The largest magnitude in each channel of each normalization's output, over all batches."""
    amax = [torch.zeros_like(group.module.weight, requires_grad=False) for group in groups]

    def watch(index: int, output: Tensor) -> None:
        largest = output.abs().reshape(-1, output.shape[-1]).amax(0)
        amax[index] = torch.maximum(amax[index], largest)

    def hook_of(index: int) -> Callable[[nn.Module, Any, Tensor], None]:
        return lambda module, args, output: watch(index, output)

    handles = [g.module.register_forward_hook(hook_of(i)) for i, g in enumerate(groups)]
    try:
        with looking_at(model), progress("Smoothing", len(batches)) as step:
            for batch in batches:
                run(model, batch)
                step()
    finally:
        for handle in handles:
            handle.remove()
    for group, largest in zip(groups, amax, strict=True):
        if not largest.isfinite().all():
            raise UsageError("its output is not finite", place=Place(layer=group.path))
    return amax


def _apply(group: Match, amax: Tensor, alpha: float) -> None:
    weights = [linear.weight.detach().double() for linear in group.layers.values()]
    columns = torch.stack([weight.abs().amax(0) for weight in weights]).amax(0)
    scale = amax.double().clamp(min=SMALLEST) ** alpha
    scale = scale / columns.clamp(min=SMALLEST) ** (1 - alpha)
    with torch.no_grad():
        for linear, weight in zip(group.layers.values(), weights, strict=True):
            linear.weight.copy_(weight * scale)
        for parameter in (group.module.weight, own_parameters(group.module).get("bias")):
            if parameter is not None:
                parameter.copy_(parameter.double() / scale)
