"""A program around a library, for a machine without a system: start, one run, and what came of it.

Inputs are in flash. It prints how many instructions the run took and how much stack, every output
as words of hexadecimal digits, and, where it knows what was expected, how many elements agree.
Cortex-M prints and exits by semihosting, RISC-V through the UART and test device of QEMU's machine
`virt`. LLVM assembles no text for other processors, so instructions that it has no function for are
words of data.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.codegen.boot.embedded import Embedded
from fewbit.codegen.boot.module import LINE, BootModule
from fewbit.codegen.boot.printing import add_printing
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import I32, I64, PTR, VOID
from fewbit.llvm.values import Value
from fewbit.riscv.assembler import Assembler
from fewbit.targets.mcu.board import Board
from fewbit.targets.mcu.core import Core

START, STACK_TOP = "fewbit_start", "fewbit_stack_top"
START_FILE = "start.o"
"""What a linker puts first, on cores that begin with an instruction."""
PAINT = 0x5AFE57AC
PAINTED_BYTES = 16 << 10
_COPROCESSORS, _FLOATS_ON = 0xE000ED88, 0xF00000
_TIMER_CONTROL, _TIMER_RELOAD, _TIMER_VALUE, _TIMER_MOST = (
    0xE000E010,
    0xE000E014,
    0xE000E018,
    0xFFFFFF,
)
_UART, _TEST_DEVICE, _PASS, _FAIL = 0x10000000, 0x100000, 0x5555, 0x3333
_BREAKPOINT_AND_RETURN = (0xBEAB, 0x4770)
_WRITE_TEXT, _EXIT, _APPLICATION_EXIT = 4, 32, 0x20026
_MSTATUS_FLOATS = 0x2000


@dataclass(kw_only=True)
class _Module(BootModule):
    core: Core
    board: Board


def harness_ir(core: Core, board: Board, run: str, embedded: Embedded) -> str:
    """Return LLVM IR of a program that calls `run` once."""
    m = _Module(I32, core=core, board=board)
    (_arm_system if core.is_arm else _riscv_system)(m)
    add_printing(m)
    _main(m, run, embedded)
    return m.text


def start_object(core: Core) -> bytes | None:
    """Return the first instructions of a RISC-V core; Cortex-M starts by its vectors."""
    if core.is_arm:
        return None
    assembler = Assembler(32)
    assembler.symbol(START)
    assembler.la("sp", STACK_TOP)
    if core.has_floats:
        assembler.li("t0", _MSTATUS_FLOATS)
        assembler.word(0x3002A073)  # csrs mstatus, t0
    assembler.call("main")
    return assembler.object("single" if core.has_floats else "soft")


def linker_script(core: Core, board: Board) -> str:
    """Return where everything lies: code and constants in flash, the rest in memory."""
    top = board.ram.start + board.ram.bytes
    return f"""ENTRY({START})
MEMORY {{
  flash (rx) : ORIGIN = {board.flash.start:#x}, LENGTH = {board.flash.bytes:#x}
  ram (rw) : ORIGIN = {board.ram.start:#x}, LENGTH = {board.ram.bytes:#x}
}}
SECTIONS {{
  .text : {{ KEEP(*(.vectors)) *{START_FILE}(.text) *(.text*) }} > flash
  .rodata : {{ *(.rodata*) *(.srodata*) }} > flash
  .bss (NOLOAD) : {{ *(.bss*) *(.sbss*) *(COMMON) }} > ram
  /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.attributes) *(.eh_frame*) *(.comment) *(.riscv.attributes) }}
  {STACK_TOP} = {top:#x};
}}
"""


def _register(f: Function, address: int) -> Value:
    return f.pointer(f.integer(_signed(address)))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _store_volatile(f: Function, value: int, address: int) -> None:
    f.store_volatile(f.integer(_signed(value)), _register(f, address))


# Systems


def _arm_system(m: _Module) -> None:
    handlers = [f"ptr @{STACK_TOP}", f"ptr @{START}", *["ptr @fewbit_fault"] * 14]
    m.lines += [
        f"@{STACK_TOP} = external global i8",
        f'@vectors = constant [16 x ptr] [{", ".join(handlers)}], section ".vectors", align 256',
    ]
    words = ", ".join(
        f"i16 {word - (1 << 16) if word >> 15 else word}" for word in _BREAKPOINT_AND_RETURN
    )
    m.lines += [
        f'@semihosting = constant [2 x i16] [{words}], section ".text.semihosting", align 4',
        "@semihosting_at = constant ptr getelementptr (i8, ptr @semihosting, i32 1)",
    ]
    call = m.function("call_host", "i32 operation, ptr argument")
    types = Prototype("call_host", I32, (I32, PTR))
    place = call.load_volatile("ptr", call.symbol("semihosting_at"))
    call.call_at(place, types, *call.parameters)
    call.ret()

    put = m.function("put_text", "ptr text")
    put.call(call, _WRITE_TEXT, put.parameters[0])
    put.ret()

    leave = m.function("leave", "i32 code")
    block = leave.alloca("[2 x i32]")
    leave.store(leave.integer(_APPLICATION_EXIT), block, 0)
    leave.store(leave.parameters[0], block, 1)
    leave.call(call, _EXIT, block)
    leave.ret()

    ticks = m.function("ticks", "", "i32")
    ticks.ret(
        ticks.integer(_TIMER_MOST) - ticks.load_volatile("i32", _register(ticks, _TIMER_VALUE))
    )

    fault = m.function("fewbit_fault", "")
    fault.call(put, fault.symbol(m.text_constant("fault\n")))
    fault.call(leave, 1)
    fault.ret()

    start = m.function(START, "")
    if m.core.has_floats:
        _store_volatile(start, _FLOATS_ON, _COPROCESSORS)
        start.intrinsic("arm.dsb", "void", start.integer(15))
        start.intrinsic("arm.isb", "void", start.integer(15))
    _store_volatile(start, _TIMER_MOST, _TIMER_RELOAD)
    _store_volatile(start, 0, _TIMER_VALUE)
    _store_volatile(start, 5, _TIMER_CONTROL)
    start.call(Prototype("main", VOID, ()))
    start.ret()


def _riscv_system(m: _Module) -> None:
    put = m.function("put_text", "ptr text")
    with put.loop(0, LINE) as loop:
        letter = put.load("i8", put.parameters[0], loop.index)
        with put.unless(letter.differs(0)):
            put.ret()
        put.store_volatile(letter, _register(put, _UART))
    put.ret()

    leave = m.function("leave", "i32 code")
    (code,) = leave.parameters
    failed = code.shift_left(16) | _FAIL
    leave.store_volatile(
        leave.select(code.equals(0), _PASS, failed), _register(leave, _TEST_DEVICE)
    )
    leave.ret()

    ticks = m.function("ticks", "", "i32")
    ticks.ret(ticks.convert("trunc", ticks.intrinsic("readcyclecounter", I64), I32))


def _main(m: _Module, run: str, embedded: Embedded) -> None:
    for i, array in enumerate(embedded.inputs):
        m.data(f"input.{i}", array)
    for i, (count, size) in enumerate(embedded.outputs):
        m.room(f"output.{i}", -(-count * size // 4) * 4)
    m.room("arena", embedded.arena_bytes)
    put, decimal, hexadecimal = map(m.find, ("put_text", "put_decimal", "put_hexadecimal"))
    names = [
        *(f"input.{i}" for i in range(len(embedded.inputs))),
        *(f"output.{i}" for i in range(len(embedded.outputs))),
        "arena",
    ]
    prototype = Prototype(run, VOID, tuple([PTR] * len(names)))
    m.lines.append(prototype.declaration())
    f = m.function("main", "")
    paint = f.integer(PAINT)
    room = f.address(f.alloca("[4 x i32]")) - PAINTED_BYTES - LINE
    with f.loop(0, PAINTED_BYTES // 4) as loop:
        f.store_volatile(paint, f.at(f.pointer(room), loop.index, "i32"))
    before = f.call(m.find("ticks"))
    f.call(prototype, *(f.symbol(name) for name in names))
    ticks = f.call(m.find("ticks")) - before
    f.call(put, f.symbol(m.text_constant("instructions ")))
    f.call(decimal, _instructions(f, m.board, ticks))
    with f.loop(0, PAINTED_BYTES // 4, carried=[f.integer(0), f.integer(1)]) as loop:
        clean, is_clean = loop.carried
        same = f.load_volatile("i32", f.at(f.pointer(room), loop.index, "i32")).equals(paint)
        still = is_clean & f.convert("zext", same, I32)
        loop.carry(clean + still, still)
    f.call(put, f.symbol(m.text_constant("stack ")))
    f.call(decimal, f.integer(PAINTED_BYTES) - loop.results[0].shift_left(2))
    f.call(put, f.symbol(m.text_constant("outputs\n")))
    for i, (count, size) in enumerate(embedded.outputs):
        with f.loop(0, -(-count * size // 4)) as loop:
            f.call(hexadecimal, f.load("i32", f.symbol(f"output.{i}"), loop.index))
    wrong = _compare(m, f, embedded, put, decimal)
    f.call(m.find("leave"), f.select(wrong.equals(0), f.integer(0), 1))
    f.ret()


def _compare(
    m: _Module, f: Function, embedded: Embedded, put: Function, decimal: Function
) -> Value:
    """Print how many elements are what was expected; return how many are not."""
    wrong, total = f.integer(0), 0
    if embedded.expected is None:
        return wrong
    for i, array in enumerate(embedded.expected):
        count, size = embedded.outputs[i]
        total += count
        m.data(f"expected.{i}", array)
        kind = f"i{8 * size}"
        with f.loop(0, count, carried=[wrong]) as loop:
            given, wanted = (
                f.load(kind, f.symbol(f"{what}.{i}"), loop.index) for what in ("output", "expected")
            )
            loop.carry(loop.carried[0] + f.convert("zext", given.differs(wanted), I32))
        (wrong,) = loop.results
    f.call(put, f.symbol(m.text_constant("agreeing ")))
    f.call(decimal, f.integer(total) - wrong)
    f.call(put, f.symbol(m.text_constant("of ")))
    f.call(decimal, f.integer(total))
    return wrong


def _instructions(f: Function, board: Board, ticks: Value) -> Value:
    """Return instructions, of which QEMU executes one a nanosecond, for ticks of the timer."""
    if not board.megahertz:
        return ticks
    whole, rest = divmod(1000, board.megahertz)
    scaled = ticks * whole
    if not rest:
        return scaled
    part = (board.megahertz // rest).bit_length() - 1
    return scaled + ticks.shift_right(part)
