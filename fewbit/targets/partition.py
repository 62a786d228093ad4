"""A network split between a device and its host, as a program that says so.

Layers that the device runs become subgraphs placed on it; everything else is on the host, and what
passes between the two is a `graph.transfer`. The program computes what it did before. A target that
is given such a program follows it: layers that it finds elsewhere are the host's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from fewbit.dialects.graph import SubgraphOp, TransferOp
from fewbit.dialects.mico import QuantizedLayerOp, element_type, element_width, shape_of
from fewbit.ir.context import make_context
from fewbit.ir.layers import layer_name
from fewbit.ir.locations import place_of
from fewbit.passes.graph.calls import callable_around
from fewbit.passes.graph.inline import Inline
from fewbit.passes.graph.outline_subgraph import MARK, OutlineSubgraph
from fewbit.passes.graph.place_devices import PlaceDevices
from fewbit.pipeline.compilation import run_passes
from fewbit.program.program import Program
from fewbit.targets.device import Legal

HOST = "cpu"


@dataclass(frozen=True)
class Transfer:
    """What passes from one side to the other."""

    layer: str
    """Whose input or result it is."""
    source: str
    target: str
    bytes: int
    """Sizes that only a run knows count as 1."""


def partition(legal: Legal, device: str) -> Program:
    """Return the program with its layers on a device, as legalization says, and transfers."""
    program = run_passes(legal.program, Inline())
    taken = {layer.name for layer in legal.layers if layer.host_because is None}
    uses: Counter[str] = Counter()
    rules: list[str] = []
    for op in program.module.walk():
        if not isinstance(op, QuantizedLayerOp) or (name := _name(op)) not in taken:
            continue
        uses[name] += 1
        # A layer that is called twice is two subgraphs.
        subgraph = name if uses[name] == 1 else f"{name}.{uses[name]}"
        op.attributes[MARK] = StringAttr(subgraph)
        rules.append(f"{subgraph}={device}")
    return run_passes(program, OutlineSubgraph(), PlaceDevices(rules=tuple(rules), default=HOST))


def transfers_of(program: Program) -> list[Transfer]:
    """Return what passes between devices in one run, in order."""
    return [
        Transfer(
            place_of(op).layer or op.name,
            op.from_device.data,
            op.to_device.data,
            _bytes(op.result.type),
        )
        for op in program.module.walk()
        if isinstance(op, TransferOp)
    ]


def _name(op: QuantizedLayerOp) -> str:
    return layer_name(op) or op.name


def _bytes(type: Attribute) -> int:
    few = element_width(type) is not None
    bits = 8 if few else getattr(element_type(type), "bitwidth", 32)
    return prod(max(size, 1) for size in shape_of(type)) * bits // 8


def elsewhere(module: ModuleOp, device: str) -> set[str]:
    """Return names of the layers that a program which is split has on other devices."""
    ops = list(module.walk())
    if not any(isinstance(op, SubgraphOp) and op.device_name == device for op in ops):
        return set()
    layers = [op for op in ops if isinstance(op, QuantizedLayerOp)]
    return {_name(op) for op in layers if _device_of(op) != device}


def _device_of(op: Operation) -> str | None:
    around = callable_around(op)
    return around.device_name if isinstance(around, SubgraphOp) else None


def rejoin(module: ModuleOp) -> None:
    """Undo a partition, in place: one memory serves both sides."""
    if not any(isinstance(op, SubgraphOp) and op.device is not None for op in module.walk()):
        return
    for op in list(module.walk()):
        if isinstance(op, TransferOp):
            op.result.replace_all_uses_with(op.source)
            op.detach()
            op.erase()
    Inline(across_devices=True).apply(make_context(), module)
