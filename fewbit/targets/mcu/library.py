"""The objects of a library: the program, its weights, and what the core lacks of what they call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fewbit.codegen.bare_metal.helpers import helper_object, missing_symbols
from fewbit.codegen.boot.embedded import Embedded
from fewbit.codegen.interface import Interface
from fewbit.errors import UnsupportedError
from fewbit.pipeline.compilation import Compilation
from fewbit.program.weight_image import WeightImage
from fewbit.targets.mcu.board import Board
from fewbit.targets.mcu.core import Core
from fewbit.targets.mcu.harness import (
    START_FILE,
    harness_ir,
    linker_script,
    start_object,
)
from fewbit.targets.mcu.interface import run_name
from fewbit.targets.mcu.stack import stack_bytes
from fewbit.toolchain import objects
from fewbit.toolchain.archive import Member, archive
from fewbit.toolchain.elf import sections, symbols
from fewbit.toolchain.elf_edit import rename_symbols, take_floats_either_way
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.lld import lld

HELPERS = "helpers.o"
CODE = (".text", ".rodata")
"""What the sections of flash are called, beside that of weights."""


@dataclass(frozen=True)
class Library:
    """Objects by name, and what they take."""

    members: tuple[Member, ...]
    code_bytes: int
    """Bytes of code and its constants, weights left out."""
    stack_bytes: int

    @property
    def archive(self) -> bytes:
        return archive(self.members)


def make_library(made: Compilation) -> Library:
    """Return the library of a program that went through all stages."""
    core, interface = made.ctx.get(Core), made.ctx.get(Interface)
    program, weights = made.module.data, made.ctx.get(WeightImage).view()
    symbol = f"{interface.name}_weights"
    image = objects.weights_object(symbol, weights, core.isa)
    known = {each.name for each in symbols(image)}
    members = [
        Member(f"{interface.name}.o", program, (run_name(interface),)),
        Member(f"{symbol}.o", image, (symbol,)),
    ]
    texts = [objects.emit_assembly(made.module.llvm, core.isa)]
    helpers, text = _helpers(core, program, known)
    if helpers is not None:
        members.append(helpers)
        texts.append(text)
    members = _close(members, interface.name, core)
    code = sum(_code_bytes(m.data) for m in members if m.name != f"{symbol}.o")
    return Library(tuple(members), code, stack_bytes(texts, run_name(interface)))


def _close(members: Sequence[Member], name: str, core: Core) -> list[Member]:
    """Return the objects with names of their own for what they bring along, and fit for any caller.

    A program around the library has functions of the same names, of libgcc or libm, which may take
    floats in other registers: neither shall call the other's.
    """
    brought = {s: f"{name}.{s}" for m in members if m.name == HELPERS for s in m.symbols}
    closed: list[Member] = []
    for each in members:
        data = rename_symbols(each.data, brought)
        if core.is_arm:
            data = take_floats_either_way(data)
        closed.append(Member(each.name, data, tuple(brought.get(s, s) for s in each.symbols)))
    return closed


def _helpers(core: Core, program: bytes, known: set[str]) -> tuple[Member | None, str]:
    """Return an object of the functions that the program calls, and that these call."""
    helpers, absent = helper_object(core.isa, missing_symbols(program) - known)
    if absent:
        raise UnsupportedError(
            f"the program calls {', '.join(sorted(absent))}, which {core.name} has no instruction "
            "for, and no helper of ours",
            hint="give all layers static scales and compile with --integer-only, or choose a core "
            "with floats: mcu:cortex-m4, mcu:cortex-m7, mcu:cortex-m33, mcu:cortex-m55",
        )
    if helpers is None:
        return None, ""
    return Member(HELPERS, helpers.data, tuple(sorted(helpers.names))), helpers.assembly


def _code_bytes(data: bytes) -> int:
    return sum(s.size for s in sections(data) if s.name.startswith(CODE))


def link_program(
    core: Core, board: Board, members: Sequence[Member], run: str, embedded: Embedded
) -> bytes:
    """Link an executable that runs a library once, on arrays that it has inside."""
    text = harness_ir(core, board, run, embedded)
    public = {"main", "fewbit_start", "vectors", "fewbit_fault"}
    module = objects.link_modules([text], public, harness_isa(core))
    code = objects.emit_object(module, harness_isa(core))
    files = {f"{i}.o": member.data for i, member in enumerate(members)} | {"harness.o": code}
    start = start_object(core)
    if start is not None:
        files[START_FILE] = start
    missing = missing_symbols(code) - {s.name for m in members for s in symbols(m.data)}
    helpers, _ = helper_object(core.isa, missing)
    if helpers is not None:
        files["more.o"] = helpers.data
    with TemporaryDirectory(prefix="fewbit-link-") as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        script, program = Path(folder, "board.ld"), Path(folder, "program")
        script.write_text(linker_script(core, board))
        lld(["-static", "--gc-sections", "-z", "noexecstack", "-T", str(script),
             "-o", str(program), *(str(Path(folder, name)) for name in files)])  # fmt: skip
        return program.read_bytes()


def harness_isa(core: Core) -> Isa:
    """Return the core with the instructions that read counters."""
    if core.is_arm:
        return core.isa
    return replace(core.isa, features=f"{core.features},+zicsr,+zicntr")
