"""The time of each layer of a program, as it is and at each width that its weight could have.

A layer is the call of its kernel, and of the kernel that quantizes its input where its scales are
dynamic. Weights come from wherever those of all layers together fit; inputs were written
just before. What is between layers, and layers that no kernel computes, take time that is not
counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from numpy.typing import NDArray

from fewbit.cost.cpu.calibration import Calibration
from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.cost.cpu.store import load_calibration
from fewbit.cost.layers import made_up_inputs, observed_layers
from fewbit.dialects.mico import BitLinearOp, QuantizedLayerOp, shape_of
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.dialects.mico.syntax import ints, pairs
from fewbit.ir.layers import layer_name
from fewbit.kernels import (
    Conv2d,
    Depthwise,
    IntegerConv2d,
    IntegerDepthwise,
    IntegerMatmul,
    Isa,
    Matmul,
    QuantizeRows,
)
from fewbit.program.program import Program

WIDTHS = tuple(range(1, 9))
AS_FAST = 1.05
"""Times a width may take as long as the fastest, to count as fast as it."""
QUANTIZED_WIDTHS = range(1, 9)


@dataclass(frozen=True)
class LayerTime:
    """Seconds of a layer, with the quantization of its input."""

    name: str
    kernel: str
    seconds: float
    """As the layer is."""
    by_width: dict[int, float]
    """With a weight of so many bits, and activations of 8 bits at most."""

    @property
    def widest_as_fast(self) -> int | None:
        """The most bits that cost no time: narrower weights save memory at most."""
        if not self.by_width:
            return None
        enough = AS_FAST * min(self.by_width.values())
        return max(width for width, seconds in self.by_width.items() if seconds <= enough)


def layer_times(
    program: Program,
    inputs: Sequence[NDArray[Any]] | None = None,
    *,
    widths: Iterable[int] = WIDTHS,
    threads: int = 1,
    calibration: Calibration | None = None,
) -> list[LayerTime]:
    """Return each layer in the order in which it runs, for inputs of these sizes.

    Without inputs, dynamic dimensions are 1. Without a calibration, the one of this machine is
    taken, if there is one.
    """
    given = made_up_inputs(program, dynamic=1) if inputs is None else inputs
    layers = [
        Layer.of(op, output.shape)
        for _, (op, output) in observed_layers(program, given)
        if isinstance(op, QuantizedLayerOp)
    ]
    model = calibration or load_calibration()
    all_weights = sum(layer.weight_bytes(layer.bits) for layer in layers)
    return [layer.time(model, tuple(widths), threads, all_weights) for layer in layers]


@dataclass(frozen=True)
class Layer:
    """What is needed to know a layer's calls."""

    name: str
    sizes: MatrixSizes | ImageSizes
    calls: int
    weights: int
    bits: int | None
    """The width of the weight; None where floats are multiplied."""
    act_bits: int | None
    """The width of activations that the layer quantizes dynamically."""
    samples: int
    """The number of dynamic scales of the input."""

    @staticmethod
    def of(op: QuantizedLayerOp, output: tuple[int, ...]) -> Layer:
        integers = op.act_width is not None and op.weight_width is not None
        dynamic = integers and op.act_scale is None and op.act_width is not None
        weight = shape_of(op.weight.type)
        sizes, calls = _sizes(op, output)
        rows = sizes.m if isinstance(sizes, MatrixSizes) else sizes.batch
        return Layer(
            name=layer_name(op) or op.name,
            sizes=sizes,
            calls=calls,
            weights=prod(weight),
            bits=op.weight_width.bits if integers and op.weight_width is not None else None,
            act_bits=op.act_width.bits if dynamic and op.act_width is not None else None,
            samples=rows,
        )

    def time(
        self, model: Calibration, widths: Sequence[int], threads: int, all_weights: int
    ) -> LayerTime:
        def seconds(bits: int | None, act_bits: int | None) -> float:
            others = all_weights - self.weight_bytes(self.bits)
            footprint = others + self.weight_bytes(bits)
            calls = self.calls_of(model.isa, bits, act_bits)
            return sum(
                model.seconds(replace(call, threads=threads, footprint=footprint)) for call in calls
            )

        act_bits = 8 if self.bits is None else self.act_bits
        return LayerTime(
            name=self.name,
            kernel=self.calls_of(model.isa, self.bits, self.act_bits)[-1].kernel.symbol,
            seconds=seconds(self.bits, self.act_bits),
            by_width={width: seconds(width, act_bits) for width in widths},
        )

    def weight_bytes(self, bits: int | None) -> int:
        return self.weights * 4 if bits is None else -(-self.weights * bits // 8)

    def calls_of(self, isa: Isa, bits: int | None, act_bits: int | None) -> list[KernelCall]:
        """Return the kernels that the layer calls, with a weight of so many bits."""
        calls: list[KernelCall] = []
        if act_bits is not None:
            quantizer = QuantizeRows(isa, act_bits if act_bits in QUANTIZED_WIDTHS else 8)
            inputs = self._input_size() // max(self.samples, 1)
            calls.append(KernelCall(quantizer, MatrixSizes(self.samples, 0, inputs)))
        return [*calls, KernelCall(self._kernel(isa, bits), self.sizes, calls=self.calls)]

    def _input_size(self) -> int:
        s = self.sizes
        return s.m * s.k if isinstance(s, MatrixSizes) else s.pixels * s.c * self.calls

    def _kernel(self, isa: Isa, bits: int | None) -> Any:
        s = self.sizes
        if isinstance(s, MatrixSizes):
            if bits is None:
                return Matmul(isa)
            return IntegerMatmul(isa, "f32", bits, grouped=s.groups > 1)
        if s.depthwise:
            return Depthwise(isa) if bits is None else IntegerDepthwise(isa, "f32")
        return Conv2d(isa) if bits is None else IntegerConv2d(isa, "f32", bits)


def _sizes(op: QuantizedLayerOp, output: tuple[int, ...]) -> tuple[MatrixSizes | ImageSizes, int]:
    """Return sizes of one call, and how many calls there are."""
    weight = shape_of(op.weight.type)
    if isinstance(op, BitLinearOp):
        kind, group = op.granularity
        groups = weight[1] // group if kind == "group" and group else 1
        return MatrixSizes(prod(output[:-1]), *weight, groups=groups), 1
    assert isinstance(op, ConvolutionOp)
    flat = op.RANK == 1
    kh, kw = (1, *weight[2:]) if flat else weight[2:]
    oh, ow = (1, *output[2:]) if flat else output[2:]
    stride = (1, *ints(op.stride)) if flat else ints(op.stride)
    dilation = (1, *ints(op.dilation)) if flat else ints(op.dilation)
    sides = ((0, 0), *pairs(op.padding)) if flat else pairs(op.padding)
    h, w = (
        max(1, (out - 1) * step + reach * (taps - 1) + 1 - sum(side))
        for out, step, reach, taps, side in zip(
            (oh, ow), stride, dilation, (kh, kw), sides, strict=True
        )
    )
    groups = op.groups.value.data
    depthwise = groups > 1 and weight[1] == 1 and weight[0] == groups
    calls = 1 if depthwise else groups
    sizes = ImageSizes(
        *(output[0], h, w, groups if depthwise else weight[1], weight[0] // calls, kh, kw),
        stride=(stride[0], stride[1]),
        padding=(sides[0][0], sides[1][0]),
        dilation=(dilation[0], dilation[1]),
        out=(oh, ow),
        depthwise=depthwise,
        x_stride=weight[1] * calls if calls > 1 else 0,
        y_stride=weight[0] if calls > 1 else 0,
    )
    return sizes, calls
