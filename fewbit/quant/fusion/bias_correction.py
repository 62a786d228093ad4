"""Bias correction: what quantization adds to the mean of a layer's output, taken from its bias.

Rounding few-bit weights shifts the mean of every output channel. The layers are corrected one by
one in the order of execution, each on the outputs that it has once those before it are corrected,
so that errors are not corrected twice. One pass over the data is needed for each layer; it ends
at that layer. Biases are float at every width, so a correction is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fewbit.base.progress import progress
from fewbit.base.typed_torch import named_modules
from fewbit.errors import Place, UsageError
from fewbit.quant.fusion.dataflow import shared_parameters
from fewbit.quant.fusion.layers import BATCH_NORMS, WEIGHTED, Layer, channel_axis, channels_of
from fewbit.quant.fusion.probes import why_not_additive
from fewbit.quant.fusion.report import Fused, FusionReport, Left
from fewbit.quant.fusion.running import Batches, Inputs, batches_of, looking_at, run, working_copy


def correct_bias(
    float_model: nn.Module,
    quant_model: nn.Module,
    inputs: Batches,
    inplace: bool = False,
    *,
    report: FusionReport | None = None,
) -> nn.Module:
    """The quantized model with biases such that each layer's mean output is the float model's.

    Layers are the Linear, Conv1d and Conv2d of the float model; the quantized model has its own
    layer of any class at the same path, with a `bias` that may be None. Both models must have
    their batch norms folded, or neither.
    """
    report = FusionReport() if report is None else report
    quant_model = working_copy(quant_model, inplace)
    batches = batches_of(inputs)
    pairs = _pairs(float_model, quant_model)
    expected = _means(float_model, pairs, batches)
    unfit = _unfit_layers(quant_model, pairs, expected)
    report.left += [Left(path, reason) for path, reason in unfit.items()]
    order = [path for path in expected if path not in unfit]
    with progress("Correcting biases", len(order)) as step:
        for path in order:
            mean = _mean_of_one(quant_model, pairs[path], batches, expected[path].calls)
            if mean.calls:
                _add(pairs[path], expected[path].value() - mean.value())
                report.fused.append(Fused(path, (path,)))
            else:
                report.left.append(Left(path, "the quantized model does not call it"))
            step()
    return quant_model


class _Pair(NamedTuple):
    plain: Layer
    quant: Layer


def _pairs(float_model: nn.Module, quant_model: nn.Module) -> dict[str, _Pair]:
    """Layers of the float model and what the quantized model has in their place, by path."""
    theirs = dict(named_modules(quant_model))
    pairs: dict[str, _Pair] = {}
    for path, module in named_modules(float_model):
        if isinstance(module, BATCH_NORMS) and isinstance(theirs.get(path), nn.Identity):
            raise UsageError(
                "the quantized model has this batch norm folded and the float model does not",
                place=Place(layer=path),
                hint="correct against the float model after fuse_batch_norm",
            )
        if not isinstance(module, WEIGHTED):
            continue
        if path not in theirs:
            raise UsageError("the quantized model has no such layer", place=Place(layer=path))
        pairs[path] = _Pair(module, theirs[path])
    return pairs


def _unfit_layers(
    quant_model: nn.Module, pairs: dict[str, _Pair], called: Collection[str]
) -> dict[str, str]:
    """Layers that cannot be corrected, and why."""
    shared = shared_parameters(quant_model)
    reasons: dict[str, str] = {}
    for path, (like, layer) in pairs.items():
        if path not in called:
            reasons[path] = "the float model does not call it"
        elif getattr(layer, "bias", None) is not None and path in shared:
            reasons[path] = "it shares a parameter with another module"
        elif reason := why_not_additive(layer, like):
            reasons[path] = f"it is a {type(layer).__name__}: {reason}"
    return reasons


class _Mean:
    """The mean over everything but the channels, of all outputs it is shown, in float64."""

    def __init__(self, like: Layer) -> None:
        self._axis = channel_axis(like)
        self._sum = torch.zeros(channels_of(like), dtype=torch.float64)
        self._count = 0
        self.calls: Counter[int] = Counter()
        """How many outputs each batch has shown."""

    def add(self, batch: int, output: Tensor) -> None:
        rows = output.detach().movedim(self._axis, -1).reshape(-1, output.shape[self._axis])
        self._sum += rows.double().sum(0).cpu()
        self._count += rows.shape[0]
        self.calls[batch] += 1

    def value(self) -> Tensor:
        return self._sum / self._count


def _means(model: nn.Module, pairs: dict[str, _Pair], batches: list[Inputs]) -> dict[str, _Mean]:
    """The mean output of every layer that the float model calls, in the order of first calls."""
    means: dict[str, _Mean] = {}
    index = 0

    def hook_of(path: str) -> Any:
        def note(module: nn.Module, args: Any, output: Tensor) -> None:
            means.setdefault(path, _Mean(module)).add(index, output)

        return note

    with looking_at(model), ExitStack() as hooks:
        for path, pair in pairs.items():
            hooks.callback(pair.plain.register_forward_hook(hook_of(path)).remove)
        for index, batch in enumerate(batches):  # noqa: B007 (hooks read it)
            run(model, batch)
    return means


class _Reached(BaseException):
    """Ends a run at the layer it was made for; an `except Exception` of the model's lets it by."""


def _mean_of_one(
    model: nn.Module, pair: _Pair, batches: list[Inputs], calls: Counter[int]
) -> _Mean:
    """The mean output of one layer, which the float model calls as often as `calls` says."""
    mean = _Mean(pair.plain)
    index = 0

    def note(module: nn.Module, args: Any, output: Tensor) -> None:
        mean.add(index, output)
        if mean.calls[index] >= calls[index]:
            raise _Reached

    with looking_at(model), ExitStack() as hooks:
        hooks.callback(pair.quant.register_forward_hook(note).remove)
        for index, batch in enumerate(batches):  # noqa: B007 (the hook reads it)
            with suppress(_Reached):
                run(model, batch)
    return mean


def _add(pair: _Pair, correction: Tensor) -> None:
    """Into the bias; a layer without one gets it."""
    layer, weight = pair.quant, pair.plain.weight
    if layer.bias is None:
        layer.bias = nn.Parameter(correction.to(weight), requires_grad=weight.requires_grad)
    else:
        with torch.no_grad():
            layer.bias.add_(correction.to(layer.bias))
