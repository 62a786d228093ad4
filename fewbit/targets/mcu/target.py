"""The target `mcu`: a static library for a microcontroller, and a program that boots.

Everything is known beforehand: sizes, the arena, the stack. There are no threads, no allocation and
no functions of others, so a library links into any program; QEMU runs it here, if it is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit import __version__
from fewbit.base.target_name import TargetName
from fewbit.codegen.boot.embedded import Embedded, make_up_inputs
from fewbit.codegen.interface import Interface, interface_of
from fewbit.codegen.manifest import manifest_port, manifest_weight
from fewbit.errors import MissingToolError
from fewbit.passes.memory.plan_memory import Arena
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Content, Folder, Manifest, write_folder
from fewbit.program.program import Program
from fewbit.program.weight_image import WeightImage
from fewbit.targets.mcu.board import board_of, memory_of
from fewbit.targets.mcu.core import CORES, DEFAULT, Core, core_of
from fewbit.targets.mcu.fit import needs_of, refuse_what_does_not_fit
from fewbit.targets.mcu.fix_sizes import one_sample
from fewbit.targets.mcu.interface import header, run_name
from fewbit.targets.mcu.library import Library, link_program, make_library
from fewbit.targets.mcu.packages import KINDS, Packed, package_files
from fewbit.targets.mcu.pipeline import mcu_pipeline
from fewbit.targets.options import TEXT, BootOptions, one_of, option
from fewbit.targets.target import Request, Target

if TYPE_CHECKING:
    from fewbit.targets.probe import Found


@dataclass(frozen=True)
class McuOptions(BootOptions):
    """The options of `mcu`."""

    package: str | None = option(
        one_of(*KINDS),
        "The folder is a library of a build system's: cmake, arduino, zephyr.",
        metavar="SYSTEM",
        see="[microcontrollers](mcu.md#in-your-build-system)",
    )
    flash: str | None = option(
        TEXT,
        "Flash that there is, 64k: what does not fit is refused.",
        metavar="BYTES",
        see="[microcontrollers](mcu.md#what-does-not-fit)",
    )
    ram: str | None = option(
        TEXT,
        "Memory that there is, for arena, inputs, outputs and stack.",
        metavar="BYTES",
        see="[microcontrollers](mcu.md#what-does-not-fit)",
    )


class Mcu(Target):
    """Cortex-M and RV32, without a system."""

    about = "a static library for a microcontroller"
    see = "[microcontrollers](mcu.md)"
    detail, details = "CORE", tuple(CORES)
    is_simulated = True
    options = McuOptions
    fixed_point = True

    def spell(self, name: str) -> str:
        kind, detail = TargetName.parse(name)
        return str(TargetName(kind, detail or DEFAULT))

    def check(self, request: Request) -> None:
        core_of(request.target)
        given = McuOptions.of(request)
        for text in (given.flash, given.ram):
            if text is not None:
                memory_of(text)

    def pipeline(self, request: Request) -> Pipeline:
        return mcu_pipeline()

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        core = core_of(request.target or self.name)
        facts: list[object] = [core, core.isa, WeightImage()]
        if program is None:
            return facts
        return [*facts, interface_of(one_sample(program), request.name)]

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        core, interface = core_of(request.target), made.ctx.get(Interface)
        weights, arena = made.ctx.get(WeightImage), made.ctx.get(Arena).static
        assert arena is not None
        library = make_library(made)
        needs = needs_of(interface, library.code_bytes, weights.nbytes, arena, library.stack_bytes)
        given = McuOptions.of(request)
        refuse_what_does_not_fit(needs, _bytes(given.flash), _bytes(given.ram), core.name)
        name = interface.name
        described = (
            f"{name}, {program.recipe or 'float'}, compiled by fewbit {__version__} for {core.name}"
        )
        text = header(interface, described, arena, library.stack_bytes).encode()
        files: dict[str, Content] = {f"lib{name}.a": library.archive, f"{name}.h": text}
        if given.package is not None:
            packed = Packed(
                core, board_of(core), interface, described, text, library.archive,
                arena, library.stack_bytes,
            )  # fmt: skip
            files |= package_files(given.package, packed)
        if given.bare_metal:
            files[f"{name}.elf"] = _boot_program(made, program, library)
        manifest = Manifest(
            name=name,
            target=self.spell(request.target),
            compiler=__version__,
            inputs=tuple(map(manifest_port, interface.inputs)),
            outputs=tuple(map(manifest_port, interface.outputs)),
            recipe=program.recipe,
            arena_bytes=arena,
            weight_bytes=weights.nbytes,
            weights=tuple(map(manifest_weight, weights.entries)),
            float_weights=request.float_weights,
            options={
                "flash": str(needs.flash),
                "ram": str(needs.ram),
                "stack": str(library.stack_bytes),
                "code": str(library.code_bytes),
            },
            files={},
        )
        return write_folder(output, manifest, {**files, **request.files})

    def load(self, folder: Folder) -> Any:
        from fewbit.targets.mcu.emulate import Emulated

        return Emulated(folder)

    def find_obstacle(self, name: str) -> str | None:
        from fewbit.targets.mcu.emulate import find_emulator

        try:
            find_emulator(board_of(core_of(name)))
        except MissingToolError as e:
            return e.what
        return None

    def probe(self, name: str) -> Found:
        from fewbit.targets.probe import Found, probe_layer

        found = probe_layer(name)
        return Found(
            found.works,
            "compiled a layer and ran it in QEMU" if found.works else found.why,
            found.install,
        )


def _bytes(text: str | None) -> int | None:
    return None if text is None else memory_of(text)


def _boot_program(made: Compilation, program: Program, library: Library) -> bytes:
    """Return a program with a random input inside, and what the interpreter says of it."""
    core, interface = made.ctx.get(Core), made.ctx.get(Interface)
    inputs = make_up_inputs(one_sample(program))
    expected = [np.asarray(array) for array in program.run(*inputs)]
    embedded = Embedded(
        inputs,
        [(array.size, array.itemsize) for array in expected],
        made.ctx.get(Arena).static or 0,
        expected,
    )
    return link_program(core, board_of(core), library.members, run_name(interface), embedded)
