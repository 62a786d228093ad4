"""An artifact as a folder that people's build systems take: CMake, Arduino's and Zephyr's.

The files are in this package as they are written, but for words between at signs. Each has a
program that runs the network on made-up inputs; that of CMake starts on QEMU's board without a
library of C, so that what was built can be tried at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from fewbit.codegen.interface import Interface, Port
from fewbit.targets.mcu.board import Board
from fewbit.targets.mcu.core import Core

KINDS = ("cmake", "arduino", "zephyr")
_FPUS = {
    "cortex-m4": "fpv4-sp-d16",
    "cortex-m7": "fpv5-d16",
    "cortex-m33": "fpv5-sp-d16",
    "cortex-m55": "auto",
}
"""GCC's names of what a core computes floats with."""
_ZEPHYR_BOARDS = {
    "cortex-m0plus": "qemu_cortex_m0",
    "cortex-m3": "qemu_cortex_m3",
    "cortex-m4": "mps2/an386",
    "cortex-m7": "mps2/an500",
    "cortex-m33": "mps2/an521/cpu0",
    "cortex-m55": "mps3/corstone300/an547",
}
_NAMED_FOR_ZEPHYR = "FEWBIT_"


@dataclass(frozen=True)
class Packed:
    """What a folder is made of."""

    core: Core
    board: Board
    interface: Interface
    about: str
    header: bytes
    archive: bytes
    arena_bytes: int
    stack_bytes: int


def package_files(kind: str, packed: Packed) -> Mapping[str, bytes]:
    """Return the files of a folder beside the library, its header and the manifest."""
    words = _words(packed)
    starts = ("start_arm.c", "start_riscv.c")
    start, other = starts if packed.core.is_arm else reversed(starts)
    found: dict[str, bytes] = {}
    for path, text in _templates(kind):
        if path.endswith(other):
            continue
        found[path.replace(start, "start.c")] = _fill(text, words).encode()
    return {**found, **_libraries(kind, packed)}


def _libraries(kind: str, packed: Packed) -> Mapping[str, bytes]:
    """Return libraries where a build system looks for them, if that is not beside the header."""
    if kind != "arduino":
        return {}
    name = packed.interface.name
    return {f"src/{name}.h": packed.header, f"src/{packed.core.name}/lib{name}.a": packed.archive}


def _templates(kind: str) -> Iterator[tuple[str, str]]:
    def walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
        for each in sorted(folder.iterdir(), key=lambda item: item.name):
            if each.is_dir():
                yield from walk(each, f"{prefix}{each.name}/")
            else:
                yield f"{prefix}{each.name}", each.read_text(encoding="utf-8")

    return walk(files(__name__) / kind, "")


def _fill(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def _words(packed: Packed) -> Mapping[str, str]:
    core, board, name = packed.core, packed.board, packed.interface.name
    emulator = [board.emulator, *board.arguments, "-display", "none", "-monitor", "none"]
    emulator += ["-serial", "none" if core.is_arm else "stdio"]
    inputs, outputs = packed.interface.inputs, packed.interface.outputs
    return {
        "about": packed.about.rstrip("."),
        "name": name,
        "NAME": name.upper(),
        "KNAME": f"{_NAMED_FOR_ZEPHYR}{name.upper()}",
        "core": core.name,
        "compiler": "arm-none-eabi" if core.is_arm else "riscv64-unknown-elf",
        "flags": compiler_flags(core),
        "board": board.name,
        "emulator": " ".join(emulator),
        "entry": "reset" if core.is_arm else "_start",
        "flash_start": hex(board.flash.start),
        "flash_bytes": hex(board.flash.bytes),
        "ram_start": hex(board.ram.start),
        "ram_bytes": hex(board.ram.bytes),
        "arena": str(packed.arena_bytes),
        "stack": str(packed.stack_bytes),
        "main_stack": str(1024 + -(-packed.stack_bytes // 1024) * 1024),
        "zephyr_board": _ZEPHYR_BOARDS.get(core.name, "qemu_riscv32"),
        "depends": "\tdepends on FPU\n" if core.is_arm and core.has_floats else "",
        "fpu": "CONFIG_FPU=y" if core.is_arm and core.has_floats else "",
        "arrays": "\n".join(_array(name, port) for port in (*inputs, *outputs)),
        "fills": "\n".join(_fill_input(name, port) for port in inputs),
        "arguments": ", ".join(port.name for port in (*inputs, *outputs)),
        "prints": "\n".join(_print(port) for port in outputs),
    }


def compiler_flags(core: Core) -> str:
    """Return what GCC is told of a core, so that its code calls ours as ours is called."""
    if not core.is_arm:
        return f"-march={core.name} -mabi={core.abi} -mcmodel=medany"
    fpu = _FPUS.get(core.name)
    floats = "-mfloat-abi=soft" if fpu is None else f"-mfloat-abi=hard -mfpu={fpu}"
    return f"-mcpu={core.name} -mthumb {floats}"


def _array(name: str, port: Port) -> str:
    return f"static {port.c_type} {port.name}[{name.upper()}_{port.name.upper()}_SIZE];"


def _fill_input(name: str, port: Port) -> str:
    """Return a loop that makes up an input: numbers between -1 and 1, or small integers."""
    count = f"{name.upper()}_{port.name.upper()}_SIZE"
    number = "(float)(i * 37 % 201) / 100 - 1" if port.c_type == "float" else "i * 37 % 101"
    return (
        f"  for (unsigned i = 0; i < {count}; i++)\n    {port.name}[i] = ({port.c_type})({number});"
    )


def _print(port: Port) -> str:
    return f'  print_bytes("{port.name}", {port.name}, sizeof {port.name});'
