"""Which targets work on this machine, found out by running something on each.

A probe does a small real piece of work: a layer is compiled for the target, run there, and compared
with the interpreter. Where the target stands on a driver or on tools of others, the probe asks for
these first, and can so say what to install. A target "works" only when its probe came back right.

The targets are those of the registry, so that none can be missing here, and each has its own probe.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Literal

from fewbit.errors import Error
from fewbit.targets.registry import find_target, target_names

Status = Literal["works", "unavailable"]
TIME_LIMIT_SECONDS = 20


@dataclass(frozen=True)
class Report:
    """One target on this machine; `install` is empty where nothing needs to be."""

    target: str
    status: Status
    why: str
    install: str


@dataclass(frozen=True)
class Found:
    """What a probe found out of a target."""

    works: bool
    why: str
    install: str = ""


def probe_targets() -> list[Report]:
    """Probe every target of the registry, and the interpreter first."""
    probes = {"interpreter": probe_interpreter}
    probes |= {name: partial(find_target(name).probe, name) for name in target_names()}
    with ThreadPoolExecutor() as pool:
        return list(pool.map(probe_target, probes, probes.values()))


def probe_target(name: str, probe: Callable[[], Found]) -> Report:
    try:
        found = probe()
    except Exception as e:
        # Drivers and wheels fail in every way there is; to find that out is the point.
        reason = (str(e).strip() or type(e).__name__).splitlines()[0]
        found = Found(False, f"the probe failed: {reason}", REINSTALL)
    status: Status = "works" if found.works else "unavailable"
    return Report(name, status, found.why, found.install)


REINSTALL = "'make clean setup' in fewbit's folder"


def probe_interpreter() -> Found:
    import numpy as np

    from fewbit.interpreter import interpret
    from fewbit.ir.parse import parse_module
    from fewbit.ir.verify import verify

    module = parse_module(ADD_ONE_OP)
    verify(module)
    x = np.arange(4, dtype=np.int32)
    (y,) = interpret(module, x, function="double")
    if not np.array_equal(y, x + x):
        return Found(False, f"it computed {y} for {x} + {x}", REINSTALL)
    return Found(True, "interpreted a function")


def probe_layer(target: str, install: str = REINSTALL) -> Found:
    """Compile a layer for a target and run it: on this machine, or on the target's simulator."""
    import numpy as np

    from fewbit.interpreter import interpret
    from fewbit.program.program import Program
    from fewbit.targets.compile import compile
    from fewbit.targets.device import Device

    program = Program.parse(_LAYER)
    x = np.linspace(-3, 3, 8, dtype=np.float32).reshape(1, 8)
    with _compiling:
        (wanted,) = interpret(program.module, x)
        try:
            (y,) = compile(program, target, name="probe").run(x)
        except Error as e:
            return Found(False, e.what.splitlines()[0], e.hint or install)
    if not np.allclose(y, wanted, rtol=1e-5, atol=1e-6):
        return Found(False, f"it computed {y} where the interpreter says {wanted}", install)
    simulated = isinstance(find_target(target), Device)
    return Found(True, f"compiled and ran a layer{' on its simulator' if simulated else ''}")


_compiling = Lock()
"""Held while a program is compiled in this process: modules are not shared by threads."""


def run_program(*command: str) -> str:
    """Run a program, which must succeed in time; return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS)
    if done.returncode:
        name, reason = Path(command[0]).name, done.stderr.strip() or f"status {done.returncode}"
        raise RuntimeError(f"{name}: {reason}")
    return done.stdout


ADD_ONE_OP = """\
func.func @double(%x: tensor<4xi32>) -> tensor<4xi32> {
  %y = arith.addi %x, %x : tensor<4xi32>
  func.return %y : tensor<4xi32>
}
"""

_WEIGHTS = bytes(range(32)).hex()
_LAYER = f"""\
mico.constant @fc.scale : tensor<4xf32> = dense<[0.5, 0.25, 1.0, 2.0]>
mico.constant @fc.weight : tensor<4x8x!mico.int<8>> = dense<"0x{_WEIGHTS}"> scale @fc.scale
func.func @main(%x: tensor<1x8xf32>) -> tensor<1x4xf32> {{
  %s = arith.constant 0.03125 : f32
  %y = mico.bitlinear(%x, @fc.weight) act_scale(%s) {{act_bits = 8}}
    : (tensor<1x8xf32>, f32) -> tensor<1x4xf32>
  %z = mico.relu(%y) : tensor<1x4xf32> -> tensor<1x4xf32>
  func.return %z : tensor<1x4xf32>
}}
"""
