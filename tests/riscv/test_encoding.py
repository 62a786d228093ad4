import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import UsageError
from fewbit.riscv.encoding import IllegalInstructionError, Instruction, decode, disassemble, encode
from fewbit.riscv.instructions import DOT_WIDTHS, Format, Spec, specs

KNOWN = {
    "add a0, a1, a2": 0x00C58533,
    "addi sp, sp, -16": 0xFF010113,
    "lui t0, 0x12345": 0x123452B7,
    "jal ra, 8": 0x008000EF,
    "jalr zero, ra, 0": 0x00008067,
    "beq a0, a1, -4": 0xFEB50EE3,
    "lw a0, 12(sp)": 0x00C12503,
    "sw a0, -4(s0)": 0xFEA42E23,
    "srai a0, a0, 31": 0x41F55513,
    "mul a0, a1, a2": 0x02C58533,
    "divu a0, a1, a2": 0x02C5D533,
    "fadd.s fa0, fa1, fa2": 0x00C5F553,
    "fadd.d fa0, fa1, fa2, rtz": 0x02C59553,
    "fmadd.s fa0, fa1, fa2, fa3": 0x68C5F543,
    "fcvt.w.s a0, fa0, rtz": 0xC0051553,
    "flw fa0, 0(a0)": 0x00052507,
    "csrrs a0, frm, zero": 0x00202573,
    "ecall": 0x00000073,
    "ebreak": 0x00100073,
    "fence iorw, iorw": 0x0FF0000F,
    "fence rw, w": 0x0310000F,
    "fence.tso": 0x8330000F,
    "rocc 2, 3, zero, a0, a1": 0x04B5307B,
}
DOTS = {
    (8, 8): 0x02C5C50B,
    (8, 4): 0x02C5D50B,
    (8, 2): 0x02C5E50B,
    (8, 1): 0x02C5F50B,
    (4, 4): 0x04C5D50B,
    (4, 2): 0x04C5E50B,
    (4, 1): 0x04C5F50B,
    (2, 2): 0x08C5E50B,
    (2, 1): 0x08C5F50B,
    (1, 1): 0x10C5F50B,
}


@pytest.mark.parametrize(("text", "word"), KNOWN.items())
def test_words_of_the_manual(text: str, word: int) -> None:
    assert disassemble(word, 32) == text
    assert encode(decode(word, 32), 32) == word


def test_words_of_64_bits() -> None:
    assert disassemble(0x03F51513, 64) == "slli a0, a0, 63"
    assert disassemble(0x00C5853B, 64) == "addw a0, a1, a2"
    assert disassemble(0xFE053F03, 64) == "ld t5, -32(a0)"


@pytest.mark.parametrize("xlen", [32, 64])
def test_the_ten_dot_products(xlen: int) -> None:
    assert tuple(DOTS) == DOT_WIDTHS
    for (a, b), word in DOTS.items():
        assert encode(Instruction(f"dot{a}x{b}", rd=10, rs1=11, rs2=12), xlen) == word
        assert word & 0x7F == 0x0B
        assert disassemble(word, xlen) == f"dot{a}x{b} a0, a1, a2"


def immediates(spec: Spec, xlen: int) -> st.SearchStrategy[int]:
    match spec.format:
        case Format.I | Format.LOAD | Format.STORE:
            return st.integers(-2048, 2047)
        case Format.SHIFT:
            return st.integers(0, 31 if xlen == 32 or spec.mnemonic.endswith("w") else 63)
        case Format.BRANCH:
            return st.integers(-2048, 2047).map(lambda n: 2 * n)
        case Format.J:
            return st.integers(-(1 << 19), (1 << 19) - 1).map(lambda n: 2 * n)
        case Format.U:
            return st.integers(0, (1 << 20) - 1)
        case Format.CSR | Format.CSRI | Format.FENCE:
            return st.integers(0, 4095)
        case _:
            return st.just(0)


@st.composite
def instructions(draw: st.DrawFn, xlen: int) -> Instruction:
    spec = draw(st.sampled_from(list(specs(xlen).values())))
    fields = spec.format.replace("(", " ").replace(")", "").split()
    register = st.integers(0, 31)
    return Instruction(
        spec.mnemonic,
        **{name: draw(register) for name in ("rd", "rs1", "rs2", "rs3") if name in fields},
        **({"rs1": draw(register)} if "zimm" in fields else {}),
        imm=draw(immediates(spec, xlen)),
        rounding=draw(st.sampled_from([0, 1, 2, 3, 4, 7])) if spec.rounds else 7,
        funct7=draw(st.integers(0, 127)) if spec.format is Format.ROCC else 0,
        funct3=draw(st.integers(0, 7)) if spec.format is Format.ROCC else 0,
    )


@given(st.sampled_from([32, 64]).flatmap(lambda x: st.tuples(st.just(x), instructions(x))))
def test_encoding_and_back(case: tuple[int, Instruction]) -> None:
    xlen, instruction = case
    assert decode(encode(instruction, xlen), xlen) == instruction


@given(st.integers(0, (1 << 32) - 1), st.sampled_from([32, 64]))
def test_what_decodes_is_the_word(word: int, xlen: int) -> None:
    try:
        instruction = decode(word, xlen)
    except IllegalInstructionError:
        return
    again = encode(instruction, xlen)
    assert again == word or instruction.mnemonic == "fence"


@pytest.mark.parametrize("word", [0, 0xFFFFFFFF, 0x0000000B, 0x00C5D553, 0x4501])
def test_what_is_no_instruction(word: int) -> None:
    with pytest.raises(IllegalInstructionError, match="not an instruction of RV32"):
        decode(word, 32)


def test_words_that_only_rv64_has() -> None:
    with pytest.raises(IllegalInstructionError):
        decode(0x00C5853B, 32)
    with pytest.raises(IllegalInstructionError):
        decode(0x03F51513, 32)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (Instruction("addi", imm=2048), "must be -2048 to 2047"),
        (Instruction("slli", imm=32), "must be 0 to 31"),
        (Instruction("beq", imm=3), "odd"),
        (Instruction("jal", imm=1 << 20), "must be"),
        (Instruction("lui", imm=-1), "upper immediate"),
        (Instruction("addw"), "RV32 has no instruction 'addw'"),
    ],
)
def test_what_does_not_fit(instruction: Instruction, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        encode(instruction, 32)
