"""The names of registers: x0-x31 and f0-f31, and those of the calling convention."""

from __future__ import annotations

from fewbit.errors import UsageError

_NAMES = """
zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7
s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6
"""
_FLOAT_NAMES = """
ft0 ft1 ft2 ft3 ft4 ft5 ft6 ft7 fs0 fs1 fa0 fa1 fa2 fa3 fa4 fa5 fa6 fa7
fs2 fs3 fs4 fs5 fs6 fs7 fs8 fs9 fs10 fs11 ft8 ft9 ft10 ft11
"""
INTEGER: tuple[str, ...] = tuple(_NAMES.split())
FLOATING: tuple[str, ...] = tuple(_FLOAT_NAMES.split())

_INTEGER = {
    **{name: i for i, name in enumerate(INTEGER)},
    **{f"x{i}": i for i in range(32)},
    "fp": 8,
}
_FLOATING = {
    **{name: i for i, name in enumerate(FLOATING)},
    **{f"f{i}": i for i in range(32)},
}

Register = str | int
"""A register by name, or by number."""

RA, SP, GP, A0 = 1, 2, 3, 10


def number(register: Register, floating: bool = False) -> int:
    """Return the number of a register of one of the two files."""
    if isinstance(register, int):
        if 0 <= register < 32:
            return register
        raise UsageError(f"there is no register {register}", hint="registers are 0 to 31")
    names = _FLOATING if floating else _INTEGER
    if register in names:
        return names[register]
    other = register in (_INTEGER if floating else _FLOATING)
    wanted = "a floating-point" if floating else "an integer"
    hint = f"{wanted} register belongs here" if other else "for example a0, t1, x5, fa0, f12"
    raise UsageError(f"'{register}' is not {wanted} register", hint=hint)
