"""A small assembler: one method for each mnemonic, labels, and the usual pseudo-instructions.

    assembler = Assembler(32)
    assembler.symbol("sum")               # a function that other objects can call
    loop = assembler.fresh("loop")
    assembler.label(loop)
    assembler.lw("t0", 0, "a0")           # operands in the order of assembly: lw t0, 0(a0)
    assembler.add("a1", "a1", "t0")
    assembler.bne("a0", "a2", loop)
    assembler.ret()

Dots in mnemonics are underscores (`fadd_s`), Python's words have one behind (`and_`, `or_`).
`words` gives finished code; `object` an object file, in which calls and addresses of symbols that
are not defined here are left to the linker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fewbit.errors import SymbolError, UsageError
from fewbit.riscv import object_file
from fewbit.riscv.encoding import CSRS, ROUNDING, Instruction, encode, order_of, spec_of
from fewbit.riscv.instructions import Spec, specs
from fewbit.riscv.object_file import FloatAbi, Relocation
from fewbit.riscv.registers import Register, number

Operand = str | int
BRANCH, JUMP, CALL, HIGH, LOW = 16, 17, 19, 23, 24
"""Relocations of the RISC-V ELF specification: of conditional branches, `jal`, calls, addresses."""


@dataclass(frozen=True)
class Fixup:
    """A place in the code that a label decides."""

    index: int
    relocation: int
    label: str


class Assembler:
    """Instructions of one word size, in order."""

    def __init__(self, xlen: int) -> None:
        if xlen not in (32, 64):
            raise UsageError(f"there is no RV{xlen} here", hint="32 or 64")
        self.xlen = xlen
        self.labels: dict[str, int] = {}
        self.symbols: list[str] = []
        self._items: list[Instruction | int] = []
        self._fixups: list[Fixup] = []
        self._fresh = 0

    def __len__(self) -> int:
        """Return how many words there are so far."""
        return len(self._items)

    def __getattr__(self, name: str) -> Callable[..., None]:
        mnemonic = name.rstrip("_").replace("_", ".")
        if name.startswith("__") or mnemonic not in specs(self.__dict__.get("xlen", 64)):
            raise AttributeError(f"RV{self.__dict__.get('xlen', '')} has no '{name}'")

        def emit(*operands: Operand, rounding: str = "dyn") -> None:
            self.emit(mnemonic, *operands, rounding=rounding)

        return emit

    def label(self, name: str) -> str:
        """Name this place."""
        if name in self.labels:
            raise SymbolError(f"the label '{name}' is defined twice")
        self.labels[name] = len(self._items)
        return name

    def symbol(self, name: str) -> str:
        """Name this place, as a function that other objects see."""
        self.symbols.append(name)
        return self.label(name)

    def fresh(self, name: str) -> str:
        """Return a label that is not taken: names of loops need not be invented."""
        self._fresh += 1
        return f".{name}.{self._fresh}"

    def emit(self, mnemonic: str, *operands: Operand, rounding: str = "dyn") -> None:
        """Add an instruction, operands as in assembly; targets are labels or distances."""
        spec = spec_of(mnemonic, self.xlen)
        wanted = spec.format.replace("(", " ").replace(")", "").split()
        if len(wanted) != len(operands):
            raise UsageError(
                f"{mnemonic} has {len(wanted)} operands ({', '.join(wanted)}), not {len(operands)}"
            )
        fields: dict[str, int] = {}
        for name, operand in zip(wanted, operands, strict=True):
            if name in ("target", "jump") and isinstance(operand, str):
                self._fix(BRANCH if name == "target" else JUMP, operand)
                continue
            field, value = _field(spec, name, operand)
            fields[field] = value
        if spec.rounds:
            fields["rounding"] = ROUNDING.index(rounding)
        instruction = Instruction(mnemonic, **fields)
        encode(instruction, self.xlen)  # says now, not later, what does not fit
        self._items.append(instruction)

    def word(self, value: int) -> None:
        """Add any word: a constant, or an instruction that we do not know."""
        self._items.append(value & 0xFFFFFFFF)

    def li(self, rd: Register, value: int) -> None:
        """Load any constant of the word size, signed or unsigned."""
        bits = self.xlen
        if not -(1 << bits - 1) <= value < 1 << bits:
            raise UsageError(f"li: {value} does not fit {bits} bits")
        value = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        self._constant(number(rd), value)

    def _constant(self, rd: int, value: int) -> None:
        if -2048 <= value < 2048:
            return self.emit("addi", rd, 0, value)
        low = (value + 2048) % 4096 - 2048
        if -(1 << 31) <= value < 1 << 31:
            self.emit("lui", rd, (value - low) >> 12 & 0xFFFFF)
            if low:
                self.emit("addi" if self.xlen == 32 else "addiw", rd, rd, low)
            return None
        upper, shift = (value - low) >> 12, 12
        while upper % 2 == 0:
            upper, shift = upper >> 1, shift + 1
        self._constant(rd, upper)
        self.emit("slli", rd, rd, shift)
        if low:
            self.emit("addi", rd, rd, low)
        return None

    def mv(self, rd: Register, rs: Register) -> None:
        self.emit("addi", rd, rs, 0)

    def nop(self) -> None:
        self.emit("addi", 0, 0, 0)

    def neg(self, rd: Register, rs: Register) -> None:
        self.emit("sub", rd, 0, rs)

    def j(self, target: Operand) -> None:
        self.emit("jal", 0, target)

    def beqz(self, rs: Register, target: Operand) -> None:
        self.emit("beq", rs, 0, target)

    def bnez(self, rs: Register, target: Operand) -> None:
        self.emit("bne", rs, 0, target)

    def jr(self, rs: Register) -> None:
        self.emit("jalr", 0, rs, 0)

    def ret(self) -> None:
        self.jr("ra")

    def call(self, symbol: str) -> None:
        """Call a function that is anywhere, of this object or another."""
        self._fix(CALL, symbol)
        self.emit("auipc", "ra", 0)
        self.emit("jalr", "ra", "ra", 0)

    def la(self, rd: Register, symbol: str) -> None:
        """Load the address of a symbol, of this object or another."""
        high = self.label(self.fresh("high"))
        self._fix(HIGH, symbol)
        self.emit("auipc", rd, 0)
        self._fix(LOW, high)
        self.emit("addi", rd, rd, 0)

    def fence(self, before: str = "iorw", after: str = "iorw") -> None:
        """Order memory accesses: those of the kinds `before` are done before those of `after`."""
        self.emit("fence", order_of(before, after))

    def rocc(self, funct: int, rs1: Register, rs2: Register, rd: Register = 0) -> None:
        """Add a coprocessor's command (custom-3); it has a result if `rd` is not x0."""
        self.emit("rocc", funct, 3 | (4 if number(rd) else 0), rd, rs1, rs2)

    def mark(self, rs: Register) -> None:
        """Tell the simulator that what follows is to be counted under the number in `rs`.

        It is a hint (its result goes nowhere), so that every processor executes it as nothing.
        """
        self.emit("slti", 0, rs, MARK)

    def words(self) -> list[int]:
        """Return the code, with every label resolved."""
        items = list(self._items)
        for fixup in self._fixups:
            target = self.labels.get(fixup.label)
            if target is None:
                raise SymbolError(
                    f"the label '{fixup.label}' is not defined",
                    hint="leave symbols of other objects to a linker: `object` instead of `words`",
                )
            self._resolve(items, fixup, target)
        return [self._word(item) for item in items]

    def code(self) -> bytes:
        """Return the words as bytes."""
        return b"".join(word.to_bytes(4, "little") for word in self.words())

    def object(self, float_abi: FloatAbi = "soft") -> bytes:
        """Return a relocatable ELF object; its float ABI must be that of what it is linked with."""
        items = list(self._items)
        left: list[Relocation] = []
        names = {fixup.label for fixup in self._fixups if fixup.relocation == LOW}
        for fixup in self._fixups:
            inside = fixup.label in self.labels and fixup.label not in self.symbols
            if inside and fixup.relocation in (BRANCH, JUMP):
                self._resolve(items, fixup, self.labels[fixup.label])
                continue
            left.append(Relocation(4 * fixup.index, fixup.relocation, fixup.label))
            names.add(fixup.label)
        text = b"".join(self._word(item).to_bytes(4, "little") for item in items)
        defined = {
            name: 4 * at
            for name, at in self.labels.items()
            if name in names or name in self.symbols
        }
        return object_file.write(self.xlen, text, defined, set(self.symbols), left, float_abi)

    def _fix(self, relocation: int, label: str) -> None:
        self._fixups.append(Fixup(len(self._items), relocation, label))

    def _resolve(self, items: list[Instruction | int], fixup: Fixup, target: int) -> None:
        distance = 4 * (target - fixup.index)
        if fixup.relocation in (BRANCH, JUMP):
            items[fixup.index] = _with(items[fixup.index], distance)
        elif fixup.relocation in (CALL, HIGH):
            low = (distance + 2048) % 4096 - 2048
            items[fixup.index] = _with(items[fixup.index], (distance - low) >> 12 & 0xFFFFF)
            items[fixup.index + 1] = _with(items[fixup.index + 1], low)

    def _word(self, item: Instruction | int) -> int:
        return item if isinstance(item, int) else encode(item, self.xlen)


MARK = 0x7E7
"""The immediate of the hint that `mark` is."""


def _with(item: Instruction | int, imm: int) -> Instruction:
    assert isinstance(item, Instruction)
    return replace(item, imm=imm)


def _field(spec: Spec, name: str, operand: Operand) -> tuple[str, int]:
    if name in ("rd", "rs1", "rs2", "rs3"):
        return name, number(operand, name in spec.floats.split())
    if name == "csr" and isinstance(operand, str):
        return "imm", CSRS[operand]
    if isinstance(operand, str):
        raise UsageError(f"{spec.mnemonic}: '{operand}' stands where a number belongs")
    if name == "zimm":
        return "rs1", operand
    return (name if name in ("funct7", "funct3") else "imm"), operand
