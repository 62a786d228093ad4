"""LLVM for this machine, behind typed functions: llvmlite carries no types of its own."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations


def host_processor() -> str:
    """LLVM's name of this machine's processor."""
    from llvmlite import binding

    return str(binding.get_host_cpu_name())


def host_features() -> set[str]:
    """The processor's features that are present, by LLVM's names."""
    from llvmlite import binding

    return {str(name) for name, present in binding.get_host_cpu_features().items() if present}


def emit_object(ir: str) -> bytes:
    """LLVM IR as position-independent object code for this machine."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(reloc="pic")
    return bytes(machine.emit_object(binding.parse_assembly(ir)))
