"""How a program prints: bytes to a UART, or words that a host watches.

The host of HTIF is Spike's front-end server, which FireSim and Chipyard use, and QEMU's machine
`spike`. It looks at `tohost` at any time, so on RV32, which writes 64 bits in two pieces, text goes
as one system call whose number is an address in the lower piece.
"""

from __future__ import annotations

from fewbit.codegen.boot.module import BootModule
from fewbit.llvm.function import Function
from fewbit.llvm.types import I8, I32, I64
from fewbit.llvm.values import Value
from fewbit.targets.bare_metal.board import Board, Uart
from fewbit.targets.bare_metal.start import FROM_HOST, TO_HOST

HOST_SECTION = ".tohost"
LONGEST = 256
"""Bytes of a text, at most."""
PUT_BYTE = 0x0101 << 48
"""Device 1, the console, and its command to print the lowest byte."""
_WRITE, _STANDARD_OUTPUT = 64, 1
_READY_16550, _LINE_STATUS = 0x20, 5
_FULL_SIFIVE = 31
_SIFIVE_ENABLE, _SIFIVE_CONTROL = 1, 8


def add_console(m: BootModule, board: Board, xlen: int) -> None:
    """Add `put_text`, which prints a text that ends with a zero."""
    m.lines += [
        f'@{name} = global i64 0, section "{HOST_SECTION}", align 64'
        for name in (TO_HOST, FROM_HOST)
    ]
    if board.uart is None and xlen == 32:
        return _add_system_call(m)
    put = m.function("put_byte", "i8 letter")
    (letter,) = put.parameters
    if board.uart is None:
        _put_to_host(put, letter)
    else:
        _put_to_uart(put, letter, board.uart)
    put.ret()
    text = m.function("put_text", "ptr text")
    with text.loop(0, LONGEST) as loop:
        letter = text.load(I8, text.parameters[0], loop.index)
        with text.unless(letter.differs(0)):
            text.ret()
        text.call(put, letter)
    text.ret()
    return None


def _register(f: Function, address: int) -> Value:
    bits = f.index.bits
    signed = address - (1 << bits) if address >> bits - 1 else address
    return f.pointer(f.constant(f.index, signed))


def _put_to_uart(f: Function, letter: Value, uart: Uart) -> None:
    if uart.kind == "sifive":
        control = _register(f, uart.address + _SIFIVE_CONTROL)
        f.store_volatile(f.constant(I32, _SIFIVE_ENABLE), control)
        data = _register(f, uart.address)
        f.wait_until(lambda: f.load_volatile(I32, data).shift_right(_FULL_SIFIVE).equals(0))
        f.store_volatile(f.convert("zext", letter, I32), data)
        return
    if uart.kind == "16550":
        status = _register(f, uart.address + _LINE_STATUS)
        f.wait_until(lambda: (f.load_volatile(I8, status) & _READY_16550).differs(0))
    f.store_volatile(letter, _register(f, uart.address))


def _put_to_host(f: Function, letter: Value) -> None:
    to_host, from_host = f.symbol(TO_HOST), f.symbol(FROM_HOST)

    def is_read() -> Value:
        f.store_volatile(f.constant(I64, 0), from_host)
        return f.load_volatile(I64, to_host).equals(0)

    f.wait_until(is_read)
    f.store_volatile(f.convert("zext", letter, I64) | PUT_BYTE, to_host)


def _add_system_call(m: BootModule) -> None:
    m.lines.append("@system.call = internal global [8 x i64] zeroinitializer, align 64")
    put = m.function("put_text", "ptr text")
    (text,) = put.parameters
    with put.loop(0, LONGEST, carried=[put.integer(0), put.integer(1)]) as loop:
        length, goes_on = loop.carried
        is_letter = put.load(I8, text, loop.index).differs(0)
        more = goes_on & put.convert("zext", is_letter, put.index)
        loop.carry(length + more, more)
    length = loop.results[0]
    block = put.symbol("system.call")
    words = (put.constant(I64, _WRITE), put.constant(I64, _STANDARD_OUTPUT),
             put.convert("zext", put.address(text), I64),
             put.convert("zext", length, I64))  # fmt: skip
    for number, word in enumerate(words):
        put.store_volatile(word, put.at(block, number, I64))
    put.store_volatile(put.address(block), put.symbol(TO_HOST))
    from_host = put.symbol(FROM_HOST)
    put.wait_until(lambda: put.load_volatile(I32, from_host).differs(0))
    put.store_volatile(put.constant(I32, 0), from_host)
    put.ret()
