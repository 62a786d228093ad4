"""Running an artifact: the host on the instruction-set simulator, the accelerator as its model.

Streams are sent one after another, so the model's events are told apart by counting commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

from fewbit.simulators.gemmini.memory import Memory
from fewbit.simulators.gemmini.model import Events as ModelEvents
from fewbit.simulators.gemmini.model import Model
from fewbit.simulators.riscv.machine import Machine
from fewbit.targets.device import Events, Execution, LayerEvents
from fewbit.targets.gemmini.streams_file import Streams, read_streams
from fewbit.targets.vexii.simulate import Array, VexiiSimulator, counts_of


class Layered(Model):
    """A model that keeps what happened in each of the streams that it expects."""

    def expect(self, sent: Streams, samples: int) -> None:
        counts = [len(s.commands) * (samples if s.repeated else 1) for s in sent.layers]
        self._start = len(sent.start)
        self._ends = list(accumulate(counts, initial=self._start))[1:]
        self.layers: list[ModelEvents] = []
        self._before = self.events.copy()

    def execute(self, funct: int, rs1: int, rs2: int, memory: Memory) -> int:
        result = super().execute(funct, rs1, rs2, memory)
        if self.events.commands == self._start:
            self._before = self.events.copy()
        done = len(self.layers)
        if done < len(self._ends) and self.events.commands == self._ends[done]:
            now = self.events.copy()
            self.layers.append(now - self._before)
            self._before = now
        return result


@dataclass
class GemminiSimulator(VexiiSimulator):
    """Runs one artifact: the host's program, and the accelerator that it commands."""

    layered: ClassVar[type[Layered]] = Layered
    model: Layered = field(init=False)
    _samples: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sent = read_streams(self.folder)

    def machine(self, data_bytes: int) -> Machine:
        self.model = self.layered(self.sent.hardware)
        self.model.expect(self.sent, self._samples)
        machine = Machine(64, self.memory_bytes(data_bytes), self.model, native=self.native)
        machine.load(self._elf)
        return machine

    def run(self, inputs: Sequence[Array]) -> Execution:
        self._samples = self._batch(inputs)
        outputs, counted = self.execute(inputs)
        host = {f"host {name}": n for name, n in counts_of(counted.histogram).items()}
        hosted = {layer.name: layer.counts for layer in self._events(counted).layers}
        layers = tuple(
            LayerEvents(stream.name, event_counts(events) | _host_share(hosted, stream.name))
            for stream, events in zip(self.sent.layers, self.model.layers, strict=False)
        )
        return Execution(outputs, Events(event_counts(self.model.events) | host, layers))

    def _batch(self, inputs: Sequence[Array]) -> int:
        """Return the size that only a run knows."""
        for tensor, array in zip(self.folder.manifest.inputs, inputs, strict=True):
            if tensor.shape and tensor.shape[0] is None:
                return array.shape[0]
        return 1


def _host_share(hosted: Mapping[str, Mapping[str, int]], layer: str) -> dict[str, int]:
    """Return what the host did for a layer: sending, and what stands around it."""
    counts = hosted.get(re.sub(r"\W+", "_", layer), {})
    return {"host instructions": counts.get("instructions", 0)}


def event_counts(events: ModelEvents) -> dict[str, int]:
    return {
        "commands": events.commands,
        "executed": sum(events.executed.values()),
        "computes": events.computes,
        "bytes read": events.bytes_read,
        "bytes written": events.bytes_written,
        "macs": events.macs,
    }
