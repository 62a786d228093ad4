"""The object of the public functions of a library with variants for several processors.

What they do is in `runtime/dispatch.c` and `runtime/detect.c`. Here are the tables that the C
declares, and functions by the names of the library. The object is compiled for the plainest
processor of the family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewbit.codegen.detect import instructions_ir, needs_ir
from fewbit.codegen.interface import Interface
from fewbit.codegen.runtime import runtime_ir
from fewbit.llvm.function import Prototype, forward
from fewbit.llvm.values import array, constant, string, symbol
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa

AUTO = "auto"
"""In place of a variant's name: the best that fits."""

_SIGNATURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "run": ("i32", ("ptr", "ptr", "ptr", "i32")),
    "shapes": ("i32", ("ptr", "ptr")),
    "arena_bytes": ("i64", ("ptr",)),
    "profile": ("ptr", ("ptr",)),
    "ticks": ("i64", ()),
    "variant": ("ptr", ()),
    "use_variant": ("i32", ("ptr",)),
}
"""The result and the arguments of each function."""
_VARIANT_FUNCTIONS = ("variant", "use_variant")


def variant_functions(interface: Interface) -> tuple[str, ...]:
    """Return what a library with variants has beside the functions of others."""
    return tuple(f"{interface.name}_{kind}" for kind in _VARIANT_FUNCTIONS)


def dispatch_object(
    interface: Interface,
    variants: Sequence[Isa],
    symbols: Sequence[Mapping[str, str]],
    arena: int | None,
) -> bytes:
    """Return the object of the public functions.

    `symbols` has the names of each variant's own functions, `arena` the size that is enough for
    all of them, if it is known.
    """
    isa = variants[0].baseline
    size = constant("i64", -1 if arena is None else arena)
    parts = [_names(variants), f"@variants.static_arena = constant {size.typed}"]
    public = (*interface.functions, *variant_functions(interface))
    for function in public:
        kind = function.removeprefix(f"{interface.name}_")
        if kind not in _VARIANT_FUNCTIONS:
            parts.append(_table(kind, [one[function] for one in symbols]))
        result, types = _SIGNATURES[kind]
        parts.append(forward(function, Prototype.of(f"dispatch.{kind}", result, *types)))
    runtime = [runtime_ir(part, isa.architecture) for part in ("dispatch", "detect")]
    texts = [*runtime, needs_ir(variants), "\n".join(parts)]
    module = objects.link_modules(texts, public, isa)
    objects.optimize(module, isa)
    objects.link_in(module, instructions_ir(isa))
    return objects.emit_object(module, isa)


def _names(variants: Sequence[Isa]) -> str:
    lines = [
        f"@variants.name{i} = private constant {string(isa.name).typed}"
        for i, isa in enumerate(variants)
    ]
    names = array([symbol(f"variants.name{i}") for i in range(len(variants))])
    return "\n".join([*lines, f"@variants.names = constant {names.typed}"])


def _table(kind: str, symbols: Sequence[str]) -> str:
    """Return the variants' functions."""
    result, types = _SIGNATURES[kind]
    table = array([symbol(name) for name in symbols])
    return "\n".join(
        [
            *(Prototype.of(name, result, *types).declaration("hidden ") for name in symbols),
            f"@variants.{kind} = constant {table.typed}",
        ]
    )
