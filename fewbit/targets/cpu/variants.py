"""Variants: one program for several processors of a family, in one library.

Stages until `kernel` are the same for all and run once; then each variant goes its own way to an
object. All read one image of weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.codegen.interface import Interface
from fewbit.errors import UsageError
from fewbit.passes.llvm.emit_object import HiddenSymbols
from fewbit.passes.native import FOR_ALL
from fewbit.pipeline.compilation import Compilation
from fewbit.program.weight_image import SharedWeights, VariantWeights, WeightImage
from fewbit.toolchain.isa import Isa, canonical_name, family, is_known, on_system
from fewbit.toolchain.system import LINUX

SELDOM = ("x86-64-v4",)
"""Processors that `auto` leaves out: the few that have AVX-512 without VNNI run x86-64-v3."""

CpuVariants = str | Sequence[str]
"""Names, as a sequence or with commas between; or `auto`, or `all`."""


def variants_of(given: CpuVariants, target: Isa) -> tuple[Isa, ...]:
    """Return the processors that are meant, best first; all are of the family of the target."""
    every = family(target.architecture, target.system)
    if len(every) == 1:
        raise UsageError(
            f"{every[0].name} has one kind of code, and no variants",
            hint="compile without cpu_variants, --cpu-variants",
        )
    if given == "all":
        return every
    if given == "auto":
        return tuple(isa for isa in every if isa.processor not in SELDOM)
    named = given.split(",") if isinstance(given, str) else given
    wanted = [_for_target(canonical_name(name.strip()), target) for name in named]
    known = [isa.name for isa in every]
    for name in wanted:
        if name in known:
            continue
        if not is_known(name):
            what = f"there is no processor '{name}' to make a variant for"
            raise UsageError(what, hint=f"variants are {', '.join(known)}; or auto, or all")
        other = Isa.of(name)
        if other.system is not target.system:
            raise UsageError(
                f"'{name}' is for {other.system.title}, and the target for {target.system.title}",
                hint=f"variants are {', '.join(known)}; or auto, or all",
            )
        raise UsageError(
            f"'{name}' is of another family, {other.architecture}, than the target, "
            f"{target.architecture}: one library has one of them",
            hint=f"compile for cpu:{name} too, into another folder",
        )
    if not wanted:
        raise UsageError("no variants are named", hint=f"variants are {', '.join(known)}")
    return tuple(isa for isa in every if isa.name in wanted)


def _for_target(name: str, target: Isa) -> str:
    """Return the name of a processor on the target's system, if it is one of no other system."""
    if not is_known(name) or Isa.of(name).system is not LINUX:
        return name
    found = on_system(Isa.of(name), target.system)
    return name if found is None else found.name


def compile_variants(start: Compilation, isas: Sequence[Isa]) -> list[Compilation]:
    """Compile an object for each processor, from a fresh compilation, with one weight image."""
    weights = SharedWeights()
    start.run(FOR_ALL)
    return [_variant(start, isa, weights).run() for isa in isas]


def _variant(start: Compilation, isa: Isa, weights: SharedWeights) -> Compilation:
    """Return the program after the stage that all share, to go on for one processor."""
    ctx, watch = start.ctx.clone(), start.watch
    ctx.put(isa)
    ctx.put(weights)
    ctx.put(VariantWeights(shared=weights), WeightImage)
    interface = ctx.get(Interface)
    prefix = f"{interface.name}.{isa.name}"
    ctx.put(
        HiddenSymbols(
            {name: f"{prefix}{name.removeprefix(interface.name)}" for name in interface.functions}
        )
    )
    return start.branch(ctx, watch and (lambda stage, text: watch(f"{stage}:{isa.name}", text)))
