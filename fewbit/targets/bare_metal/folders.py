"""What people copy to where a core is simulated or runs: a page for each place, and its files."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.targets.bare_metal.board import Board
from fewbit.targets.bare_metal.program import TRAPPED

_REPORT = f"""\
The program has its input inside, and what the interpreter says of it. It prints

    cycles 152863              the whole run, by mcycle
    layer conv1 27425          each layer
    equal 10                   elements that are what was expected, to the bit
    agreeing 10                those, and floats that are nearer than 1e-5 of the largest
    of 10                      all elements

and ends with status 0 if all agree, 1 if not, and {TRAPPED} after a trap, of which it prints
mcause, mepc and mtval. It needs no system, no libraries and no other file of this folder.
"""


def core_folder(
    name: str, processor: Processor, board: Board, needs: Sequence[str] = ()
) -> dict[str, bytes]:
    """Return the files that go with a program; `needs` are lines about the core."""
    if board.uart is None and processor.xlen == 64:
        return _chipyard(name, processor, board, needs)
    if board.name == "vexii":
        return {"vexiiriscv/README.md": _vexii_page(name, processor, board, needs).encode()}
    return {"README.md": _page(name, _core(processor, board, needs)).encode()}


def _page(name: str, *parts: str) -> str:
    return "\n".join([f"# {name}.elf\n", _REPORT, *parts])


def _core(processor: Processor, board: Board, needs: Sequence[str]) -> str:
    extensions = f"RV{processor.xlen}IM{processor.floats.upper().replace('D', 'FD')}"
    lines = [
        f"{extensions} with Zicsr and the counter mcycle; no compressed instructions, no atomics",
        f"memory from {board.base:#x} on, where the first hart starts in machine mode",
        *needs,
    ]
    return "\n".join(["The core must have\n", *(f"- {line}" for line in lines), ""])


def _chipyard(
    name: str, processor: Processor, board: Board, needs: Sequence[str]
) -> dict[str, bytes]:
    page = _page(
        name,
        _core(processor, board, needs),
        f"""\
## RTL simulators

    cd $CHIPYARD/sims/verilator
    make CONFIG=GemminiRocketConfig run-binary BINARY=$ARTIFACT/{name}.elf LOADMEM=1

`$ARTIFACT` is the folder above this one. Text comes through `tohost`, byte by byte; the
simulator's exit status is the program's.

## Spike

    spike --extension=gemmini {name}.elf

## FireSim

`sh copy.sh $CHIPYARD` puts a bare-metal workload for FireMarshal into
`software/firemarshal/example-workloads`; then

    cd $CHIPYARD/software/firemarshal
    ./marshal build example-workloads/{name}.json
    ./marshal install example-workloads/{name}.json

and `workload_name: {name}.json` in `config_runtime.yaml`. The text is in `uartlog`.
""",
    )
    workload = {"name": name, "base": "bare-base.json", "bin": f"{name}.elf"}
    copy = f"""\
#!/bin/sh
# Copy the bare-metal workload to FireMarshal in a checkout of Chipyard: sh copy.sh CHIPYARD
set -eu
here=$(cd "$(dirname "$0")" && pwd)
workloads=$1/software/firemarshal/example-workloads
[ -d "$workloads" ] || {{ echo "there is no $workloads" >&2; exit 1; }}
mkdir -p "$workloads/{name}"
cp "$here/../{name}.elf" "$workloads/{name}/"
cp "$here/{name}.json" "$workloads/"
"""
    return {
        "chipyard/README.md": page.encode(),
        f"chipyard/{name}.json": (json.dumps(workload, indent=2) + "\n").encode(),
        "chipyard/copy.sh": copy.encode(),
    }


def _vexii_page(name: str, processor: Processor, board: Board, needs: Sequence[str]) -> str:
    floats = {"": "", "f": "--with-rvf ", "d": "--with-rvf --with-rvd "}[processor.floats]
    return _page(
        name,
        _core(processor, board, needs),
        f"""\
## Its test bench

In a checkout of VexiiRiscv with MiCo's instructions

    sbt "runMain vexiiriscv.tester.TestBench --xlen {processor.xlen} --with-rvm {floats}\\
      --performance-counters 0 --no-rvls-check --load-elf PATH/{name}.elf"

The text is printed through the bench's terminal at 0x10000000. It ends at the symbol `pass` or
`fail`. Memory is the bench's, from 0x80000000 on. Spike, with which the bench compares a core, does
not know the dot products, hence `--no-rvls-check`.
""",
    )
