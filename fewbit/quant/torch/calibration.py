# pyright: basic
"""Static activation scales from sample data, one for each layer.

Every batch runs through the model once; hooks see what each layer receives. What is kept of it
does not grow with the data: a histogram of magnitudes, whose range doubles when a larger value
arrives by adding neighbouring bins, so nothing is rounded twice and the result depends only on the
data and its order. Widths of 1 to 2 bits take mean|x|, as the dynamic formulas do, unless the
squared error is what is minimized.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from fewbit.errors import Error, Place, UsageError
from fewbit.numerics import EPS, Width
from fewbit.numerics.arrays import Float32Array
from fewbit.progress import progress
from fewbit.quant.calibration import Calibration
from fewbit.quant.recipe import Recipe, RecipeLike
from fewbit.quant.scheme import LayerScheme
from fewbit.quant.torch.prepare import quantizable_layers

Method = Literal["minmax", "percentile", "mse"]

BINS = 8192
_CANDIDATES = 256


class Observer:
    """What a layer's activations looked like so far."""

    def __init__(self) -> None:
        self.low = 0.0
        self.high = 0.0
        self.total = 0.0
        self.count = 0
        self.top = 0.0
        self.bins = np.zeros(BINS, np.int64)

    def see(self, x: Float32Array) -> None:
        if x.size == 0:
            return
        low, high = float(x.min()), float(x.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise Error(
                "an activation holds NaN or infinity", hint="look at the data and the weights"
            )
        self.low, self.high = min(self.low, low), max(self.high, high)
        magnitudes = np.abs(x)
        self.total += float(magnitudes.sum(dtype=np.float64))
        self.count += x.size
        self._widen(max(high, -low))
        if self.top:
            self.bins += np.histogram(magnitudes, BINS, (0.0, self.top))[0]
        else:
            self.bins[0] += x.size

    def _widen(self, peak: float) -> None:
        if peak > 0 and self.top == 0:
            self.top = 2.0 ** math.ceil(math.log2(peak))
        while self.top < peak:
            halves = self.bins.reshape(-1, 2).sum(axis=1)
            self.bins = np.concatenate([halves, np.zeros_like(halves)])
            self.top *= 2

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def peak(self) -> float:
        return max(self.high, -self.low)

    def percentile(self, percent: float) -> float:
        """The least bin edge below which that share of all magnitudes lies; at most the peak."""
        wanted = self.count * percent / 100
        bin = int(np.searchsorted(np.cumsum(self.bins), wanted))
        return min(self.peak, (min(bin, BINS - 1) + 1) * self.top / BINS)

    def least_error_scale(self, width: Width) -> float:
        """The scale under which the histogram's values lose the least, in squares."""
        centers = (np.arange(BINS) + 0.5) * (self.top / BINS)
        shares = np.arange(1, _CANDIDATES + 1) / _CANDIDATES
        scales = np.maximum(self.peak / width.qmax * shares, float(EPS) / width.qmax)
        errors = [float(self.bins @ _squared_error(centers, scale, width)) for scale in scales]
        return float(scales[int(np.argmin(errors))])


def calibrate(
    model: nn.Module,
    data: Iterable[Any],
    recipe: RecipeLike,
    method: Method = "minmax",
    percentile: float = 99.99,
) -> Calibration:
    """The static scale of every layer whose activations the recipe quantizes.

    Each item of `data` is what the model is called with: a tensor, a tuple of arguments, or a
    mapping of named ones. Asymmetric layers get a zero point too; their method is "minmax".
    """
    layers = quantizable_layers(model)
    schemes = {
        name: scheme
        for name, scheme in Recipe.of(recipe).resolve(list(layers)).items()
        if scheme.act is not None and not isinstance(layers[name], nn.Embedding)
    }
    _check(schemes, method, percentile)
    observers = {name: Observer() for name in schemes}
    with _watching({name: layers[name] for name in schemes}, observers), _evaluating(model):
        _run(model, data)
    scales: dict[str, float] = {}
    zero_points: dict[str, int] = {}
    for name, scheme in schemes.items():
        observer = observers[name]
        if observer.count == 0:
            _refuse_unseen(name, scheme)
        elif scheme.static and not scheme.symmetric:
            scales[name], zero_points[name] = _asymmetric(observer, _width(scheme))
        else:
            scales[name] = _symmetric(observer, _width(scheme), method, percentile)
    return Calibration(scales, zero_points)


def _symmetric(observer: Observer, width: Width, method: Method, percentile: float) -> float:
    if method == "mse" and observer.peak > 0:
        return _float32(observer.least_error_scale(width))
    if width.bits <= 2:
        return _float32(max(observer.mean, float(EPS)))
    top = observer.percentile(percentile) if method == "percentile" else observer.peak
    multiplier = np.float32(width.qmax) / np.maximum(np.float32(top), EPS)
    return float(np.float32(1) / multiplier)


def _asymmetric(observer: Observer, width: Width) -> tuple[float, int]:
    low, high = np.float32(observer.low), np.float32(observer.high)
    scale = np.maximum(high - low, EPS) / np.float32((1 << width.bits) - 1)
    zero_point = np.clip(np.rint(np.float32(width.qmin) - low / scale), width.qmin, width.qmax)
    return float(scale), int(zero_point)


def _squared_error(magnitudes: Any, scale: float, width: Width) -> Any:
    if width.is_binary:
        return (magnitudes - scale) ** 2
    steps = np.minimum(np.rint(magnitudes / scale), width.qmax)
    return (magnitudes - steps * scale) ** 2


def _run(model: nn.Module, data: Iterable[Any]) -> None:
    total = len(data) if isinstance(data, Sized) else None
    batches = 0
    with progress("Calibrating", total=total) as step, torch.no_grad():
        for item in data:
            if isinstance(item, Tensor):
                model(item)
            elif isinstance(item, Mapping):
                model(**item)
            elif isinstance(item, tuple | list):
                model(*item)
            else:
                raise UsageError(
                    f"a {type(item).__name__} is not what a model is called with",
                    hint="give tensors, tuples of arguments, or mappings of named arguments",
                )
            batches += 1
            step()
    if not batches:
        raise UsageError(
            "there is no data to calibrate with",
            hint="give at least one batch; a generator that was used up is empty",
        )


@contextmanager
def _watching(layers: Mapping[str, nn.Module], observers: Mapping[str, Observer]) -> Iterator[None]:
    def hook(name: str) -> Any:
        def see(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            x: Tensor = args[0] if args else next(iter(kwargs.values()))
            try:
                observers[name].see(x.detach().float().cpu().numpy())
            except Error as error:
                raise error.at(layer=name) from None

        return see

    handles = [
        layer.register_forward_pre_hook(hook(name), with_kwargs=True)
        for name, layer in layers.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, and afterwards each module in its own mode again."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _check(schemes: Mapping[str, LayerScheme], method: str, percentile: float) -> None:
    if method not in ("minmax", "percentile", "mse"):
        raise UsageError(
            f"there is no calibration method '{method}'",
            hint="methods are 'minmax', 'percentile' and 'mse'",
        )
    if not 0 < percentile <= 100:
        raise UsageError(f"a percentile of {percentile} is not between 0 and 100")
    for name, scheme in schemes.items():
        if scheme.static and not scheme.symmetric and method != "minmax":
            raise UsageError(
                f"asymmetric activations are calibrated by 'minmax', not '{method}'",
                place=Place(layer=name),
            )


def _refuse_unseen(name: str, scheme: LayerScheme) -> None:
    if scheme.static:
        raise Error(
            "the layer did not run on the calibration data, and its scheme is static",
            place=Place(layer=name),
            hint="give data that reaches it, or make its activations dynamic",
        )


def _width(scheme: LayerScheme) -> Width:
    assert scheme.act is not None
    return scheme.act


def _float32(x: float) -> float:
    return float(np.float32(x))
