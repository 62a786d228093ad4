"""Every instruction that we know, as one table: its fixed bits, its operands, its class.

RV32 and RV64 with I, M, F, D, the CSR instructions, the ten dot products of MiCo (custom-0) and
the coprocessor's commands (custom-3). Encoder, decoder, assembler and both simulators read this
table, so that an instruction is added in one place and its semantics in two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Format(StrEnum):
    """The order of operands in assembly, which also tells where they are in the word."""

    R = "rd rs1 rs2"
    R2 = "rd rs1"
    R4 = "rd rs1 rs2 rs3"
    I = "rd rs1 imm"  # noqa: E741 - the manual's letter
    SHIFT = "rd rs1 shamt"
    LOAD = "rd imm(rs1)"
    STORE = "rs2 imm(rs1)"
    BRANCH = "rs1 rs2 target"
    U = "rd upper"
    J = "rd jump"
    CSR = "rd csr rs1"
    CSRI = "rd csr zimm"
    FENCE = "order"
    ROCC = "funct7 funct3 rd rs1 rs2"
    NONE = ""


class Kind(StrEnum):
    """Classes of instructions, as cycle models tell them apart."""

    ALU = "alu"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    LOAD = "load"
    STORE = "store"
    BRANCH = "branch"
    JUMP = "jump"
    FLOAT = "float"
    FLOAT_DIVIDE = "float-divide"
    FLOAT_LOAD = "float-load"
    FLOAT_STORE = "float-store"
    DOT = "dot"
    COPROCESSOR = "coprocessor"
    SYSTEM = "system"


@dataclass(frozen=True)
class Spec:
    """One instruction: words with `word & mask == match` are it."""

    mnemonic: str
    format: Format
    kind: Kind
    match: int
    mask: int
    xlens: tuple[int, ...] = (32, 64)
    floats: str = ""
    """Which of its register operands are floating-point registers."""
    rounds: bool = False
    """Whether it has a rounding mode (in the place of funct3)."""


BOTH, WIDE = (32, 64), (64,)
CUSTOM_0, CUSTOM_3 = 0x0B, 0x7B
OPCODE, FUNCT3, FUNCT7, RS2 = 0x7F, 0x7000, 0xFE000000, 0x1F00000

DOT_WIDTHS = tuple((a, b) for a in (8, 4, 2, 1) for b in (8, 4, 2, 1) if a >= b)
"""The widths of the two operands of MiCo's dot products: rs1's is never the lesser."""


def _integer() -> list[Spec]:
    def r(name: str, f3: int, f7: int, kind: Kind, opcode: int = 0x33) -> Spec:
        xlens = BOTH if opcode == 0x33 else WIDE
        match = f7 << 25 | f3 << 12 | opcode
        return Spec(name, Format.R, kind, match, FUNCT7 | FUNCT3 | OPCODE, xlens)

    def i(name: str, f3: int, opcode: int, kind: Kind, xlens: tuple[int, ...] = BOTH) -> Spec:
        form = Format.LOAD if opcode == 0x03 else Format.I
        return Spec(name, form, kind, f3 << 12 | opcode, FUNCT3 | OPCODE, xlens)

    def s(name: str, form: Format, f3: int, opcode: int, kind: Kind, xlens: tuple[int, ...] = BOTH):
        return Spec(name, form, kind, f3 << 12 | opcode, FUNCT3 | OPCODE, xlens)

    def shift(name: str, f3: int, top: int, opcode: int, bits: int, xlens: tuple[int, ...]) -> Spec:
        mask = (1 << 32) - (1 << 20 + bits) | FUNCT3 | OPCODE
        return Spec(name, Format.SHIFT, Kind.ALU, top << 26 | f3 << 12 | opcode, mask, xlens)

    alu, load, multiply, divide = Kind.ALU, Kind.LOAD, Kind.MULTIPLY, Kind.DIVIDE
    return [
        Spec("lui", Format.U, alu, 0x37, OPCODE),
        Spec("auipc", Format.U, alu, 0x17, OPCODE),
        Spec("jal", Format.J, Kind.JUMP, 0x6F, OPCODE),
        i("jalr", 0, 0x67, Kind.JUMP),
        *(s(name, Format.BRANCH, f3, 0x63, Kind.BRANCH) for name, f3 in
          zip(("beq", "bne", "blt", "bge", "bltu", "bgeu"), (0, 1, 4, 5, 6, 7), strict=True)),
        *(i(name, f3, 0x03, load, WIDE if name in ("ld", "lwu") else BOTH)
          for f3, name in enumerate(("lb", "lh", "lw", "ld", "lbu", "lhu", "lwu"))),
        *(s(name, Format.STORE, f3, 0x23, Kind.STORE, WIDE if name == "sd" else BOTH)
          for f3, name in enumerate(("sb", "sh", "sw", "sd"))),
        *(i(name, f3, 0x13, alu) for name, f3 in
          (("addi", 0), ("slti", 2), ("sltiu", 3), ("xori", 4), ("ori", 6), ("andi", 7))),
        *(shift(name, f3, top, 0x13, bits, (xlen,)) for name, f3, top in
          (("slli", 1, 0), ("srli", 5, 0), ("srai", 5, 0x10))
          for bits, xlen in ((5, 32), (6, 64))),
        *(r(name, f3, 0, alu) for f3, name in
          enumerate(("add", "sll", "slt", "sltu", "xor", "srl", "or", "and"))),
        r("sub", 0, 0x20, alu),
        r("sra", 5, 0x20, alu),
        *(r(name, f3, 1, multiply) for f3, name in enumerate(("mul", "mulh", "mulhsu", "mulhu"))),
        *(r(name, f3, 1, divide) for f3, name in enumerate(("div", "divu", "rem", "remu"), 4)),
        i("addiw", 0, 0x1B, alu, WIDE),
        shift("slliw", 1, 0, 0x1B, 5, WIDE),
        shift("srliw", 5, 0, 0x1B, 5, WIDE),
        shift("sraiw", 5, 0x10, 0x1B, 5, WIDE),
        *(r(name, f3, f7, alu, 0x3B) for name, f3, f7 in
          (("addw", 0, 0), ("subw", 0, 0x20), ("sllw", 1, 0), ("srlw", 5, 0), ("sraw", 5, 0x20))),
        r("mulw", 0, 1, multiply, 0x3B),
        *(r(name, f3, 1, divide, 0x3B) for f3, name in
          enumerate(("divw", "divuw", "remw", "remuw"), 4)),
    ]  # fmt: skip


def _system() -> list[Spec]:
    csr = ("csrrw", "csrrs", "csrrc")
    return [
        Spec("fence", Format.FENCE, Kind.SYSTEM, 0x0000000F, FUNCT3 | OPCODE),
        Spec("ecall", Format.NONE, Kind.SYSTEM, 0x00000073, 0xFFFFFFFF),
        Spec("ebreak", Format.NONE, Kind.SYSTEM, 0x00100073, 0xFFFFFFFF),
        *(Spec(name, Format.CSR, Kind.SYSTEM, f3 << 12 | 0x73, FUNCT3 | OPCODE)
          for f3, name in enumerate(csr, 1)),
        *(Spec(f"{name}i", Format.CSRI, Kind.SYSTEM, f3 << 12 | 0x73, FUNCT3 | OPCODE)
          for f3, name in enumerate(csr, 5)),
    ]  # fmt: skip


def _floating() -> list[Spec]:
    specs: list[Spec] = []

    def add(
        name: str, form: Format, f7: int, f3: int | None, rs2: int | None, floats: str,
        kind: Kind = Kind.FLOAT, xlens: tuple[int, ...] = BOTH,
    ) -> None:  # fmt: skip
        match, mask = f7 << 25 | 0x53, FUNCT7 | OPCODE
        if f3 is not None:
            match, mask = match | f3 << 12, mask | FUNCT3
        if rs2 is not None:
            match, mask = match | rs2 << 20, mask | RS2
        specs.append(Spec(name, form, kind, match, mask, xlens, floats, rounds=f3 is None))

    integers = (("w", 0, BOTH), ("wu", 1, BOTH), ("l", 2, WIDE), ("lu", 3, WIDE))
    kinds = (("s", 2, "flw", "fsw"), ("d", 3, "fld", "fsd"))
    for code, (t, width, load, store) in enumerate(kinds):
        memory = width << 12
        specs.append(
            Spec(load, Format.LOAD, Kind.FLOAT_LOAD, memory | 0x07, FUNCT3 | OPCODE, BOTH, "rd")
        )
        specs.append(
            Spec(store, Format.STORE, Kind.FLOAT_STORE, memory | 0x27, FUNCT3 | OPCODE, BOTH, "rs2")
        )
        for name, opcode in (("fmadd", 0x43), ("fmsub", 0x47), ("fnmsub", 0x4B), ("fnmadd", 0x4F)):
            specs.append(Spec(f"{name}.{t}", Format.R4, Kind.FLOAT, code << 25 | opcode,
                              0x06000000 | OPCODE, BOTH, "rd rs1 rs2 rs3", True))  # fmt: skip
        every = "rd rs1 rs2"
        add(f"fadd.{t}", Format.R, 0x00 | code, None, None, every)
        add(f"fsub.{t}", Format.R, 0x04 | code, None, None, every)
        add(f"fmul.{t}", Format.R, 0x08 | code, None, None, every)
        add(f"fdiv.{t}", Format.R, 0x0C | code, None, None, every, Kind.FLOAT_DIVIDE)
        add(f"fsqrt.{t}", Format.R2, 0x2C | code, None, 0, "rd rs1", Kind.FLOAT_DIVIDE)
        for f3, name in enumerate(("fsgnj", "fsgnjn", "fsgnjx")):
            add(f"{name}.{t}", Format.R, 0x10 | code, f3, None, every)
        for f3, name in enumerate(("fmin", "fmax")):
            add(f"{name}.{t}", Format.R, 0x14 | code, f3, None, every)
        for f3, name in enumerate(("fle", "flt", "feq")):
            add(f"{name}.{t}", Format.R, 0x50 | code, f3, None, "rs1 rs2")
        add(f"fclass.{t}", Format.R2, 0x70 | code, 1, 0, "rs1")
        for name, rs2, xlens in integers:
            add(f"fcvt.{name}.{t}", Format.R2, 0x60 | code, None, rs2, "rs1", xlens=xlens)
            add(f"fcvt.{t}.{name}", Format.R2, 0x68 | code, None, rs2, "rd", xlens=xlens)
    add("fcvt.s.d", Format.R2, 0x20, None, 1, "rd rs1")
    add("fcvt.d.s", Format.R2, 0x21, None, 0, "rd rs1")
    add("fmv.x.w", Format.R2, 0x70, 0, 0, "rs1")
    add("fmv.w.x", Format.R2, 0x78, 0, 0, "rd")
    add("fmv.x.d", Format.R2, 0x71, 0, 0, "rs1", xlens=WIDE)
    add("fmv.d.x", Format.R2, 0x79, 0, 0, "rd", xlens=WIDE)
    return specs


def _custom() -> list[Spec]:
    first, second = {8: 1, 4: 2, 2: 4, 1: 8}, {8: 4, 4: 5, 2: 6, 1: 7}
    dots = [
        Spec(f"dot{a}x{b}", Format.R, Kind.DOT, first[a] << 25 | second[b] << 12 | CUSTOM_0,
             FUNCT7 | FUNCT3 | OPCODE)
        for a, b in DOT_WIDTHS
    ]  # fmt: skip
    return [*dots, Spec("rocc", Format.ROCC, Kind.COPROCESSOR, CUSTOM_3, OPCODE)]


@cache
def specs(xlen: int) -> dict[str, Spec]:
    """Return the instructions of a word size, by mnemonic."""
    every = _integer() + _system() + _floating() + _custom()
    return {spec.mnemonic: spec for spec in every if xlen in spec.xlens}


@cache
def by_opcode(xlen: int) -> dict[int, tuple[Spec, ...]]:
    """Return the same by the low seven bits, for the decoder."""
    table: dict[int, tuple[Spec, ...]] = {}
    for spec in specs(xlen).values():
        opcode = spec.match & OPCODE
        table[opcode] = (*table.get(opcode, ()), spec)
    return table
