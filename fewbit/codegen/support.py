"""What LLVM's code wants of a C library, where a system has no such library for everybody.

On Linux libgcc has it. Windows has none that is always there: the name that says that floats are
used is defined here, and the function that touches each page of a large frame in order, because a
stack gets more memory only page by page. Conversions of f16 are the runtime's own (`half.c`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from fewbit.codegen.runtime import baseline_ir
from fewbit.llvm.values import array, constant
from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.link import read_symbols
from fewbit.toolchain.system import MACOS, WINDOWS

_HALF: tuple[str, ...] = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")
_PROBE = bytes.fromhex(
    # push r10; push r11; lea r11, [rsp + 24]; mov r10, r11; sub r10, rax
    "4152 4153 4c8d5c2418 4d89da 4929c2"
    # next: sub r11, 4096; cmp r11, r10; jb last; test [r11], eax; jmp next
    "4981eb00100000 4d39d3 7205 418503 ebef"
    # last: test [r10], eax; pop r11; pop r10; ret
    "418502 415b 415a c3"
)
"""Touch each page from the stack's end down to rax bytes below it, and change no register."""


def support_object(data: Iterable[bytes], isa: Isa) -> tuple[bytes, tuple[str, ...]] | None:
    """Return an object of what objects lack that we define, and the names; None if nothing."""
    ours = _defined(isa)
    read = read_symbols(isa.system)
    missing = {each.name for one in data for each in read(one) if not each.defined}
    names = tuple(sorted(missing & ours.keys()))
    if not names:
        return None
    module = objects.link_modules(sorted({ours[name] for name in names}), names, isa)
    for name in names:
        if name in _HALF:  # other libraries may have their own
            module.get_function(name).visibility = "hidden"
    objects.optimize(module, isa)
    return objects.emit_object(module, isa), names


@cache
def _defined(isa: Isa) -> Mapping[str, str]:
    """Return LLVM IR by the names that it defines."""
    if isa.architecture != "x86_64" or isa.system not in (WINDOWS, MACOS):
        return {}
    text = baseline_ir("half", isa)
    half = dict.fromkeys(_HALF, text)
    if isa.system is MACOS:
        return half
    probe = array([constant("i8", byte) for byte in _PROBE])
    return half | {
        "_fltused": "@_fltused = constant i32 1",
        "__chkstk": f"define void @__chkstk() naked prologue {probe.typed} {{ unreachable }}",
    }
