"""From loops on memory to a plan: the entry is executed on shapes, and what is left is launched.

State has one buffer, for what it was and what it becomes, so nothing of it is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fewbit.ir.bindings import mlir_context
from fewbit.kernels.cuda import table
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import Conversion
from fewbit.program.signature import TensorSpec
from fewbit.program.weight_image import WeightImage
from fewbit.targets.cuda.call_layers import GpuLayers
from fewbit.targets.cuda.find_output_shapes import OutputShapes
from fewbit.targets.cuda.memory import Memory, dense
from fewbit.targets.cuda.planner import Assembly, Planner
from fewbit.targets.cuda.settings import GpuSettings, Shape, element_of


@dataclass(frozen=True)
class PlanLaunches(Conversion):
    """Turn the program into launches of kernels and generated loops."""

    name = "plan-launches"
    takes = "upstream"
    gives = "other"

    def convert(self, ctx: CompileContext, module: Any) -> Assembly:
        settings, layers = ctx.get(GpuSettings), ctx.get(GpuLayers).layers
        signature = settings.signature
        with mlir_context(), table.preferring(settings.tuned):
            planner = Planner(module, ENTRY, layers, settings.arch, ctx.get(WeightImage))
            state = [spec.updates for spec in signature.outputs]
            kinds = ["state" if spec.name in state else "in" for spec in signature.inputs]
            inputs = _memories(kinds, signature.inputs, settings.inputs)
            kept = dict(zip((spec.name for spec in signature.inputs), inputs, strict=True))
            kinds = ["out"] * len(state)
            outputs = _memories(kinds, signature.outputs, ctx.get(OutputShapes).shapes)
            outputs = [
                memory if name is None else kept[name]
                for name, memory in zip(state, outputs, strict=True)
            ]
            planner.run(inputs, outputs)
            return Assembly(planner, inputs, outputs)


def _memories(
    kinds: Sequence[str], specs: Sequence[TensorSpec], shapes: Sequence[Shape]
) -> list[Memory]:
    return [
        dense(f"{kind}{i}", element_of(spec), shape)
        for i, (kind, spec, shape) in enumerate(zip(kinds, specs, shapes, strict=True))
    ]
