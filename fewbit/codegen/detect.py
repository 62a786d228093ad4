"""Which variants the processor executes, asked of it at run time: `variants.fitting`, in LLVM IR.

A feature is a bit of a word. On x86 words are registers of `cpuid`, and the state that the system
saves for a thread: AVX registers that it does not save are as good as none. On other processors
the system tells them, through `getauxval` of libc. A variant fits where all bits are set that it
needs, as `Isa.needs` lists them.

LLVM has no intrinsic for `cpuid`, and llvmlite no assembler but for the machine that it runs on:
the two x86 instructions are given as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewbit.errors import UnsupportedError
from fewbit.toolchain.isa import Isa

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

_YMM, _ZMM = 0x6, 0xE6
"""What the system must save (`xgetbv`): halves of vectors, and the registers of AVX-512."""


def detect_ir(variants: Sequence[Isa]) -> str:
    """`i32 @variants.fitting()`: bit `i` says whether the processor executes variant `i`."""
    architecture = variants[0].architecture
    lines = [*_WORDS[architecture]]
    total = "0"
    for i, isa in enumerate(variants):
        fits = "true"
        for number, (word, mask) in enumerate(_masks(isa).items()):
            at = f"%v{i}_{number}"
            lines += [
                f"{at}_found = and i64 %{word}, {mask}",
                f"{at}_all = icmp eq i64 {at}_found, {mask}",
                f"{at} = and i1 {fits}, {at}_all",
            ]
            fits = at
        lines += [f"%bit{i} = select i1 {fits}, i32 {1 << i}, i32 0"]
        lines += [f"%sum{i} = or i32 {total}, %bit{i}"]
        total = f"%sum{i}"
    body = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
    define = f"define i32 @variants.fitting() {{\n{body}\n  ret i32 {total}\n}}"
    return f"{_DECLARED[architecture]}\n\n{define}\n"


def _masks(isa: Isa) -> dict[str, int]:
    """The bits that a variant needs, by the word that they are in."""
    masks: dict[str, int] = {}
    for feature in sorted(isa.needs):
        word, bit = _bit(isa, feature)
        masks[word] = masks.get(word, 0) | 1 << bit
        if state := _state(feature) if isa.architecture == "x86_64" else 0:
            masks["saved"] = masks.get("saved", 0) | state
    return masks


def _bit(isa: Isa, feature: str) -> tuple[str, int]:
    for word, bits in BITS[isa.architecture].items():
        if feature in bits:
            return word, bits[feature]
    raise UnsupportedError(
        f"'{isa.name}' cannot be a variant: how a processor tells of '{feature}' is not known here"
    )


def _state(feature: str) -> int:
    if feature.startswith("avx512"):
        return _ZMM
    return _YMM if feature.startswith("avx") or feature in ("fma", "f16c") else 0


def instructions_ir(architecture: str) -> str:
    """What `detect_ir` calls of its own. An optimizer would not see what the bytes do."""
    if architecture != "x86_64":
        return ""
    # push rbx; mov r8, rdx; mov eax, edi; mov ecx, esi; cpuid; mov [r8], eax; mov [r8+4], ebx;
    # mov [r8+8], ecx; mov [r8+12], edx; pop rbx; ret
    cpuid = "53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3"
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


def _x86_words() -> list[str]:
    """Registers of cpuid as i64, 0 where it does not know the leaf, and what is saved."""

    def cpuid(name: str, leaf: int, sub: int = 0) -> list[str]:
        lines = [
            f"%{name} = alloca [4 x i32]",
            f"call void @processor.cpuid(i32 {leaf}, i32 {sub}, ptr %{name})",
        ]
        for i, register in enumerate(("eax", "ebx", "ecx", "edx")):
            lines += [
                f"%{name}_{register}_at = getelementptr i32, ptr %{name}, i64 {i}",
                f"%{name}_{register} = load i32, ptr %{name}_{register}_at",
            ]
        return lines

    def word(name: str, register: str, known: str) -> list[str]:
        return [
            f"%{name}_known = select i1 {known}, i32 %{register}, i32 0",
            f"%{name} = zext i32 %{name}_known to i64",
        ]

    return [
        *cpuid("leaf0", 0),
        *cpuid("leaf1", 1),
        *cpuid("leaf7", 7),
        *cpuid("leaf7_1", 7, 1),
        *cpuid("above0", 0x80000000),
        *cpuid("above1", 0x80000001),
        "%has7 = icmp uge i32 %leaf0_eax, 7",
        "%subs7 = icmp uge i32 %leaf7_eax, 1",
        "%has7_1 = and i1 %has7, %subs7",
        f"%has_above1 = icmp ugt i32 %above0_eax, {0x80000000}",
        *word("ecx1", "leaf1_ecx", "true"),
        *word("ebx7", "leaf7_ebx", "%has7"),
        *word("ecx7", "leaf7_ecx", "%has7"),
        *word("eax7_1", "leaf7_1_eax", "%has7_1"),
        *word("edx7_1", "leaf7_1_edx", "%has7_1"),
        *word("ecx_extended", "above1_ecx", "%has_above1"),
        # Without OSXSAVE, xgetbv is an instruction that does not exist.
        f"%osxsave = and i64 %ecx1, {1 << 27}",
        "%saves = icmp ne i64 %osxsave, 0",
        "br i1 %saves, label %ask, label %asked_not",
        "asked_not:",
        "br label %words",
        "ask:",
        "%xcr0 = call i32 @processor.xgetbv()",
        "br label %words",
        "words:",
        "%saved_bits = phi i32 [0, %asked_not], [%xcr0, %ask]",
        "%saved = zext i32 %saved_bits to i64",
    ]


_AT_HWCAP, _AT_HWCAP2 = 16, 26
_WORDS = {
    "x86_64": _x86_words(),
    "aarch64": [
        f"%hwcap = call i64 @getauxval(i64 {_AT_HWCAP})",
        f"%hwcap2 = call i64 @getauxval(i64 {_AT_HWCAP2})",
    ],
    "riscv64": [f"%hwcap = call i64 @getauxval(i64 {_AT_HWCAP})"],
}
_DECLARED = {
    "x86_64": "declare void @processor.cpuid(i32, i32, ptr)\ndeclare i32 @processor.xgetbv()",
    "aarch64": "declare i64 @getauxval(i64)",
    "riscv64": "declare i64 @getauxval(i64)",
}
