"""Running an artifact: the host interprets the program, and gives layers to the accelerator.

The host quantizes activations and scales sums, as the interpreter does; integers between them are
the accelerator's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from fewbit.dialects.mico import BitLinearOp, QuantizedLayerOp
from fewbit.errors import StoreError
from fewbit.interpreter.interpreter import Frame, Interpreter
from fewbit.interpreter.mico.layers import activation_of, sum_with_bias, weight_of
from fewbit.interpreter.mico.operands import Operands, as_type
from fewbit.interpreter.registry import Entry, Outcome
from fewbit.interpreter.values import Value
from fewbit.ir.layers import layer_name
from fewbit.numerics import Quantized
from fewbit.numerics.integer import check_accumulator
from fewbit.program.artifact import Folder
from fewbit.program.program import Program
from fewbit.targets.bitfusion.accelerator import ACCELERATORS
from fewbit.targets.bitfusion.blocks import Block, Blocks
from fewbit.targets.bitfusion.execute import Counted, execute
from fewbit.targets.bitfusion.lowering import device_layers
from fewbit.targets.device import Events, Execution, LayerEvents

Array = NDArray[Any]
BLOCKS = "blocks.json"
BATCH = "batch"


class BitFusionSimulator:
    """The accelerator and its host, with one program loaded."""

    def __init__(self, folder: Folder) -> None:
        self.program = Program.load(folder.path)
        read = Blocks.model_validate_json(folder.file(BLOCKS).read_bytes())
        layers = list(device_layers(self.program))
        names = [layer_name(op) or op.name for op in layers]
        if names != [block.layer for block in read.blocks]:
            raise StoreError("the blocks are not those of the program", hint="compile it again")
        self.blocks = dict(zip(layers, read.blocks, strict=True))
        self.accelerator = ACCELERATORS[read.accelerator]

    def run(self, inputs: Sequence[Array]) -> Execution:
        """Return the outputs, and what was counted in each layer."""
        host = _Host(self)
        outputs = host.call(None, list(inputs))
        layers = tuple(
            LayerEvents(block.layer, {**counts_of(counted), BATCH: block.shape.batch})
            for block, counted in host.ran
        )
        total: dict[str, int] = {}
        for layer in layers:
            for name, count in layer.counts.items():
                if name != BATCH:
                    total[name] = total.get(name, 0) + count
        return Execution(outputs, Events(total, layers))


def counts_of(counted: Counted) -> dict[str, int]:
    """Return what a layer counted, as events have it."""
    return {
        "macs": counted.macs,
        "brick products": counted.bricks,
        "tiles": counted.tiles,
        "bytes": (sum(counted.loaded.values()) + counted.stored) // 8,
        "weight bytes": counted.loaded["weight"] // 8,
        "activation bytes": counted.loaded["act"] // 8,
        "sum bytes": (counted.loaded["out"] + counted.stored) // 8,
    }


class _Host(Interpreter):
    """An interpreter that has an accelerator."""

    def __init__(self, simulator: BitFusionSimulator) -> None:
        super().__init__(simulator.program.module, simulator.program.store)
        self.blocks: Mapping[Any, Block] = simulator.blocks
        self.accelerator = simulator.accelerator
        self.ran: list[tuple[Block, Counted]] = []

    def frame(self) -> Frame:
        return _HostFrame(self)


class _HostFrame(Frame):
    interpreter: _Host

    def evaluate(self, op: Operation, entry: Entry, operands: Sequence[Value]) -> Outcome:
        block = self.interpreter.blocks.get(op)
        if block is None:
            return super().evaluate(op, entry, operands)
        assert isinstance(op, QuantizedLayerOp)
        shape = Operands(op, operands)[op.input].shape
        batch = prod(shape[:-1]) if isinstance(op, BitLinearOp) else shape[0]
        block = block.for_batch(batch, self.interpreter.accelerator)
        result, counted = run_layer(op, block, operands)
        self.interpreter.ran.append((block, counted))
        return (result,)


def run_layer(
    op: QuantizedLayerOp, block: Block, operands: Sequence[Value]
) -> tuple[Value, Counted]:
    """Run a layer: quantized by the host, multiplied by the accelerator, scaled by the host."""
    given = Operands(op, operands)
    bias = given.get(op.bias)
    linear = isinstance(op, BitLinearOp)
    if op.gives_accumulators:
        acc, counted = _sums(block, given[op.input], given[op.weight], linear)
        return sum_with_bias(acc, bias, -1 if linear else 1), counted
    x, weight = activation_of(op, given, "row" if linear else "sample"), weight_of(op, given)
    assert isinstance(x, Quantized)
    assert isinstance(weight, Quantized)
    check_accumulator(int(np.prod(weight.shape[1:])), x.width, weight.width)
    acc, counted = _sums(block, x.values, weight.values, linear)
    channels = (-1,) if linear else (-1,) + (1,) * (acc.ndim - 2)
    scale = np.broadcast_to(x.scale, x.shape[: acc.ndim - 1 if linear else 1])
    scale = scale.reshape(scale.shape + (1,) * (acc.ndim - scale.ndim))
    y = acc.astype(np.float32) * scale * weight.scale.reshape(channels)
    if bias is not None:
        y = y + bias.reshape(channels)
    return as_type(y, op.result.type), counted


def _sums(block: Block, x: Value, weight: Value, linear: bool) -> tuple[Value, Counted]:
    """Return the sums in the shape of the layer's result."""
    shape = block.shape
    if linear:
        flat = x.reshape(shape.batch, shape.inputs, 1, 1)
        acc, counted = execute(block, flat, weight[:, :, np.newaxis, np.newaxis])
        return acc.reshape(*x.shape[:-1], shape.outputs), counted
    if x.ndim == 3:
        acc, counted = execute(block, x[:, :, np.newaxis], weight[:, :, np.newaxis])
        return acc[:, :, 0], counted
    return execute(block, x, weight)
