"""Which bits of a processor say that it executes a variant; `runtime/detect.c` reads them.

A variant fits where all bits are set that it needs, as `Isa.needs` lists them. The two x86
instructions that ask are given as bytes: LLVM has no intrinsic for `cpuid`, and llvmlite no
assembler but for the machine that it runs on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewbit.errors import UnsupportedError
from fewbit.llvm.values import Constant, array, constant
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.system import WINDOWS

_X86 = {
    "ecx1": {
        "sse3": 0, "ssse3": 9, "fma": 12, "cx16": 13, "sse4.1": 19, "sse4.2": 20, "movbe": 22,
        "popcnt": 23, "avx": 28, "f16c": 29,
    },
    "ecx_extended": {"sahf": 0, "lzcnt": 5},
    "ebx7": {
        "bmi": 3, "avx2": 5, "bmi2": 8, "avx512f": 16, "avx512dq": 17, "avx512ifma": 21,
        "avx512cd": 28, "avx512bw": 30, "avx512vl": 31,
    },
    "ecx7": {"avx512vbmi": 1, "avx512vbmi2": 6, "gfni": 8, "avx512vnni": 11, "avx512bitalg": 12,
             "avx512vpopcntdq": 14},
    "eax7_1": {"avxvnni": 4, "avx512bf16": 5, "avxifma": 23},
    "edx7_1": {"avxvnniint8": 4},
}  # fmt: skip
_AARCH64 = {
    "hwcap": {"neon": 1, "fullfp16": 10, "dotprod": 20, "sve": 22},
    "hwcap2": {"sve2": 1, "i8mm": 13, "bf16": 14},
}
_RISCV64 = {"hwcap": {letter: ord(letter) - ord("a") for letter in "imafdcv"}}

BITS: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "x86_64": _X86,
    "aarch64": _AARCH64,
    "riscv64": _RISCV64,
}
"""By architecture and word, the bit of each feature."""

_SAVED = "saved"
_YMM, _ZMM = 0x6, 0xE6
"""What the system must save (`xgetbv`): upper halves of AVX registers, and those of AVX-512."""


def needs_ir(variants: Sequence[Isa]) -> str:
    """Return what `runtime/detect.c` declares: the number of variants, and the bits each needs."""
    words = _words(variants[0].architecture)
    rows: list[Constant] = []
    for isa in variants:
        masks = _masks(isa)
        rows.append(array([constant("i64", masks.get(word, 0)) for word in words]))
    return "\n".join(
        [
            f"@variants.count = constant {constant('i32', len(variants)).typed}",
            f"@variants.needs = constant {array(rows).typed}",
        ]
    )


def _words(architecture: str) -> tuple[str, ...]:
    """Return the words of a family, in the order of the C."""
    if architecture == "x86_64":
        return (*_X86, _SAVED)
    return ("hwcap", "hwcap2")


def _masks(isa: Isa) -> dict[str, int]:
    """Return the bits that a variant needs, by the word that they are in."""
    masks: dict[str, int] = {}
    for feature in sorted(isa.needs):
        word, bit = _bit(isa, feature)
        masks[word] = masks.get(word, 0) | 1 << bit
        if state := _state(feature) if isa.architecture == "x86_64" else 0:
            masks[_SAVED] = masks.get(_SAVED, 0) | state
    return masks


def _bit(isa: Isa, feature: str) -> tuple[str, int]:
    for word, bits in BITS[isa.architecture].items():
        if feature in bits:
            return word, bits[feature]
    raise UnsupportedError(
        f"'{isa.name}' cannot be a variant: how a processor reports '{feature}' is not known here"
    )


def _state(feature: str) -> int:
    if feature.startswith("avx512"):
        return _ZMM
    return _YMM if feature.startswith("avx") or feature in ("fma", "f16c") else 0


def instructions_ir(isa: Isa) -> str:
    """Return what `runtime/detect.c` calls on x86. An optimizer would not see what the bytes do."""
    if isa.architecture != "x86_64":
        return ""
    # push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid; mov [r8], eax; mov [r8+4], ebx;
    # mov [r8+8], ecx; mov [r8+12], edx; pop rbx; ret
    cpuid = "53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3"
    if isa.system is WINDOWS:  # push rbx; mov eax, ecx; mov ecx, edx; cpuid; and the same again
        cpuid = "53 89c8 89d1 0fa2 418900 41895804 41894808 4189500c 5b c3"
    # xor ecx, ecx; xgetbv; ret
    xgetbv = "31c9 0f01d0 c3"
    return "\n".join(
        (
            f"define void @processor.cpuid(i32, i32, ptr) naked {_bytes(cpuid)} {{ unreachable }}",
            f"define i32 @processor.xgetbv() naked {_bytes(xgetbv)} {{ unreachable }}",
        )
    )


def _bytes(hexadecimal: str) -> str:
    data = bytes.fromhex(hexadecimal)
    return f'prologue [{len(data)} x i8] c"{"".join(f"{chr(92)}{byte:02X}" for byte in data)}"'
