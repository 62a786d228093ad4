"""The C interface: one function of pointers, because all sizes are known.

    void kws_run(const float *x, float *output, void *arena);

Inputs and outputs are arrays; the arena is memory for what lies between, aligned to 16 bytes.
Nothing is allocated, and nothing but the arena and outputs is written, so a program may be called
by several tasks, each with its own.
"""

from __future__ import annotations

from fewbit.codegen.bare_metal.helpers import SMALL
from fewbit.codegen.interface import Interface, Port
from fewbit.codegen.memref import descriptor, memref_types
from fewbit.errors import UnsupportedError
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import I32
from fewbit.llvm.values import Operand

ALIGNMENT = 16
_HEADER = """\
/* {description}
 *
 * All memory is the caller's, and all of it is said here: nothing is allocated, and there is no
 * state. Weights are read-only data. Two tasks may run this at the same time, each with an arena
 * and outputs of its own.
 */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Bytes of the arena, which is aligned to {alignment}. */
#define {upper}_ARENA_BYTES {arena}
/* Bytes of stack that a run takes, at most. */
#define {upper}_STACK_BYTES {stack}
/* Elements of inputs and outputs. */
{sizes}

/* {signature} */
void {name}_run({parameters});

#ifdef __cplusplus
}}
#endif

#endif
"""


def run_name(interface: Interface) -> str:
    return f"{interface.name}_run"


def interface_ir(interface: Interface, entry: str, weights_bytes: int, arena_bytes: int) -> str:
    """Return LLVM IR of the function, around MLIR's entry."""
    if interface.counted or interface.dynamic:
        names = [
            *interface.counted_dimensions,
            *(d for p in ports_of(interface) for d in p.dimensions),
        ]
        raise UnsupportedError(
            f"only a run knows {', '.join(names)}, and programs for microcontrollers have sizes "
            "that are known",
            hint="give the sizes of inputs: --input-shape x=1x3x96x96",
        )
    ports = ports_of(interface)
    array = memref_types(1, I32)
    types = [t for port in ports for t in memref_types(len(port.shape), I32)]
    prototype = Prototype.of(entry, "void", *types, *array, *array)
    f = Function(
        run_name(interface),
        [*(("ptr", port.name) for port in ports), ("ptr", "arena")],
        attributes=f"nounwind {SMALL}",
        index=I32,
    )
    arguments: list[Operand] = []
    for port in ports:
        arguments += descriptor(f.parameter(port.name), [size or 1 for size in port.shape])
    symbol = f"{interface.name}_weights"
    arguments += descriptor(f.symbol(symbol), [weights_bytes])
    arguments += descriptor(f.parameter("arena"), [arena_bytes])
    f.call(prototype, *arguments)
    f.ret()
    return "\n".join(
        [
            prototype.declaration(),
            f"@{symbol} = external hidden constant i8, align 64",
            f.text(),
        ]
    )


def ports_of(interface: Interface) -> tuple[Port, ...]:
    return (*interface.inputs, *interface.outputs)


def header(interface: Interface, description: str, arena: int, stack: int) -> str:
    """Return the C header."""
    upper = interface.name.upper()
    parameters = [
        *(f"const {port.c_type} *{port.name}" for port in interface.inputs),
        *(f"{port.c_type} *{port.name}" for port in interface.outputs),
        "void *arena",
    ]
    shapes = [
        f"{port.name}: {'x'.join(map(str, port.shape)) or 'a number'}"
        for port in ports_of(interface)
    ]
    sizes = [f"#define {upper}_{p.name.upper()}_SIZE {p.elements}" for p in ports_of(interface)]
    return _HEADER.format(
        description=description.replace("*/", "* /"),
        upper=upper,
        name=interface.name,
        alignment=ALIGNMENT,
        arena=arena,
        stack=stack,
        sizes="\n".join(sizes),
        signature="; ".join(shapes),
        parameters=", ".join(parameters),
    )
