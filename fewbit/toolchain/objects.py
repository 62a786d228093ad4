"""Object files: LLVM IR through llvmlite, and the weights as an object of their own.

The weights' object is emitted by LLVM too, with one byte in the place of the weights, which then
become the content of that section: it has the header and flags that the processor's linkers expect,
and the weights never pass through text, nor their room through LLVM. Objects for Windows and macOS
say nothing of the processor but its name, and are written whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from fewbit.errors import PassError
from fewbit.toolchain import coff, macho
from fewbit.toolchain.elf import fill_section
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.remarks import without_remarks

if TYPE_CHECKING:
    from llvmlite.binding import ContextRef, ModuleRef, TargetMachine

SECTION = ".rodata.weights"
LINE = 64
"""Bytes of a cache line."""


@cache
def _initialize() -> None:
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


def target_machine(isa: Isa, opt: int = 3) -> TargetMachine:
    from llvmlite import binding

    _initialize()
    target = binding.Target.from_triple(isa.triple)
    # Large models go beyond what "small" code reaches only by their weights, which are read
    # through one symbol.
    return target.create_target_machine(
        cpu=isa.cpu,
        features=isa.features,
        opt=opt,
        reloc="static" if isa.is_static else "pic",
        codemodel="small",
        abiname=isa.abi,
    )


def jit_machine(isa: Isa, opt: int = 3) -> TargetMachine:
    """Return a target machine for code that runs in this process.

    A JIT may put constants anywhere in memory, and in a process that has mapped gigabytes they lie
    farther away than "small" code reaches.
    """
    from llvmlite import binding

    _initialize()
    target = binding.Target.from_triple(isa.triple)
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=opt, reloc="static", codemodel="large"
    )


def parse_ir(text: str, context: ContextRef | None = None) -> ModuleRef:
    """Parse a module of LLVM's; only those of one context can be linked with each other.

    A context ends with its modules in it. When both are garbage at once, Python may end it before
    them, so that a module with a context must not end by itself.
    """
    from llvmlite import binding

    _initialize()
    try:
        module = binding.parse_assembly(text, context)
        module._owned = context is not None  # pyright: ignore[reportPrivateUsage]
        module.verify()
    except RuntimeError as e:
        lines = str(e).strip().splitlines()
        raise PassError("LLVM does not take the program: " + " ".join(lines[-3:])) from e
    return module


def link_modules(texts: Sequence[str], public: Collection[str], isa: Isa) -> ModuleRef:
    """Link several texts, which may declare what others define, into one LLVM module.

    Only what is `public` can be called or read from outside. The module has a context of its own:
    in one that others share, LLVM renames types whose names these have taken.
    """
    from llvmlite import binding

    context = binding.create_context()
    module = parse_ir(texts[0], context)
    for text in texts[1:]:
        module.link_in(parse_ir(text, context))
    for function in module.functions:
        if not function.is_declaration and function.name not in public:
            function.linkage = "internal"
    for variable in module.global_variables:
        is_seen = not variable.is_declaration and variable.linkage.name == "external"
        if is_seen and variable.name not in public:
            variable.linkage = "internal"
    machine = target_machine(isa)
    module.triple = isa.triple
    module.data_layout = str(machine.target_data)
    return module


def link_in(module: ModuleRef, text: str) -> None:
    """Add functions to a module that was optimized already; nothing else can call them."""
    added = parse_ir(text, module._context)  # pyright: ignore[reportPrivateUsage]
    names = [function.name for function in added.functions]
    module.link_in(added)
    for name in names:
        module.get_function(name).linkage = "internal"


def hide(module: ModuleRef, names: Mapping[str, str]) -> None:
    """Give functions other names, by which only objects of the same library can call them."""
    for old, new in names.items():
        function = module.get_function(old)
        function.name = new
        function.visibility = "hidden"


def optimize(module: ModuleRef, isa: Isa) -> None:
    from llvmlite import binding

    machine = target_machine(isa)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_unrolling = isa.unrolls
    builder = binding.create_pass_builder(machine, options)
    with without_remarks():
        builder.getModulePassManager().run(module, builder)


def emit_object(module: ModuleRef, isa: Isa) -> bytes:
    """Return machine code; of a copy, because LLVM's passes rewrite what they emit."""
    return target_machine(isa).emit_object(module.clone())


def emit_assembly(module: ModuleRef, isa: Isa) -> str:
    """Return the same code as text."""
    return target_machine(isa).emit_assembly(module.clone())


def text_object(symbol: str, text: str, isa: Isa) -> bytes:
    """Return an object that defines `symbol` as a constant text, ended by a zero."""
    module = parse_ir(f'@{symbol} = constant [{len(text) + 1} x i8] c"{text}\\00"')
    module.triple = isa.triple
    return emit_object(module, isa)


def weights_object(symbol: str, image: bytes | memoryview, isa: Isa) -> bytes:
    """Return an object that defines `symbol` as these bytes, read-only and aligned to 64."""
    if isa.system.format == "coff":
        return coff.weights_object(symbol, memoryview(image), isa.architecture)
    if isa.system.format == "macho":
        return macho.weights_object(symbol, memoryview(image), isa.architecture)
    module = parse_ir(
        f'@{symbol} = hidden constant [1 x i8] zeroinitializer, section "{SECTION}", align {LINE}'
    )
    module.triple = isa.triple
    empty = emit_object(module, isa)
    return fill_section(empty, SECTION, memoryview(image), LINE) if len(image) else empty
