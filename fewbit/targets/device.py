"""What simulated hardware targets share: what they can run, events of a run, and what it costs.

A device has instructions or multipliers for some widths only. A layer of another width is stored in
the next wider one, with its own integers and scales, so results do not change; a notice says so. A
layer that the device cannot run is left to its host, with the reason. No program is changed for
that: legalization is a table of layers, which lowering follows and users read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any, Literal, Protocol

import numpy as np

from fewbit.dialects.mico import BitLinearOp, QuantizedLayerOp, shape_of
from fewbit.errors import UsageError
from fewbit.ir.layers import layer_name
from fewbit.numerics.widths import Width
from fewbit.program.artifact import Folder
from fewbit.program.program import Program
from fewbit.targets.target import Target

Array = np.ndarray[Any, Any]
Bound = Literal["compute", "memory"]


@dataclass(frozen=True)
class LegalLayer:
    """A layer, and how the device runs it."""

    name: str
    op: str
    act: Width | None
    """Bits of the activations; None for floats."""
    weight: Width | None
    stored_act: int | None
    """Bits in which the device holds an activation; None where the host runs the layer."""
    stored_weight: int | None
    macs: int
    """MACs of a run; sizes that only a run knows count as 1."""
    host_because: str | None = None
    """Why the device leaves it to the host."""

    @property
    def notice(self) -> str | None:
        """What a user should know of this layer, if there is something."""
        if self.host_because is not None:
            return f"layer '{self.name}' runs on the host: {self.host_because}"
        widened = [
            f"{what} of {width} bits are stored in {stored}"
            for what, width, stored in (
                ("activations", self.act, self.stored_act),
                ("weights", self.weight, self.stored_weight),
            )
            if width is not None and stored is not None and stored != width.bits
        ]
        return f"layer '{self.name}': {' and '.join(widened)}" if widened else None


@dataclass(frozen=True)
class Legal:
    """What a device makes of a program's layers, in their order."""

    program: Program
    layers: tuple[LegalLayer, ...]

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(layer.notice for layer in self.layers if layer.notice is not None)

    @property
    def on_host(self) -> tuple[str, ...]:
        """Names of the layers that the device does not run."""
        return tuple(layer.name for layer in self.layers if layer.host_because is not None)


@dataclass(frozen=True)
class LayerEvents:
    """What happened in one layer: `macs`, `instructions`, `commands`, `bytes`, as a device has."""

    name: str
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Events:
    """What a simulator counted in a run."""

    counts: Mapping[str, int]
    """Counts of the whole run: instructions by class, commands by name, bytes moved."""
    layers: tuple[LayerEvents, ...] = ()


@dataclass(frozen=True)
class Execution:
    """The outputs of a run, and what happened in it."""

    outputs: tuple[Array, ...]
    events: Events


@dataclass(frozen=True)
class LayerCost:
    """What a layer takes."""

    name: str
    cycles: float
    bytes: int | None = None
    """Moved to and from memory."""
    utilization: float | None = None
    """MACs a cycle, of those that the device could make at these widths."""
    bound: Bound | None = None
    """What it waits for."""


@dataclass(frozen=True)
class Estimate:
    """What a run takes on one machine, as a model says."""

    machine: str
    cycles: float
    error: str
    """How far the model is off, and on what that was measured: `6 % MAPE on shapes held out`."""
    energy: float | None = None
    """In picojoules."""
    layers: tuple[LayerCost, ...] = ()


class Simulator(Protocol):
    """Runs one artifact."""

    def run(self, inputs: Sequence[Array]) -> Execution:
        """Return the outputs for inputs of the right types and shapes, and what happened."""
        ...


class Device(Target):
    """Hardware that is simulated here.

    What a subclass adds: `widths`, `refusal`, `check`, `compile`, `lower`, `simulator`, `estimate`.
    """

    is_simulated = True
    widths: tuple[int, ...]
    """Bits that an operand may have, in rising order; 8 is the last."""

    def legalize(self, program: Program) -> Legal:
        """Return how the device runs each layer of a program."""
        layers = [op for op in program.module.walk() if isinstance(op, QuantizedLayerOp)]
        return Legal(program, tuple(self._legal(op) for op in layers))

    def refusal(self, op: QuantizedLayerOp) -> str | None:
        """Return why the device cannot run a layer of integers, if it cannot."""
        return None

    def stored_bits(self, op: QuantizedLayerOp) -> tuple[int, int]:
        """Return the bits in which activations and weights of a layer are held."""
        assert op.act_width is not None
        assert op.weight_width is not None
        return self.stored_width(op.act_width), self.stored_width(op.weight_width)

    def stored_width(self, width: Width) -> int:
        """Return the smallest width of the device that holds all integers of this one."""
        return next(bits for bits in self.widths if bits >= width.bits)

    def run(self, folder: Folder, inputs: Sequence[Any]) -> Execution:
        """Run an artifact on the simulator."""
        return self.load(folder).execute(*inputs)

    @abstractmethod
    def simulator(self, folder: Folder) -> Simulator:
        """Return what runs an artifact, with its code and weights loaded."""

    @abstractmethod
    def estimate(self, folder: Folder, events: Events) -> tuple[Estimate, ...]:
        """Estimate what a run takes, on each machine that there is a model of."""

    def load(self, folder: Folder) -> Simulated:
        return Simulated(self, folder)

    def _legal(self, op: QuantizedLayerOp) -> LegalLayer:
        reason = float_reason(op) or self.refusal(op)
        act, weight = (None, None) if reason is not None else self.stored_bits(op)
        return LegalLayer(
            name=layer_name(op) or op.name,
            op=op.name,
            act=op.act_width,
            weight=op.weight_width,
            stored_act=act,
            stored_weight=weight,
            macs=_macs(op),
            host_because=reason,
        )


def float_reason(op: QuantizedLayerOp) -> str | None:
    """Return why no hardware of integers takes a layer, if so."""
    if op.act_width is None:
        return "its activations are floats"
    if op.weight_width is None:
        return "its weights are floats"
    if op.act_zero_point is not None or op.weight_zero_point is not None:
        return "it has a zero point"
    if op.weight_offset is not None:
        return "its weight has offsets"
    if isinstance(op, BitLinearOp) and op.act_group is not None:
        return "its activations have scales for groups"
    return None


def _macs(op: QuantizedLayerOp) -> int:
    shape = (*shape_of(op.result.type), *shape_of(op.weight.type)[1:])
    return prod(max(size, 1) for size in shape)


@dataclass
class Simulated:
    """An artifact on its simulator, called like a function."""

    device: Device
    folder: Folder
    events: Events | None = field(default=None, init=False)
    """What the last call counted."""
    _simulator: Simulator | None = field(default=None, init=False)

    def __call__(self, *arrays: Any) -> tuple[Array, ...]:
        return self.execute(*arrays).outputs

    def execute(self, *arrays: Any) -> Execution:
        """Return the outputs, and what happened."""
        from fewbit.runtime.native import check_inputs

        inputs = check_inputs(arrays, self.folder.manifest.inputs)
        if self._simulator is None:
            self._simulator = self.device.simulator(self.folder)
        execution = self._simulator.run(inputs)
        self.events = execution.events
        return execution

    def estimate(self, events: Events) -> tuple[Estimate, ...]:
        return self.device.estimate(self.folder, events)

    def stats(self) -> str:
        """Return what the last call counted, and what it would take, for people to read."""
        from fewbit.targets.device_report import stats_text

        events = self._last_events()
        return stats_text(events, self.estimate(events))

    def plain_stats(self) -> dict[str, Any]:
        """Return the same for JSON: counts, those of each layer, an estimate for each machine."""
        events = self._last_events()
        return {**asdict(events), "estimates": [asdict(each) for each in self.estimate(events)]}

    def _last_events(self) -> Events:
        if self.events is None:
            raise UsageError("nothing was run yet, so nothing was counted")
        return self.events
