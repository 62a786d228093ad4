"""Words of instructions and back: `Instruction` is what a word says, with numbers for operands.

Immediates are the values meant (sign-extended; targets are distances in bytes; `lui` and `auipc`
have the upper 20 bits as a number from 0 to 0xFFFFF), so that simulators need no bit fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fewbit.errors import Error, Place, UsageError
from fewbit.riscv.instructions import Format, Kind, Spec, by_opcode, specs
from fewbit.riscv.registers import FLOATING, INTEGER

ROUNDING = ("rne", "rtz", "rdn", "rup", "rmm", "?", "?", "dyn")
DYNAMIC = 7


@dataclass(frozen=True)
class Instruction:
    """An instruction with its operands; those that its format lacks are 0."""

    mnemonic: str
    rd: int = 0
    rs1: int = 0
    rs2: int = 0
    rs3: int = 0
    imm: int = 0
    rounding: int = DYNAMIC
    """The rounding mode of floating-point instructions."""
    funct7: int = 0
    """The command of a coprocessor's instruction (`rocc`)."""
    funct3: int = 0
    """Which registers a coprocessor's instruction has: 4 rd, 2 rs1, 1 rs2."""


class IllegalInstructionError(Error):
    """A word that is no instruction."""


def encode(instruction: Instruction, xlen: int) -> int:
    """Encode an instruction as its 32-bit word."""
    spec = spec_of(instruction.mnemonic, xlen)
    word = spec.match | _immediate(spec, instruction.imm, xlen)
    fields = _FIELDS[spec.format]
    for name, at in (("rd", 7), ("rs1", 15), ("rs2", 20), ("rs3", 27)):
        if name in fields:
            word |= _unsigned(getattr(instruction, name), 5, name, spec) << at
    if spec.rounds:
        word |= _unsigned(instruction.rounding, 3, "the rounding mode", spec) << 12
    if spec.format is Format.ROCC:
        word |= _unsigned(instruction.funct7, 7, "funct7", spec) << 25
        word |= _unsigned(instruction.funct3, 3, "funct3", spec) << 12
    return word


@lru_cache(maxsize=1 << 16)
def decode(word: int, xlen: int) -> Instruction:
    """Decode a word; IllegalInstructionError if it is no instruction."""
    for spec in by_opcode(xlen).get(word & 0x7F, ()):
        if word & spec.mask == spec.match:
            return _decode(word, spec, xlen)
    raise IllegalInstructionError(f"0x{word:08x} is not an instruction of RV{xlen}")


def spec_of(mnemonic: str, xlen: int) -> Spec:
    spec = specs(xlen).get(mnemonic)
    if spec is None:
        raise UsageError(f"RV{xlen} has no instruction '{mnemonic}'")
    return spec


def disassemble(word: int, xlen: int, pc: int | None = None) -> str:
    """Return a line of assembly; targets are distances, or addresses where `pc` is given."""
    instruction = decode(word, xlen)
    spec = spec_of(instruction.mnemonic, xlen)
    if spec.format is Format.FENCE and instruction.imm == TOTAL_STORE_ORDER:
        return "fence.tso"
    operands = [_operand(name, instruction, spec, pc) for name in spec.format.split()]
    if spec.rounds and instruction.rounding != DYNAMIC:
        operands.append(ROUNDING[instruction.rounding])
    return f"{spec.mnemonic} {', '.join(operands)}".rstrip()


def disassemble_all(words: list[int], xlen: int, base: int = 0) -> str:
    """Return a listing: address, word, line."""
    lines: list[str] = []
    for pc, word in enumerate(words):
        at = base + 4 * pc
        try:
            text = disassemble(word, xlen, at)
        except IllegalInstructionError:
            text = f".word 0x{word:08x}"
        lines.append(f"{at:8x}: {word:08x}  {text}")
    return "\n".join(lines)


_FIELDS = {
    form: frozenset(form.replace("(", " ").replace(")", "").replace("zimm", "rs1").split())
    for form in Format
}


def _immediate(spec: Spec, value: int, xlen: int) -> int:
    match spec.format:
        case Format.I | Format.LOAD:
            return _signed(value, 12, spec) << 20
        case Format.STORE:
            bits = _signed(value, 12, spec)
            return bits >> 5 << 25 | (bits & 31) << 7
        case Format.SHIFT:
            wide = xlen == 64 and not spec.mnemonic.endswith("w")
            return _unsigned(value, 6 if wide else 5, "the shift", spec) << 20
        case Format.BRANCH:
            b = _even(value, 13, spec)
            return (b >> 12) << 31 | (b >> 5 & 63) << 25 | (b >> 1 & 15) << 8 | (b >> 11 & 1) << 7
        case Format.J:
            j = _even(value, 21, spec)
            return (
                (j >> 20) << 31
                | (j >> 1 & 1023) << 21
                | (j >> 11 & 1) << 20
                | (j >> 12 & 255) << 12
            )
        case Format.U:
            return _unsigned(value, 20, "the upper immediate", spec) << 12
        case Format.CSR | Format.CSRI:
            return _unsigned(value, 12, "the CSR", spec) << 20
        case Format.FENCE:
            return _unsigned(value, 12, "the order", spec) << 20
        case _:
            return 0


def _decode(word: int, spec: Spec, xlen: int) -> Instruction:
    fields = _FIELDS[spec.format]
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    rocc = spec.format is Format.ROCC
    return Instruction(
        spec.mnemonic,
        rd=rd if "rd" in fields else 0,
        rs1=rs1 if "rs1" in fields else 0,
        rs2=rs2 if "rs2" in fields else 0,
        rs3=word >> 27 if "rs3" in fields else 0,
        imm=_immediate_of(word, spec, xlen),
        rounding=_rounding_of(word, spec, xlen),
        funct7=word >> 25 if rocc else 0,
        funct3=word >> 12 & 7 if rocc else 0,
    )


def _rounding_of(word: int, spec: Spec, xlen: int) -> int:
    mode = word >> 12 & 7
    if not spec.rounds:
        return DYNAMIC
    if mode in (5, 6):
        raise IllegalInstructionError(
            f"0x{word:08x} is not an instruction of RV{xlen}: there is no rounding mode {mode}"
        )
    return mode


def _immediate_of(word: int, spec: Spec, xlen: int) -> int:
    signed = word - (1 << 32) if word >> 31 else word
    match spec.format:
        case Format.I | Format.LOAD:
            return signed >> 20
        case Format.STORE:
            return signed >> 25 << 5 | word >> 7 & 31
        case Format.SHIFT:
            return word >> 20 & (63 if xlen == 64 else 31)
        case Format.BRANCH:
            return (
                signed >> 31 << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 63) << 5
                | (word >> 8 & 15) << 1
            )  # fmt: skip
        case Format.J:
            return (
                signed >> 31 << 20 | (word >> 12 & 255) << 12 | (word >> 20 & 1) << 11
                | (word >> 21 & 1023) << 1
            )  # fmt: skip
        case Format.U:
            return word >> 12
        case Format.CSR | Format.CSRI | Format.FENCE:
            return word >> 20
        case _:
            return 0


def _operand(name: str, instruction: Instruction, spec: Spec, pc: int | None) -> str:
    if name in ("rd", "rs1", "rs2", "rs3"):
        register: int = getattr(instruction, name)
        return (FLOATING if name in spec.floats.split() else INTEGER)[register]
    if name == "imm(rs1)":
        return f"{instruction.imm}({INTEGER[instruction.rs1]})"
    if name in ("target", "jump"):
        return str(instruction.imm) if pc is None else f"0x{pc + instruction.imm:x}"
    if name == "upper":
        return f"0x{instruction.imm:x}"
    if name == "csr":
        return CSR_NAMES.get(instruction.imm, f"0x{instruction.imm:x}")
    if name == "order":
        return order_text(instruction.imm)
    if name == "zimm":
        return str(instruction.rs1)
    if name in ("funct7", "funct3"):
        return str(getattr(instruction, name))
    return str(instruction.imm)


ACCESSES = "wroi"
"""What a fence orders, by bit: memory written and read, output and input of devices."""
TOTAL_STORE_ORDER = 0x833


def order_of(before: str, after: str) -> int:
    """Return the order of `fence before, after`, each of some of the letters `iorw`."""
    sets = [sum(1 << ACCESSES.index(letter) for letter in given) for given in (before, after)]
    return sets[0] << 4 | sets[1]


def order_text(order: int) -> str:
    names = [
        "".join(letter for bit, letter in reversed([*enumerate(ACCESSES)]) if given >> bit & 1)
        for given in (order >> 4 & 15, order & 15)
    ]
    return ", ".join(name or "0" for name in names)


CSRS = {
    "fflags": 0x001, "frm": 0x002, "fcsr": 0x003, "cycle": 0xC00, "instret": 0xC02,
    "cycleh": 0xC80, "instreth": 0xC82, "mhartid": 0xF14, "mcycle": 0xB00, "minstret": 0xB02,
    "mcycleh": 0xB80, "minstreth": 0xB82, "mstatus": 0x300, "mtvec": 0x305, "mepc": 0x341,
    "mcause": 0x342, "mtval": 0x343,
}  # fmt: skip
CSR_NAMES = {value: name for name, value in CSRS.items()}


def _unsigned(value: int, bits: int, what: str, spec: Spec) -> int:
    if 0 <= value < 1 << bits:
        return value
    raise _misfit(spec, f"{what} is {value}, but must be 0 to {(1 << bits) - 1}")


def _signed(value: int, bits: int, spec: Spec) -> int:
    half = 1 << bits - 1
    if -half <= value < half:
        return value & (1 << bits) - 1
    raise _misfit(spec, f"the immediate is {value}, but must be {-half} to {half - 1}")


def _even(value: int, bits: int, spec: Spec) -> int:
    if value % 2:
        raise _misfit(spec, f"the target is {value} bytes away, which is odd")
    return _signed(value, bits, spec)


def _misfit(spec: Spec, what: str) -> UsageError:
    return UsageError(f"{spec.mnemonic}: {what}", place=Place(op=spec.mnemonic))


def kind_of(instruction: Instruction, xlen: int) -> Kind:
    return spec_of(instruction.mnemonic, xlen).kind
