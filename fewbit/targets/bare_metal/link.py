"""Linking a program that boots, and where everything lies in its memory.

Code, constants and data, then what begins as zeros, then the stack, and last the page with the
words that a host watches: nothing of the program is behind these, so that a simulator can end its
memory there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.codegen.bare_metal.device_calls import MARK
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.targets.bare_metal.board import PAGE, Board
from fewbit.targets.bare_metal.console import HOST_SECTION
from fewbit.targets.bare_metal.program import WRAPPED, Run, program_ir
from fewbit.targets.bare_metal.start import (
    CYCLES,
    FROM_HOST,
    REPORT_TRAP,
    STACK_TOP,
    START,
    TO_HOST,
    ZEROS,
    ZEROS_END,
    start_object,
)
from fewbit.toolchain import objects
from fewbit.toolchain.lld import lld

STACK_BYTES = 1 << 20
START_FILE = "start.o"


def link_boot_program(
    program: Sequence[bytes], processor: Processor, board: Board, run: Run, has_coprocessor: bool
) -> bytes:
    """Link an executable that starts a program's objects once, on arrays that it has inside."""
    isa = processor.isa
    text = program_ir(processor.xlen, board, run)
    module = objects.link_modules([text], {"main", REPORT_TRAP, WRAPPED, TO_HOST, FROM_HOST}, isa)
    files = {f"{i}.o": data for i, data in enumerate(program)}
    files["main.o"] = objects.emit_object(module, isa)
    files[START_FILE] = start_object(processor, board, has_coprocessor)
    with TemporaryDirectory(prefix="fewbit-link-") as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        script, linked = Path(folder, "board.ld"), Path(folder, "program")
        script.write_text(linker_script(board))
        lld(["-static", "--gc-sections", "--no-relax", "-z", "noexecstack", f"--wrap={MARK}",
             f"--undefined={CYCLES}", "-T", str(script), "-o", str(linked),
             *(str(Path(folder, name)) for name in files)])  # fmt: skip
        return linked.read_bytes()


def linker_script(board: Board) -> str:
    return f"""ENTRY({START})
PHDRS {{ text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); host PT_LOAD FLAGS(6); }}
SECTIONS {{
  . = {board.base:#x};
  .text : {{ *{START_FILE}(.text) *(.text*) }} :text
  . = ALIGN({PAGE:#x});
  .rodata : {{ *(.rodata*) *(.srodata*) }} :data
  .data : {{ *(.data*) *(.sdata*) *(.got*) }} :data
  . = ALIGN(64);
  {ZEROS} = .;
  .bss : {{ *(.bss*) *(.sbss*) *(COMMON) }} :data
  . = ALIGN(64);
  {ZEROS_END} = .;
  . += {STACK_BYTES:#x};
  {STACK_TOP} = .;
  . = ALIGN({PAGE:#x});
  {HOST_SECTION} : {{ *({HOST_SECTION}) }} :host
  /DISCARD/ : {{ *(.eh_frame*) *(.comment) *(.riscv.attributes) }}
}}
"""
