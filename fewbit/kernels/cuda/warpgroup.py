"""The text of Hopper's warpgroup matmul, which has a register operand for every accumulator.

`wgmma` multiplies 64 rows by n columns with 128 threads; each of them holds n / 2 accumulators, and
all of them are operands of one instruction. Such a text is written by a program.
"""

from __future__ import annotations

_TYPES = {
    "f16": ("k16", "f32.f16.f16", ", 1, 1, 0, {transposed}"),
    "bf16": ("k16", "f32.bf16.bf16", ", 1, 1, 0, {transposed}"),
    "tf32": ("k8", "f32.tf32.tf32", ", 1, 1"),
    "i8": ("k32", "s32.s8.s8", ""),
}


def wgmma(name: str, dtype: str, columns: int, *, transposed: bool = False) -> str:
    """Return `name(sums, a, b, add)`: sums = a b + (add ? sums : 0), operands in shared memory."""
    depth, types, suffix = _TYPES[dtype]
    count = columns // 2
    letter, kind = ("r", "int") if dtype == "i8" else ("f", "float")
    return _text(
        f"{name}({kind} (&d)[{count}], u64 a, u64 b, int add)",
        count,
        f"wgmma.mma_async.sync.aligned.m64n{columns}{depth}.{types}",
        f"%{count}, %{count + 1}, add{suffix.format(transposed=int(transposed))}",
        f"%{count + 2}",
        [f'"+{letter}"(d[{i}])' for i in range(count)],
        ['"l"(a)', '"l"(b)', '"r"(add)'],
    )


def wgmma_from_registers(name: str, dtype: str, columns: int, *, transposed: bool = False) -> str:
    """Return `name(sums, a[4], b, add)`: the same with a in registers."""
    depth, types, _ = _TYPES[dtype]
    count = columns // 2
    left = ", ".join(f"%{count + i}" for i in range(4))
    return _text(
        f"{name}(float (&d)[{count}], const u32 (&a)[4], u64 b, int add)",
        count,
        f"wgmma.mma_async.sync.aligned.m64n{columns}{depth}.{types}",
        f"{{{left}}}, %{count + 4}, add, 1, 1, {int(transposed)}",
        f"%{count + 5}",
        [f'"+f"(d[{i}])' for i in range(count)],
        [*(f'"r"(a[{i}])' for i in range(4)), '"l"(b)', '"r"(add)'],
    )


def _text(
    head: str, count: int, op: str, right: str, add: str, outputs: list[str], inputs: list[str]
) -> str:
    sums = ", ".join(f"%{i}" for i in range(count))
    return (
        f"__device__ __forceinline__ void {head} {{\n"
        f'  asm volatile("{{\\n.reg .pred add;\\nsetp.ne.b32 add, {add}, 0;\\n"\n'
        f'    "{op} {{{sums}}}, {right};\\n}}"\n'
        f"    : {', '.join(outputs)}\n    : {', '.join(inputs)});\n}}\n"
    )
