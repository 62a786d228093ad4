"""Static scales from what layers received: what is kept of activations, and what is made of it.

What is kept does not grow with the data: a histogram of magnitudes, whose range doubles when a
larger value arrives by adding neighbouring bins, so nothing is rounded twice and the result depends
only on the data and its order. Widths of 1 to 2 bits take mean|x|, as the dynamic formulas do,
unless the squared error is what is minimized.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any, Literal

import numpy as np

from fewbit.errors import Error, Place, UsageError
from fewbit.numerics import EPS, Width
from fewbit.numerics.arrays import Float32Array
from fewbit.numerics.hadamard import rotate
from fewbit.quant.calibration import Calibration
from fewbit.quant.scheme import LayerScheme

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


class Observers:
    """One observer for each layer whose activations are quantized, and the scales they give."""

    def __init__(
        self, schemes: Mapping[str, LayerScheme], method: Method, percentile: float
    ) -> None:
        self.schemes = {name: scheme for name, scheme in schemes.items() if scheme.act is not None}
        self.method: Method = method
        self.share = percentile
        _check(self.schemes, method, percentile)
        self._seen = {name: Observer() for name in self.schemes}

    def __contains__(self, name: str) -> bool:
        return name in self._seen

    def see(self, name: str, x: Float32Array) -> None:
        try:
            self._seen[name].see(rotate(x, self.schemes[name].hadamard))
        except Error as error:
            raise error.at(layer=name) from None

    def calibration(self, expected: Container[str]) -> Calibration:
        """The scales of layers that ran; a static layer that is expected to run must have."""
        scales: dict[str, float] = {}
        zero_points: dict[str, int] = {}
        for name, scheme in self.schemes.items():
            observer = self._seen[name]
            if observer.count == 0:
                if scheme.static and name in expected:
                    raise _never_ran(name)
            elif scheme.static and not scheme.symmetric:
                scales[name], zero_points[name] = _asymmetric(observer, _width(scheme))
            else:
                scales[name] = _symmetric(observer, _width(scheme), self.method, self.share)
        return Calibration(scales, zero_points)


def no_data() -> UsageError:
    return UsageError(
        "there is no data to calibrate with",
        hint="give at least one batch; a generator that was used up is empty",
    )


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


def _never_ran(name: str) -> Error:
    return Error(
        "the layer did not run on the calibration data, and its scheme is static",
        place=Place(layer=name),
        hint="give data that reaches it, or make its activations dynamic",
    )


def _width(scheme: LayerScheme) -> Width:
    assert scheme.act is not None
    return scheme.act


def _float32(x: float) -> float:
    return float(np.float32(x))
