# pyright: basic
"""A GPU's driver that is this machine's memory, so that artifacts run where there is no GPU.

It knows the functions that the runtime calls, by their names, and refuses others. Launching a plan
executes the steps that are described beside it; what is captured into a graph runs when that does.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fewbit.errors import UnsupportedError
from fewbit.kernels.cuda.plan import Plan
from tests.targets.cuda.emulate import Steps

GUARD = 64


class FakeGpu:
    """Memory by addresses, and graphs as lists of launches."""

    compute = 90

    def __init__(self) -> None:
        self.memory: dict[int, np.ndarray] = {}
        self.pinned: dict[int, np.ndarray] = {}
        self.graphs: dict[int, list] = {}
        self.capturing: list | None = None
        self.copied = 0
        """Bytes that were copied to the GPU and from it."""
        self.captures = 0

    def allocate(self, size: int) -> int:
        array = np.full(max(size, 1) + GUARD, 0xA5, np.uint8)
        self.memory[array.ctypes.data] = array
        return array.ctypes.data

    def free(self, address: int) -> None:
        del self.memory[address]

    def synchronize(self) -> None: ...

    def call(self, name: str, *arguments) -> None:
        function = getattr(self, f"_{name}", None)
        if function is None:
            raise UnsupportedError(f"the fake driver has no {name}")
        function(*arguments)

    def launch(self, steps: Steps) -> None:
        if self.capturing is None:
            steps.run()
        else:
            self.capturing.append(steps)

    def _find(self, address: int, size: int) -> None:
        if not any(a <= address and address + size <= a + m.size for a, m in self.memory.items()):
            raise UnsupportedError("a copy outside of the GPU's memory")

    def _cuStreamCreate(self, stream, flags) -> None:
        stream._obj.value = 1

    def _cuStreamSynchronize(self, stream) -> None: ...

    def _cuStreamBeginCapture_v2(self, stream, mode) -> None:
        self.capturing = []

    def _cuStreamEndCapture(self, stream, graph) -> None:
        assert self.capturing is not None
        self.captures += 1
        graph._obj.value = self.captures
        self.graphs[self.captures], self.capturing = self.capturing, None

    def _cuGraphInstantiateWithFlags(self, made, graph, flags) -> None:
        made._obj.value = graph.value

    def _cuGraphDestroy(self, graph) -> None: ...

    def _cuGraphExecDestroy(self, graph) -> None:
        del self.graphs[graph.value]

    def _cuGraphLaunch(self, graph, stream) -> None:
        for steps in self.graphs[graph.value]:
            steps.run()

    def _cuMemAllocHost_v2(self, address, size) -> None:
        array = np.empty(size.value, np.uint8)
        address._obj.value = array.ctypes.data
        self.pinned[array.ctypes.data] = array

    def _cuMemFreeHost(self, address) -> None:
        del self.pinned[address.value]

    def _cuMemcpyHtoD_v2(self, target, source, size, stream=None) -> None:
        self._find(target.value, size.value)
        ctypes.memmove(target.value, source.value, size.value)
        self.copied += size.value

    def _cuMemcpyDtoH_v2(self, target, source, size, stream=None) -> None:
        self._find(source.value, size.value)
        ctypes.memmove(target.value, source.value, size.value)
        self.copied += size.value

    _cuMemcpyHtoDAsync_v2 = _cuMemcpyHtoD_v2  # noqa: N815
    _cuMemcpyDtoHAsync_v2 = _cuMemcpyDtoH_v2  # noqa: N815


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeGpu:
    """Let programs for GPUs run on this processor."""
    fake = FakeGpu()
    plans: dict[str, tuple[list, str]] = {}

    class FakeLoaded:
        def __init__(self, plan: Plan, addresses: Mapping[str, int]) -> None:
            steps, source = plans[plan.name]
            memory = {name: fake.memory[address] for name, address in addresses.items()}
            where = tmp_path / f"loops{len(list(tmp_path.glob('loops*')))}"
            where.mkdir()
            self.steps = Steps(steps, memory, source, where)

        def __call__(self, stream: int) -> None:
            fake.launch(self.steps)

        def close(self) -> None: ...

    from fewbit.runtime import cuda

    read = cuda.read_plan

    def read_with_steps(folder):
        text = folder.file(cuda.PLAN).read_text(encoding="utf-8")
        source = folder.file(f"{folder.manifest.name}.cu").read_text(encoding="utf-8")
        plans[folder.manifest.name] = json.loads(text)["steps"], source
        return read(folder)

    monkeypatch.setattr(cuda, "read_plan", read_with_steps)
    monkeypatch.setattr(cuda, "Loaded", FakeLoaded)
    monkeypatch.setattr(cuda, "device", lambda: fake)
    return fake
